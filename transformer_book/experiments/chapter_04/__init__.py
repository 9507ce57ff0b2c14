"""Chapter 4: associative recall with and without the division by √d_k, for ten times the steps."""

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import torch
from torch import Tensor, nn

from transformer_book.experiments.cells import chapter
from transformer_book.experiments.experiment import Arm, Experiment, Make, Plan
from transformer_book.experiments.learning import along
from transformer_book.experiments.runs import Measures

HERE, ME = Path(__file__).parent, "transformer_book.experiments.chapter_04"
STEPS = (0, 200, 400, 800, 1300, 2000)


class Recall(nn.Module):
    """The chapter's parameters and its function of them, as one model."""

    def __init__(self, cell: SimpleNamespace, divisor: int, smaller: int):
        super().__init__()
        # the chapter starts from a seed: one drawn from PyTorch's, which was set before
        start = cell.start(int(torch.randint(2**31, ())), smaller)
        self.parts = nn.ParameterList(start)
        self.cell, self.divisor = cell, divisor

    def forward(self, *given: Tensor) -> Tensor:
        return self.cell.answer_logits(list(self.parts), *given, divisor=self.divisor)


def learn(make: Make, plan: Plan, *, cell: SimpleNamespace) -> Iterable[tuple[int, Measures]]:
    """The share of 1,000 questions that is answered right, at a constant rate as in the chapter."""
    model, train = make(), torch.Generator().manual_seed(plan.seed)
    test = cell.recall_batch(torch.Generator().manual_seed(99 + plan.seed), 1000)
    *asked, answer = (part.to(cell.device) for part in test)

    def loss_of(step: int) -> Tensor:
        *given, right = (part.to(cell.device) for part in cell.recall_batch(train))
        return nn.functional.cross_entropy(model(*given), right)

    def measure() -> Measures:
        return {"right": (model(*asked).argmax(dim=-1) == answer).float().mean().item()}

    return along(loss_of, model.parameters(), measure, plan).items()


def arms() -> dict[str, Arm]:
    cells = chapter(4, "imports*", "recall-batch", "recall-model-run", "recall-answer")
    cell = cells.names()
    settings = {"divided": (16, 1), "small start": (1, 4), "undivided": (1, 1)}
    return {
        name: Arm(
            make=partial(Recall, cell, divisor, smaller),
            learn=partial(learn, cell=cell),
            rates=(0.00025, 0.0005, 0.001, 0.002, 0.005, 0.01),
            steps=STEPS,
            code=cells.code(ME),
            chapter=4,
        )
        for name, (divisor, smaller) in settings.items()
    }


recall = Experiment(
    path=HERE / "recall.json",
    question="Does a model whose scores are not divided ever learn to recall?",
    measure="right",
    scale=1.0,
    arms=arms,
    seeds=tuple(range(5)),
    seconds=5.0,
)
