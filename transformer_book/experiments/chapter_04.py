"""Chapter 4: recall from sharp and mild first scores; the scale; right masks and wrong ones."""

import math
from collections.abc import Callable
from functools import cache, partial
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from transformer.attention import attention
from transformer.data.batches import make_batch
from transformer_book.experiments import Arm, Make, Measures, Plan, along, chapter, experiment
from transformer_book.experiments.translator.data import corpus
from transformer_book.experiments.translator.learning import judge, train_translator
from transformer_book.experiments.translator.teaching import pairs_of, taught

STEPS = (0, 200, 400, 800, 1300, 2000)
SURE = 0.99  # a question is sure if its largest weight is above

# The divisor of the scores, how many times smaller W_Q and W_K start, and d_k.
SETTINGS = {
    "divided": (16, 1, 256),
    "undivided": (1, 1, 256),
    "small start": (1, 4, 256),
    "large start": (16, 0.25, 256),
    "divided by 256": (256, 1, 256),
}
WIDTHS = (16, 32, 64, 128)  # and 256, above
CAP = 50  # as in Gemma 2
SIZES_OF_V = {"1/16": 1 / 16, "1": 1.0}  # of exercise 4.2


def page() -> SimpleNamespace:
    """The chapter's questions and its model that learns to recall."""
    solutions = "solution-4-2", "solution-4-5"
    return chapter(4, "imports*", "recall-batch", "recall-model", definitions=solutions).names()


@torch.no_grad()
def begun(divisor: int | float, smaller: int | float, d_k: int) -> nn.Module:
    """The chapter's model, whose W_Q and W_K start so many times smaller."""
    model = page().Recall(divisor, d_k)
    for matrix in (model.W_Q, model.W_K):
        matrix /= smaller
    return model


def bounded(*, normed: bool) -> nn.Module:
    """The undivided model with a remedy of exercise 4.5, QK-norm or a soft cap."""
    cell = page()

    class Bounded(cell.Recall):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__(1)
            self.g = nn.Parameter(torch.tensor(5.0)) if normed else None

        def scores(self, symbols: Tensor, question: Tensor) -> Tensor:
            if self.g is None:
                return CAP * (super().scores(symbols, question) / CAP).tanh()
            q, k = self.symbol(question) @ self.W_Q, self.symbol(symbols) @ self.W_K
            return cell.qk_norm_solution(q, k, self.g)[:, 0]

    return Bounded()


@torch.no_grad()
def soften(model: Any, symbols: Tensor, question: Tensor) -> None:
    """Make W_Q and W_K smaller, both alike, until the scores have a standard deviation of 1."""
    size = model.scores(symbols, question).std().sqrt()
    for matrix in (model.W_Q, model.W_K):
        matrix /= size


def learn(model: Any, plan: Plan, *, soften_at: int | None = None) -> dict[int, Measures]:
    """What becomes of 1,000 questions, at a constant rate as in the chapter.

    After ``soften_at`` steps the scores are made small once.
    """
    cell = page()
    train = torch.Generator().manual_seed(plan.seed)
    test = cell.recall_batch(torch.Generator().manual_seed(99 + plan.seed), 1000)
    symbols, numbers, question, answer = test

    def loss_of(step: int) -> Tensor:
        *given, right = cell.recall_batch(train)
        if step == soften_at:
            soften(model, given[0], given[2])
        return nn.functional.cross_entropy(model(*given), right)

    def measure() -> Measures:
        scores = model.scores(symbols, question)
        weights = scores.softmax(dim=-1)
        sure = weights.amax(dim=-1) > SURE
        astray = symbols.gather(1, weights.argmax(dim=-1, keepdim=True)) != question
        wrong = model(symbols, numbers, question).argmax(dim=-1) != answer
        return {
            "right": _share(~wrong),
            "spread": scores.std().item(),
            "sure": _share(sure),
            "sure and wrong": _share(sure & astray[:, 0] & wrong),
        }

    return along(loss_of, model.parameters(), measure, plan)


def _share(which: Tensor) -> float:
    return which.float().mean().item()


@experiment(
    "From sharp, mild and flat first scores: does a model learn to recall?",
    measure="right",
    scale=1.0,
    curve=learn,
    rates=(0.001, 0.002, 0.005),
    steps=STEPS,
)
def recall() -> dict[str, Arm]:
    cell = page()
    five = partial(Arm, rates=(0.00025, 0.0005, 0.001, 0.002, 0.005, 0.01), seeds=tuple(range(5)))
    found = {name: five(partial(begun, *setting)) for name, setting in SETTINGS.items()}
    longer = partial(five, partial(begun, *SETTINGS["undivided"]), steps=(*STEPS, 2500, 4000))
    found["undivided, twice as long"] = longer()
    found["undivided, softened after 2,000"] = longer(curve=partial(learn, soften_at=2000))
    for d_k in WIDTHS:
        found[f"divided, {d_k}"] = Arm(partial(begun, math.sqrt(d_k), 1, d_k))
        found[f"undivided, {d_k}"] = Arm(partial(begun, 1, 1, d_k))
    for name, normed in (("QK-norm", True), ("capped at 50", False)):
        found[f"undivided, {name}"] = Arm(partial(bounded, normed=normed))
    of_v = {f"additive, v of size {name}": (size, 256) for name, size in SIZES_OF_V.items()}
    for name, (size, d_k) in (of_v | {f"additive, {n}": (n**-0.5, n) for n in (16, 64)}).items():
        make = partial(cell.Additive, size, d_k)  # the model of exercise 4.2
        found[name] = Arm(make, rates=(0.002, 0.005, 0.01), steps=STEPS[:3])
    return found


# What the division by √d_k does in the translator: a milder start, and shorter steps


def translator_page() -> SimpleNamespace:
    """The chapter's translator, and its wrong masks."""
    return chapter(4, "imports*", "translator-model*", "broken").names()


@cache
def scaled() -> type[nn.Module]:
    """The chapter's attention, which remembers how far apart its last scores were."""

    class Scaled(translator_page().Attend):  # type: ignore[misc]
        times = 1

        def forward(self, x: Tensor, y: Tensor, mask: Tensor) -> Tensor:
            q, k = self.times * self.W_q(x), self.W_k(y)
            scores = q @ k.mT / math.sqrt(q.size(-1))
            self.spread = scores[mask.expand_as(scores)].std().item()
            return attention(q, k, self.W_v(y), mask)

    return Scaled


def begun_translator(times: int, smaller: float) -> nn.Module:
    """A translator; ``times`` 8 takes the division by √64 away, ``smaller`` is of its scores."""
    new = translator_page().Translator(attend=scaled())
    for each in (new.read, new.recall, new.look):
        each.times = times
        for parameter in (*each.W_q.parameters(), *each.W_k.parameters()):
            parameter.data /= math.sqrt(smaller)
    return new


@torch.no_grad()
def spread_of(model: Any, plan: Plan) -> float:
    """The spread of the scores in its three attentions, on 200 new sentences."""
    model.cpu()(*make_batch(corpus().encode(pairs_of(plan)[:200])).inputs)
    return sum(each.spread for each in (model.read, model.recall, model.look)) / 3


def learn_with_spread(model: Any, plan: Plan, n_steps: int) -> Measures:
    """How far apart the scores are before and after, and the share of right sentences."""
    first = spread_of(model, plan)
    found = taught(model, plan, n_steps)
    return found | {"first": first, "then": spread_of(model, plan)}


@experiment(
    "Is it the milder start or the shorter steps that the translator needs?",
    measure="exact",
    scale=1.0,
    learn=learn_with_spread,
    rates=(0.003, 0.005, 0.008),
    steps=(800,),
)
def scale() -> dict[str, Make]:
    scaled()
    return {
        "with the scale": partial(begun_translator, 1, 1.0),
        "without the scale": partial(begun_translator, 8, 1.0),
        "without, small start": partial(begun_translator, 8, 8.0),
        "with, large start": partial(begun_translator, 1, 1 / 8),
    }


# Right masks and wrong ones

LAST = 50  # steps whose loss is averaged


def learn_with_masks(model: nn.Module, plan: Plan, n_steps: int) -> Measures:
    """The loss at the end of training, and the share of sentences that are translated."""
    losses = train_translator(model, lr=plan.lr, seed=plan.seed, n_steps=n_steps)
    exact = judge(model, pairs_of(plan)).exact
    return {"loss": sum(losses[-LAST:]) / LAST, "exact": exact}


@experiment(
    "How low is the loss of a wrong mask, and what does such a model translate?",
    measure="exact",
    scale=1.0,
    learn=learn_with_masks,
    rates=(0.008,),  # the right masks' best, for all, so that nothing but the masks differs
    steps=(300, 2000),
    widens=False,
)
def masks() -> dict[str, Arm]:
    cell = translator_page()

    def neither(src: Tensor, tgt: Tensor) -> tuple[Tensor, Tensor]:
        """Sees all the French, and padding in place of the English."""
        return cell.padding_upside_down(src, tgt)[0], cell.no_causal_mask(src, tgt)[1]

    def arm(masks: Callable, n_seeds: int = 3) -> Arm:
        return Arm(partial(cell.Translator, masks=masks), seeds=tuple(range(n_seeds)))

    return {
        "right": arm(cell.masks, 5),
        "no causal mask": arm(cell.no_causal_mask, 5),
        "causal upside down": arm(cell.causal_upside_down),
        "padding upside down": arm(cell.padding_upside_down),
        "no causal mask, no English": arm(neither),
    }
