"""Chapter 15: the parity of ten bits, with steps and without, trained longer."""

from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from transformer.runtime import default_device
from transformer.training.objective import linear_schedule
from transformer_book import minimise
from transformer_book.experiments.cells import chapter
from transformer_book.experiments.chapter_15 import HERE
from transformer_book.experiments.experiment import Arm, Experiment, Make, Plan
from transformer_book.experiments.learning import one_for_each
from transformer_book.experiments.runs import Measures

ME = "transformer_book.experiments.chapter_15.parity"
BITS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 16, 24)  # at which a parity is asked; 10 are learnt from


def _train(
    model: nn.Module, cell: SimpleNamespace, plan: Plan, n_steps: int, with_steps: bool
) -> nn.Module:
    """The chapter's ``train_together``, for one model: its batches, its schedule, its Adam."""
    batch_of = cell.with_steps if with_steps else cell.without_steps
    generator = torch.Generator().manual_seed(plan.seed)
    rate_of = linear_schedule(plan.lr, warmup=30, n_steps=n_steps)  # which counts from 1

    def loss_of(step: int) -> torch.Tensor:
        x, labels = (part.to(default_device()) for part in batch_of(generator, cell.N_BITS))
        return cross_entropy(model(x).mT, labels, ignore_index=cell.NOT_ASKED)

    minimise(loss_of, model.parameters(), n_steps=n_steps, lr=lambda step: rate_of(step + 1))
    return model.eval()


def learn_parity(
    make: Make, plan: Plan, *, cell: SimpleNamespace, with_steps: bool
) -> Iterator[tuple[int, Measures]]:
    """The share of right parities after so many bits: "bit 10", say, of rows of 24."""

    def train(model: nn.Module, n_steps: int) -> Measures:
        _train(model, cell, plan, n_steps, with_steps)
        generator = torch.Generator().manual_seed(1000 + plan.seed)
        bits = torch.randint(2, (500, max(BITS)), generator=generator).to(default_device())
        right = cell.answers_of(model, bits, with_steps) == bits.cumsum(dim=1) % 2
        return {f"bit {n}": right[:, n - 1].float().mean().item() for n in BITS}

    yield from one_for_each(make, plan, train)


def parity_arms() -> dict[str, Arm]:
    numbers = ("parity-model", "parity-batches", "parity-batches-steps", "parity-test")
    cells = chapter(15, "imports*", *numbers)
    cell = cells.names()
    return {
        name: Arm(
            make=lambda: cell.Bits().to(default_device()),
            learn=partial(learn_parity, cell=cell, with_steps=with_steps),
            rates=(0.003, 0.006, 0.012, 0.024),
            steps=steps,
            code=cells.code(ME),
            chapter=15,
        )
        for name, with_steps, steps in (
            ("without steps", False, (375, 750, 1500, 3000)),
            ("with steps", True, (84, 168, 375, 750)),
        )
    }


parity = Experiment(
    path=HERE / "parity.json",
    question="Is the parity of ten bits ever learnt without steps?",
    measure="bit 10",
    scale=1.0,
    arms=parity_arms,
    seconds=40.0,
)
