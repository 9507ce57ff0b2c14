"""Chapter 9: the loop and its mistakes, and few sentences seen often, each from five starts."""

import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import parameters_to_vector as as_vector

from transformer.data.batches import Batch, BucketedBatches, make_batch
from transformer.training import evaluate_loss
from transformer_book.experiments.cells import Cells, chapter
from transformer_book.experiments.experiment import Arm, Experiment, Make, Plan
from transformer_book.experiments.learning import one_for_each
from transformer_book.experiments.runs import Measures
from transformer_book.experiments.translator.data import corpus

HERE, ME = Path(__file__).parent, "transformer_book.experiments.chapter_09"
DEFINED = ("small", "loops", "arms-tokens", "schedules")
SEEDS = tuple(range(5))
PADDED = 10  # places more
TIMES = (40, 80, 120, 160)


def of_the_page() -> Cells:
    """The chapter's small translator, its loop, its schedules, and its vocabularies."""
    return chapter(9, "imports*", "counts", definitions=DEFINED)


def fresh(cell: SimpleNamespace, **changes: Any) -> Any:
    """The chapter's small translator, from the seed that was set."""
    return cell.small(torch.initial_seed(), **changes)


def batches() -> BucketedBatches:
    """Those of the page, in its order, whatever the seed."""
    return BucketedBatches(corpus().examples, batch_size=32, seed=0)


def loss_on(model: Any, pairs: list[tuple[list[int], list[int]]]) -> float:
    return evaluate_loss(model, [make_batch(pairs)])


def test_pairs() -> list[tuple[list[int], list[int]]]:
    """The page's 300 test sentences."""
    return list(corpus().encode(corpus().test[:300]))  # type: ignore[arg-type]


def learn_with_mistakes(
    make: Make,
    plan: Plan,
    *,
    cell: SimpleNamespace,
    factor: float = 1,
    padded: int = 0,
    **mistake: Any,
) -> Iterator[tuple[int, Measures]]:
    """What the loop reaches with a mistake.

    ``last`` is the mean of the last fifth of the training losses, ``lowest`` the lowest mean of
    eight in a row, ``test`` the loss of the page's 300 test sentences, ``moved`` how far a weight
    has moved on average, and ``bos`` 1 if it writes nothing but <bos>.
    """
    shown = batches()

    def wider(step: int) -> Batch:
        batch = shown(step)
        return Batch(batch.src, nn.functional.pad(batch.tgt, (0, padded)))

    def rising(step: int) -> float:
        return factor * plan.lr * min((step + 1) / 20, 1)

    for n_steps in plan.steps:
        model = make()
        before = as_vector(model.parameters()).detach().clone()
        losses: Tensor = torch.tensor(cell.loop(model, wider, n_steps, rising, **mistake))
        moved = as_vector(model.parameters()).detach() - before
        words = cell.first_tokens(model, "the black cat sleeps")
        yield (
            n_steps,
            {
                "last": losses[-(n_steps // 5) :].mean().item(),
                "lowest": losses.unfold(0, 8, 1).mean(dim=1).min().item(),
                "test": loss_on(model, test_pairs()),
                "moved": moved.abs().mean().item(),
                "bos": float(set(words.split()) == {"<bos>"}),
            },
        )


def arms_of_mistakes() -> dict[str, Arm]:
    cells = of_the_page()
    cell = cells.names()

    def arm(n_steps: int = 100, **what: Any) -> Arm:
        return Arm(
            make=partial(fresh, cell),
            learn=partial(learn_with_mistakes, cell=cell, **what),
            rates=(0.008,),
            steps=(n_steps,),
            code=cells.code(ME),
            chapter=9,
        )

    return {
        "healthy": arm(clip=math.inf),
        "rate × 100": arm(clip=math.inf, factor=100),
        "rate ÷ 100": arm(clip=math.inf, factor=1 / 100),
        "labels not shifted": arm(clip=math.inf, shifted=False),
        "no zero_grad": arm(clip=math.inf, zeroed=False),
        "padding counted": arm(40, padded=PADDED, ignore=-100),
        "padding not counted": arm(40),
    }


mistakes = Experiment(
    path=HERE / "mistakes.json",
    question="What do the loop's mistakes do to its loss, and to what the model writes?",
    measure="test",
    scale=math.log(316),
    lower_is_better=True,
    arms=arms_of_mistakes,
    seeds=SEEDS,
    widens=False,
    seconds=1.0,
)


def learn_few(make: Make, plan: Plan, *, cell: SimpleNamespace) -> Iterator[tuple[int, Measures]]:
    """The losses of the 300 sentences that are learned from, and of the page's test."""
    known = corpus().examples[:300]
    few = BucketedBatches(known, batch_size=32, seed=0)

    def train(model: nn.Module, n_steps: int) -> Measures:
        cell.loop(model, few, n_steps, lambda step: plan.lr * min((step + 1) / 50, 1))
        return {"train": loss_on(model, list(known)), "test": loss_on(model, test_pairs())}  # type: ignore[arg-type]

    yield from one_for_each(make, plan, train)


def arms_of_few() -> dict[str, Arm]:
    cells = of_the_page()
    cell = cells.names()
    return {
        f"dropout {dropout:g}, {rate:g}": Arm(
            make=partial(fresh, cell, dropout=dropout),
            learn=partial(learn_few, cell=cell),
            rates=(rate,),
            steps=TIMES,
            code=cells.code(ME),
            chapter=9,
        )
        for rate in (0.01, 0.005, 0.02)
        for dropout in (0.0, 0.2)
    }


few = Experiment(
    path=HERE / "few.json",
    question="What becomes of 300 sentences seen again and again, with dropout and without?",
    measure="test",
    scale=math.log(316),
    lower_is_better=True,
    arms=arms_of_few,
    widens=False,
    seconds=4.0,
)
