"""Chapter 14: the task of few labels without pretraining, as the control of ``masking``."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from transformer.training.objective import linear_schedule
from transformer_book import minimise
from transformer_book.experiments.chapter_14 import new_bert, of_the_task
from transformer_book.experiments.experiment import Arm, Experiment, Make, Plan
from transformer_book.experiments.learning import one_for_each
from transformer_book.experiments.runs import Measures

HERE, ME = Path(__file__).parent, "transformer_book.experiments.chapter_14.labels"


def learn(make: Make, plan: Plan, *, cell: SimpleNamespace) -> Iterator[tuple[int, Measures]]:
    """The share that is right on the test, the mean over the three sets of 120 labels.

    Each set has a training of its own, all from the same random start. The rate is chosen by what
    is right in the sets that are not learnt from.
    """

    def train(start: nn.Module, n_steps: int) -> Measures:
        shares = []
        for i, few in enumerate(cell.few):
            others = [other for j, other in enumerate(cell.few) if j != i]
            asked = others if plan.sweep else [(cell.test_rows, cell.test_labels)]
            torch.manual_seed(plan.seed)
            model, (tokens, labels) = cell.Classifier(start), few
            _minimise(model, tokens, labels, plan.lr, n_steps)
            with torch.no_grad():
                shares += [(model(x).argmax(dim=-1) == y).float().mean().item() for x, y in asked]
        return {"right": sum(shares) / len(shares)}

    yield from one_for_each(make, plan, train)


def _minimise(
    model: nn.Module, tokens: torch.Tensor, labels: torch.Tensor, lr: float, n_steps: int
) -> None:
    rate_of = linear_schedule(lr, warmup=5, n_steps=n_steps)  # which counts from 1
    minimise(
        lambda step: cross_entropy(model(tokens), labels),
        model.parameters(),
        n_steps=n_steps,
        lr=lambda step: rate_of(step + 1),
    )


def arms() -> dict[str, Arm]:
    cells = of_the_task()
    cell = cells.names()
    return {
        "from scratch": Arm(
            make=partial(new_bert, cell),
            learn=partial(learn, cell=cell),
            rates=(0.002, 0.006, 0.02),
            steps=(50, 200),
            code=cells.code(ME),
            chapter=14,
        )
    }


labels = Experiment(
    path=HERE / "labels.json",
    question="How well is a task of 120 labels learnt without pretraining?",
    measure="right",
    scale=1.0,
    arms=arms,
    seeds=tuple(range(5)),
    seconds=6.0,
)
