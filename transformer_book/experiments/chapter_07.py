"""Chapter 7: deep stacks and their wires, by the page's own loop; a table learnt by heart."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from statistics import mean
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from transformer.layers import FeedForward, LayerNorm
from transformer.multihead import MultiHeadAttention
from transformer_book import minimise
from transformer_book.experiments import (
    Arm,
    Experiment,
    Make,
    Measures,
    Plan,
    chapter,
    experiment,
)

DEPTH, WARM_UP = 8, 30
DEFINED = (
    *("task-words", "through", "translator-model-stack", "training", "train"),
    *("translator-model-add", "wires-with-norm", "translator-model-pre"),
)
IN_NATS: dict[str, Any] = {"scale": math.log(6), "lower_is_better": True}  # of one word in six
Wire = Callable[[Tensor, nn.Module, nn.Module], Tensor]


def page() -> SimpleNamespace:
    """The chapter's stack, its wires and its training loop."""
    return chapter(7, "imports*", definitions=DEFINED).names()


def learn(model: nn.Module, plan: Plan, n_steps: int, *, warm_up: int = WARM_UP) -> Measures:
    """What the page's loop reaches, in nats.

    That is the loss of 1,000 new sentences, the mean of the last 20 steps, which the page prints,
    and the loss before the first step.
    """
    cell = page()
    losses = cell.train(model, cell.backwards, plan.lr, n_steps, warm_up)
    torch.manual_seed(1000 + plan.seed)
    words = cell.sentences(1000)
    model.eval()  # batch normalisation takes its stored averages
    with torch.no_grad():
        logits = model(words).flatten(0, 1)
    loss = nn.functional.cross_entropy(logits, words.flip(1).flatten())
    return {"loss": loss.item(), "last": cell.at_end(losses), "first": losses[0]}


def stack(wire: Wire, depth: int = DEPTH) -> nn.Module:
    """A new stack of the page; pre-LN has a last norm on top."""
    cell = page()
    return cell.Stack(depth, wire, last_norm=wire is cell.pre)


# Warm-up, with the norm before and after


def with_and_without_warm_up(name: str, wire: Wire) -> dict[str, Arm]:
    make = partial(stack, wire)
    return {
        f"{name}, warm-up": Arm(make, learn=learn),
        f"{name}, no warm-up": Arm(make, learn=partial(learn, warm_up=0)),
    }


@experiment(
    "Does post-LN need warm-up, at its best rate?",
    measure="loss",
    rates=(0.001, 0.003, 0.01),
    steps=(125, 250, 500, 1000),
    seeds=tuple(range(6)),
    **IN_NATS,
)
def orders() -> dict[str, Arm]:
    cell = page()
    return with_and_without_warm_up("post-LN", cell.post) | with_and_without_warm_up(
        "pre-LN", cell.pre
    )


@experiment(
    "Does pre-LN need warm-up at twice its best rate, which is 0.04?",
    measure="loss",
    rates=(0.08,),
    steps=(125, 250, 500, 1000),
    seeds=tuple(range(6)),
    widens=False,
    **IN_NATS,
)
def twice() -> dict[str, Arm]:
    return with_and_without_warm_up("pre-LN", page().pre)


# Wires that only add, only normalise, or do neither


@experiment(
    "Do eight layers learn without addition, or without a norm, given more steps?",
    measure="loss",
    learn=learn,
    rates=(0.001, 0.003, 0.01),
    steps=(2000,),
    tuning_seeds=(100, 101, 102),  # at too high a rate addition alone overflows in some runs only
    **IN_NATS,
)
def wires() -> dict[str, Make]:
    cell = page()
    return {
        "plain": partial(stack, cell.plain),
        "norm only": partial(stack, cell.norm_only),
        "add": partial(stack, cell.add),
    }


def hand_on(model: nn.Module) -> nn.Module:
    """``model``, whose sublayers now start by handing on what they get, nearly unchanged.

    Each matrix is the identity and a tenth of what it was; the feed-forward network makes of each
    number its positive and its negative part, and joins them again.
    """
    one = torch.eye(16)
    both = torch.cat([one, -one])  # (32, 16): ReLU(x) and ReLU(-x)
    with torch.no_grad():
        for attend, feed_forward in zip(
            model.sublayers[::2],  # type: ignore[index]
            model.sublayers[1::2],  # type: ignore[index]
            strict=True,
        ):
            attend.W_qkv.weight.mul_(0.1).add_(one.repeat(3, 1))
            attend.W_o.weight.mul_(0.1).add_(one)
            feed_forward[0].weight.mul_(0.1).add_(both)
            feed_forward[-1].weight.mul_(0.1).add_(both.T)
    return model


@experiment(
    "Do they learn more without addition if they start by handing on, at one rate?",
    measure="loss",
    learn=learn,
    rates=(0.001,),
    steps=(2000,),
    seeds=tuple(range(6)),
    widens=False,
    **IN_NATS,
)
def handing_on() -> dict[str, Make]:
    cell = page()
    return {
        "plain": lambda: hand_on(stack(cell.plain)),
        "norm only": lambda: hand_on(stack(cell.norm_only)),
    }


# What the page trains once, at three rates and from three starts each

RATES = (0.003, 0.01, 0.03)


@dataclass(frozen=True, kw_only=True)
class Rates(Experiment):
    """An arm for each wiring at each rate, since a page shows all of them."""

    def at(self, wiring: str, rate: float, measure: str = "") -> tuple[float, ...]:
        """A measure of each start; what has grown beyond all numbers is infinite."""
        found = (
            run.curve[run.n_steps][measure or self.measure]
            for run in self.finals(f"{wiring}, {rate:g}")
        )
        return tuple(math.inf if x is None else x for x in found)

    def best_rate(self, wiring: str) -> float:
        """That with the lowest mean of the three starts."""
        return min(RATES, key=lambda rate: mean(self.at(wiring, rate)))

    def at_best(self, wiring: str) -> tuple[float, ...]:
        return self.at(wiring, self.best_rate(wiring))


class OverBatch(nn.BatchNorm1d):
    """Each feature over all words of all sentences."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.flatten(0, -2)).view_as(x)


def over_batches(wire: Wire) -> nn.Module:
    """The page's stack with batch normalisation in the place of each LayerNorm."""
    model: Any = stack(wire)
    model.norms = nn.ModuleList(OverBatch(16) for _ in model.norms)
    if wire is page().pre:
        model.read_out[0] = OverBatch(16)
    return model


@experiment(
    "Which wiring learns to say four words backwards in 250 steps, at which rate?",
    kind=Rates,
    measure="last",
    learn=learn,
    steps=(250,),
    widens=False,
    **IN_NATS,
)
def stacks() -> dict[str, Arm]:
    cell, cold = page(), partial(learn, warm_up=0)
    kinds = {
        "one layer": Arm(partial(stack, cell.plain, 1), steps=(200,)),
        "plain": Arm(partial(stack, cell.plain)),
        "norm only": Arm(partial(stack, cell.norm_only)),
        "add": Arm(partial(stack, cell.add)),
        "post-LN, warm-up": Arm(partial(stack, cell.post)),
        "post-LN": Arm(partial(stack, cell.post), learn=cold),
        "pre-LN, warm-up": Arm(partial(stack, cell.pre)),
        "pre-LN": Arm(partial(stack, cell.pre), learn=cold),
        "plain, 24 layers": Arm(partial(stack, cell.plain, 24)),
        "post-LN, warm-up, 24 layers": Arm(partial(stack, cell.post, 24)),
        "pre-LN, warm-up, 24 layers": Arm(partial(stack, cell.pre, 24)),
        "post, batch norm, warm-up": Arm(partial(over_batches, cell.post)),
        "pre, batch norm, warm-up": Arm(partial(over_batches, cell.pre)),
    }
    return {
        f"{name}, {rate:g}": replace(arm, rates=(rate,))
        for name, arm in kinds.items()
        for rate in RATES
    }


# A table learnt by heart inside of a layer, with and without feed-forward networks

WORDS, PHRASES, WIDTH = 40, 16, 16  # 40 adjectives, 40 nouns: 1,600 pairs


class Phrases(nn.Module):
    """Adjective and noun, then one sublayer after the other (pre-LN); the noun's place answers."""

    def __init__(self, n_attentions: int, d_ff: int, *, bends: bool = True) -> None:
        super().__init__()
        self.words = nn.Embedding(2 * WORDS, WIDTH)  # a noun is another word than an adjective
        attentions = [MultiHeadAttention(WIDTH, 4) for _ in range(n_attentions)]
        self.attentions = nn.ModuleList(attentions)
        bend = torch.relu if bends else torch.positive  # without a bend: x itself
        self.feed_forward = FeedForward(WIDTH, d_ff, activation=bend) if d_ff else None
        self.norms = nn.ModuleList(LayerNorm(WIDTH) for _ in range(n_attentions + 2))
        self.read_out = nn.Linear(WIDTH, PHRASES)

    def forward(self, pairs: Tensor) -> Tensor:
        x = self.words(pairs)
        for attend, norm in zip(self.attentions, self.norms, strict=False):
            y = norm(x)
            x = x + attend(y, y, y)
        if self.feed_forward is not None:
            x = x + self.feed_forward(self.norms[-2](x))
        return self.read_out(self.norms[-1](x[:, 1]))


def learn_by_heart(model: nn.Module, plan: Plan, n_steps: int) -> Measures:
    """How many of 1,600 pairs have their right phrase, after all were seen at each step."""
    g = torch.Generator().manual_seed(plan.seed)
    adjectives, nouns = torch.meshgrid(torch.arange(WORDS), torch.arange(WORDS), indexing="ij")
    pairs = torch.stack([adjectives, nouns + WORDS], dim=-1).flatten(0, 1)
    phrases = torch.randint(PHRASES, (len(pairs),), generator=g)
    minimise(
        lambda step: nn.functional.cross_entropy(model(pairs), phrases),
        model.parameters(),
        n_steps=n_steps,
        lr=lambda step: plan.lr * (1 - step / n_steps),
    )
    with torch.no_grad():
        return {"known": (model(pairs).argmax(dim=-1) == phrases).float().mean().item()}


@experiment(
    "What does a layer know by heart with a feed-forward network, and without?",
    measure="known",
    scale=1.0,
    learn=learn_by_heart,
    rates=(0.01, 0.03),
    steps=(2000,),
)
def by_heart() -> dict[str, Make]:
    return {
        "attention": partial(Phrases, 1, 0),
        "attention, 32 units": partial(Phrases, 1, 32),
        "attention, 32 units, no bend": partial(Phrases, 1, 32, bends=False),
        "two attentions": partial(Phrases, 2, 0),
    }
