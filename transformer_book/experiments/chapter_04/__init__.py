"""Chapter 4: associative recall from sharp, usual and flat first scores, for 2,000 steps."""

import math
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from transformer_book.experiments.cells import chapter
from transformer_book.experiments.experiment import Arm, Experiment, Make, Plan
from transformer_book.experiments.learning import along
from transformer_book.experiments.runs import Measures

HERE, ME = Path(__file__).parent, "transformer_book.experiments.chapter_04"
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


@torch.no_grad()
def begun(cell: SimpleNamespace, divisor: int | float, smaller: int | float, d_k: int) -> nn.Module:
    """The chapter's model, whose W_Q and W_K start so many times smaller."""
    model = cell.Recall(divisor, d_k)
    for matrix in (model.W_Q, model.W_K):
        matrix /= smaller
    return model


def additive(cell: SimpleNamespace, size: float, d_k: int = 256) -> nn.Module:
    """The model of exercise 4.2, whose vector v starts with components of this size."""
    return cell.Additive(size, d_k)


def bounded(cell: SimpleNamespace, *, normed: bool) -> nn.Module:
    """The undivided model with a remedy of exercise 4.5, QK-norm or a soft cap."""

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


def learn(
    make: Make, plan: Plan, *, cell: SimpleNamespace, soften_at: int | None = None
) -> Iterable[tuple[int, Measures]]:
    """What becomes of 1,000 questions, at a constant rate as in the chapter.

    After ``soften_at`` steps the scores are made small once.
    """
    model: Any = make()
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

    return along(loss_of, model.parameters(), measure, plan).items()


def _share(which: Tensor) -> float:
    return which.float().mean().item()


def arms() -> dict[str, Arm]:
    solutions = "solution-4-2", "solution-4-5"
    cells = chapter(4, "imports*", "recall-batch", "recall-model", definitions=solutions)
    cell = cells.names()

    def arm(
        make: Make,
        *,
        rates: tuple[float, ...] = (0.001, 0.002, 0.005),
        steps: tuple[int, ...] = STEPS,
        seeds: int = 3,
        soften_at: int | None = None,
    ) -> Arm:
        return Arm(
            make=make,
            learn=partial(learn, cell=cell, soften_at=soften_at),
            rates=rates,
            steps=steps,
            code=cells.code(ME),
            chapter=4,
            seeds=tuple(range(seeds)),
        )

    five = partial(arm, rates=(0.00025, 0.0005, 0.001, 0.002, 0.005, 0.01), seeds=5)
    begin = partial(partial, begun, cell)
    found = {name: five(begin(*setting)) for name, setting in SETTINGS.items()}
    longer, undivided = (*STEPS, 2500, 4000), begin(*SETTINGS["undivided"])
    found["undivided, twice as long"] = five(undivided, steps=longer)
    found["undivided, softened after 2,000"] = five(undivided, steps=longer, soften_at=2000)
    for d_k in WIDTHS:
        found[f"divided, {d_k}"] = arm(begin(math.sqrt(d_k), 1, d_k))
        found[f"undivided, {d_k}"] = arm(begin(1, 1, d_k))
    for name, normed in (("QK-norm", True), ("capped at 50", False)):
        found[f"undivided, {name}"] = arm(partial(bounded, cell, normed=normed))
    of_v = {f"additive, v of size {name}": (size, 256) for name, size in SIZES_OF_V.items()}
    for name, setting in (of_v | {f"additive, {n}": (n**-0.5, n) for n in (16, 64)}).items():
        make = partial(additive, cell, *setting)
        found[name] = arm(make, rates=(0.002, 0.005, 0.01), steps=STEPS[:3])
    return found


recall = Experiment(
    path=HERE / "recall.json",
    question="From sharp, mild and flat first scores: does a model learn to recall?",
    measure="right",
    scale=1.0,
    arms=arms,
    seeds=tuple(range(5)),
    seconds=5.0,
)
