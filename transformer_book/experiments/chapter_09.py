"""Chapter 9: the loop and its mistakes, few sentences seen often, schedules, label smoothing."""

import math
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.utils import parameters_to_vector as as_vector

from transformer.data.batches import Batch, BucketedBatches, make_batch
from transformer.data.tokens import PAD_ID
from transformer.training import evaluate_loss
from transformer_book.experiments import Arm, Measures, Plan, chapter, experiment
from transformer_book.experiments.translator.data import corpus
from transformer_book.experiments.translator.learning import judge, train_translator
from transformer_book.experiments.translator.teaching import pairs_of

DEFINED = ("small", "loops", "arms-tokens", "schedules")
IN_NATS: dict[str, Any] = {"scale": math.log(316), "lower_is_better": True}  # of one French word
FIVE = tuple(range(5))
Pairs = list[tuple[list[int], list[int]]]


def page() -> SimpleNamespace:
    """The chapter's small translator, its loop, its schedules, and its vocabularies."""
    return chapter(9, "imports*", "counts", definitions=DEFINED).names()


def fresh(**changes: Any) -> Any:
    """The chapter's small translator, from the seed that was set."""
    return page().small(torch.initial_seed(), **changes)


def batches() -> BucketedBatches:
    """Those of the page, in its order, whatever the seed."""
    return BucketedBatches(corpus().examples, batch_size=32, seed=0)


def loss_on(model: Any, pairs: list[tuple[list[int], list[int]]]) -> float:
    return evaluate_loss(model, [make_batch(pairs)])


def test_pairs() -> Pairs:
    """The page's 300 test sentences."""
    return list(corpus().encode(corpus().test[:300]))  # type: ignore[arg-type]


def pairs(plan: Plan) -> Pairs:
    """The pairs that a run is judged on."""
    return list(corpus().encode(pairs_of(plan)))  # type: ignore[arg-type]


# The loop and its mistakes


def learn_with_mistakes(
    model: Any, plan: Plan, n_steps: int, *, factor: float = 1, padded: int = 0, **mistake: Any
) -> Measures:
    """What the loop reaches with a mistake.

    ``last`` is the mean of the last fifth of the training losses, ``lowest`` the lowest mean of
    eight in a row, ``test`` the loss of the page's 300 test sentences, ``moved`` how far a weight
    has moved on average, and ``bos`` 1 if it writes nothing but <bos>.
    """
    cell, shown = page(), batches()

    def wider(step: int) -> Batch:
        batch = shown(step)
        return Batch(batch.src, nn.functional.pad(batch.tgt, (0, padded)))

    def rising(step: int) -> float:
        return factor * plan.lr * min((step + 1) / 20, 1)

    before = as_vector(model.parameters()).detach().clone()
    losses: Tensor = torch.tensor(cell.loop(model, wider, n_steps, rising, **mistake))
    moved = as_vector(model.parameters()).detach() - before
    words = cell.first_tokens(model, "the black cat sleeps")
    return {
        "last": losses[-(n_steps // 5) :].mean().item(),
        "lowest": losses.unfold(0, 8, 1).mean(dim=1).min().item(),
        "test": loss_on(model, test_pairs()),
        "moved": moved.abs().mean().item(),
        "bos": float(set(words.split()) == {"<bos>"}),
    }


@experiment(
    "What do the loop's mistakes do to its loss, and to what the model writes?",
    measure="test",
    rates=(0.008,),
    steps=(100,),
    seeds=FIVE,
    widens=False,
    **IN_NATS,
)
def mistakes() -> dict[str, Arm]:
    page()

    def arm(steps: tuple[int, ...] = (), **mistake: Any) -> Arm:
        return Arm(fresh, learn=partial(learn_with_mistakes, **mistake), steps=steps)

    return {
        "healthy": arm(clip=math.inf),
        "rate × 100": arm(clip=math.inf, factor=100),
        "rate ÷ 100": arm(clip=math.inf, factor=1 / 100),
        "labels not shifted": arm(clip=math.inf, shifted=False),
        "no zero_grad": arm(clip=math.inf, zeroed=False),
        "padding counted": arm((40,), padded=10, ignore=-100),  # ten places more
        "padding not counted": arm((40,)),
    }


# Few sentences seen often


def learn_few(model: Any, plan: Plan, n_steps: int) -> Measures:
    """The losses of the 300 sentences that are learned from, and of the page's test."""
    known = corpus().examples[:300]
    few = BucketedBatches(known, batch_size=32, seed=0)
    page().loop(model, few, n_steps, lambda step: plan.lr * min((step + 1) / 50, 1))
    return {"train": loss_on(model, list(known)), "test": loss_on(model, test_pairs())}  # type: ignore[arg-type]


@experiment(
    "What becomes of 300 sentences seen again and again, with dropout and without?",
    measure="test",
    learn=learn_few,
    steps=(40, 80, 120, 160),
    widens=False,
    **IN_NATS,
)
def few() -> dict[str, Arm]:
    page()
    return {
        f"dropout {dropout:g}, {rate:g}": Arm(partial(fresh, dropout=dropout), rates=(rate,))
        for rate in (0.01, 0.005, 0.02)
        for dropout in (0.0, 0.2)
    }


# A warm-up where there is one layer

HEALTHY = 0.008  # the rate of section 9.3


def learn_rising(model: Any, plan: Plan, n_steps: int, *, warm_up: int) -> Measures:
    """The loss after section 9.3's loop, whose rate rises in ``warm_up`` steps and then stays."""

    def rising(step: int) -> float:
        return plan.lr * min((step + 1) / max(warm_up, 1), 1)

    page().loop(model, batches(), n_steps, rising, clip=math.inf)
    return {"loss": loss_on(model, pairs(plan))}


@experiment(
    "What does a warm-up give a single layer, at the healthy rate and at higher ones?",
    measure="loss",
    steps=(100,),
    seeds=FIVE,
    widens=False,
    **IN_NATS,
)
def one_layer() -> dict[str, Arm]:
    page()
    return {
        f"{norm}-LN, {times} times, {'warm-up' if warm_up else 'no warm-up'}": Arm(
            partial(fresh, norm=norm),
            learn=partial(learn_rising, warm_up=warm_up),
            rates=(times * HEALTHY,),
        )
        for norm in ("pre", "post")
        for times in (1, 2, 4)
        for warm_up in (20, 0)
    }


# Four ways for the rate

SHAPES = ("constant", "linear", "cosine", "wsd")


class Bag(nn.Module):
    """The word before and the mean of the English words; a layer of both says the next word."""

    pad_id = PAD_ID

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        english, french = len(corpus().english), len(corpus().french)
        self.source = nn.Parameter(0.3 * torch.randn(english, width))
        self.before = nn.Parameter(0.3 * torch.randn(french, width))
        self.output = nn.Parameter(0.1 * torch.randn(2 * width, french))

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        real = (src != PAD_ID).float()[..., None]
        bag = (self.source[src] * real).sum(dim=1) / real.sum(dim=1)  # (B, width)
        last = self.before[tgt]  # (B, T, width)
        both = torch.cat([bag[:, None].expand_as(last), last], dim=-1)
        return both.relu() @ self.output


def learn_shape(
    model: Any, plan: Plan, n_steps: int, *, shape: str, batch_size: int = 32
) -> Measures:
    """The loss of sentences that were not learned from, by the page's loop."""
    cell, batches = (
        page(),
        BucketedBatches(corpus().examples, batch_size=batch_size, seed=plan.seed),
    )
    share = getattr(cell, shape)
    cell.loop(model, batches, n_steps, lambda step: plan.lr * share(step, n_steps))
    return {"loss": evaluate_loss(model, [make_batch(pairs(plan))])}


@experiment(
    "Which schedule ends lowest, and does the order hold for another batch or model?",
    measure="loss",
    rates=(0.02, 0.04, 0.08),
    steps=(400,),
    seeds=FIVE,
    **IN_NATS,
)
def schedules() -> dict[str, Arm]:
    """The arms of a small model with two sizes of batches, and of the chapter's translator."""
    page()
    found = {
        f"{shape}, batches of {n}": Arm(Bag, learn=partial(learn_shape, shape=shape, batch_size=n))
        for n in (4, 32)
        for shape in SHAPES
    }
    return found | {
        f"{shape}, a translator": Arm(
            fresh, learn=partial(learn_shape, shape=shape), rates=(0.004, 0.008, 0.016)
        )
        for shape in SHAPES
    }


def learn_shape_longer(model: Any, plan: Plan, n_steps: int, *, shape: str) -> Measures:
    """The loss and the share without a fault, by the page's loop and batches of 32."""
    found = learn_shape(model, plan, n_steps, shape=shape)
    return found | {"exact": judge(model, pairs_of(plan)).exact}


@experiment(
    "Does WSD end below a rate that falls from the start, in 2,000 steps, too?",
    measure="loss",
    rates=(0.004, 0.008, 0.016),
    steps=(2000,),
    seeds=FIVE,
    **IN_NATS,
)
def two_thousand() -> dict[str, Arm]:
    page()
    shapes = "linear", "wsd"
    return {s: Arm(fresh, learn=partial(learn_shape_longer, shape=s)) for s in shapes}


# Label smoothing, of the translator of chapter 8


def learn_smoothed(model: Any, plan: Plan, n_steps: int, *, smoothing: float) -> Measures:
    """The share without a fault, the perplexity, and the mean of the largest probability."""

    def smoothed(logits: Tensor, batch: Batch) -> Tensor:
        return cross_entropy(
            logits.mT, batch.labels, ignore_index=PAD_ID, label_smoothing=smoothing
        )

    train_translator(model, lr=plan.lr, seed=plan.seed, n_steps=n_steps, loss=smoothed)
    test = make_batch(corpus().encode(pairs_of(plan)))
    with torch.no_grad():
        largest = model(*test.inputs).softmax(dim=-1).amax(dim=-1)[test.labels != PAD_ID]
    return {
        "exact": judge(model, pairs_of(plan)).exact,
        "perplexity": math.exp(evaluate_loss(model, [test])),
        "largest": largest.mean().item(),
    }


@experiment(
    "What does label smoothing cost and give where each sentence has one right answer?",
    measure="exact",
    scale=1.0,
    steps=(800,),
    widens=False,
)
def smoothing() -> dict[str, Arm]:
    longer = chapter(9, "imports*", "translator-model*").names().longer
    return {
        f"{name}, {rate:g}": Arm(
            longer, learn=partial(learn_smoothed, smoothing=share), rates=(rate,)
        )
        for rate in (0.005, 0.003, 0.008)
        for name, share in (("plain labels", 0.0), ("smoothed labels", 0.1))
    }
