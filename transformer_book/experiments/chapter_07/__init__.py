"""Chapter 7: the norm before or after, with and without warm-up, at lower rates and for longer."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import torch
from torch import Tensor, nn

from transformer_book import minimise
from transformer_book.experiments.cells import chapter
from transformer_book.experiments.experiment import Arm, Experiment, Make, Plan
from transformer_book.experiments.learning import one_for_each
from transformer_book.experiments.runs import Measures

HERE, ME = Path(__file__).parent, "transformer_book.experiments.chapter_07"
CELLS = ("task-words", "stack*", "wires-with-norm", "post", "translator-model-pre", "training")
DEPTH, WARM_UP = 8, 30
STEPS = (125, 250, 500, 1000)
Wire = Callable[[Tensor, nn.Module, nn.Module], Tensor]


def learn(
    make: Make, plan: Plan, *, cell: SimpleNamespace, warm_up: int
) -> Iterator[tuple[int, Measures]]:
    """The loss of 1,000 new sentences, in nats, after the chapter's own schedule."""

    def train(model: nn.Module, n_steps: int) -> Measures:
        generator = torch.Generator().manual_seed(plan.seed)
        exam = cell.sentences(torch.Generator().manual_seed(1000 + plan.seed), 1000)
        minimise(
            lambda step: cell.loss_on(model, cell.sentences(generator)),
            model.parameters(),
            n_steps=n_steps,
            lr=lambda step: plan.lr * cell.schedule(step, n_steps, warm_up),
        )
        with torch.no_grad():
            return {"loss": cell.loss_on(model, exam).item()}

    yield from one_for_each(make, plan, train)


def _stack(cell: SimpleNamespace, wire: Wire) -> nn.Module:
    return cell.Stack(DEPTH, wire).to(cell.device)


def arms_at(rates: tuple[float, ...], norms: tuple[str, ...]) -> dict[str, Arm]:
    """For each place of the norm an arm with warm-up and one without."""
    cells = chapter(7, "imports*", "training", definitions=CELLS)
    cell = cells.names()
    wires = {"post-LN": cell.post, "pre-LN": cell.pre}
    return {
        f"{name}, {'warm-up' if warm_up else 'no warm-up'}": Arm(
            make=partial(_stack, cell, wires[name]),
            learn=partial(learn, cell=cell, warm_up=warm_up),
            rates=rates,
            steps=STEPS,
            code=cells.code(ME),
            chapter=7,
        )
        for name in norms
        for warm_up in (WARM_UP, 0)
    }


orders = Experiment(
    path=HERE / "orders.json",
    question="Does post-LN need warm-up, at its best rate?",
    measure="loss",
    scale=math.log(6),
    lower_is_better=True,
    arms=lambda: arms_at((0.001, 0.003, 0.01), ("post-LN", "pre-LN")),
    seeds=tuple(range(6)),
    seconds=60.0,
)

twice = replace(
    orders,
    path=HERE / "twice.json",
    question="Does pre-LN need warm-up at twice its best rate, which is 0.04?",
    arms=lambda: arms_at((0.08,), ("pre-LN",)),
    widens=False,
    seconds=20.0,
)
