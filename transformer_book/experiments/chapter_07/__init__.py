"""Chapter 7: eight layers, trained by the page's own loop; the norm before or after, for longer."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import torch
from torch import Tensor, nn

from transformer_book.experiments.cells import Cells, chapter
from transformer_book.experiments.experiment import Arm, Experiment, Make, Plan
from transformer_book.experiments.learning import one_for_each
from transformer_book.experiments.runs import Measures

HERE, ME = Path(__file__).parent, "transformer_book.experiments.chapter_07"
DEPTH, WARM_UP = 8, 30
STEPS = (125, 250, 500, 1000)
DEFINED = (
    *("task-words", "through", "translator-model-stack", "training", "train"),
    *("translator-model-add", "wires-with-norm", "translator-model-pre"),
)
Wire = Callable[[Tensor, nn.Module, nn.Module], Tensor]


def of_the_page() -> Cells:
    """The chapter's stack, its wires and its training loop."""
    return chapter(7, "imports*", definitions=DEFINED)


def learn(
    make: Make, plan: Plan, *, cell: SimpleNamespace, warm_up: int
) -> Iterator[tuple[int, Measures]]:
    """What the page's loop reaches, in nats.

    That is the loss of 1,000 new sentences, the mean of the last 20 steps, which the page prints,
    and the loss before the first step.
    """

    def train(model: nn.Module, n_steps: int) -> Measures:
        losses = cell.train(model, cell.backwards, plan.lr, n_steps, warm_up)
        torch.manual_seed(1000 + plan.seed)
        words = cell.sentences(1000)
        model.eval()  # batch normalisation takes its stored averages
        with torch.no_grad():
            logits = model(words).flatten(0, 1)
        loss = nn.functional.cross_entropy(logits, words.flip(1).flatten())
        return {"loss": loss.item(), "last": cell.at_end(losses), "first": losses[0]}

    yield from one_for_each(make, plan, train)


def stack(cell: SimpleNamespace, wire: Wire, depth: int = DEPTH) -> nn.Module:
    """A new stack of the page; pre-LN has a last norm on top."""
    new: nn.Module = cell.Stack(depth, wire, last_norm=wire is cell.pre)
    return new


def arms_at(rates: tuple[float, ...], norms: tuple[str, ...]) -> dict[str, Arm]:
    """For each place of the norm an arm with warm-up and one without."""
    cells = of_the_page()
    cell = cells.names()
    wires = {"post-LN": cell.post, "pre-LN": cell.pre}
    return {
        f"{name}, {'warm-up' if warm_up else 'no warm-up'}": Arm(
            make=partial(stack, cell, wires[name]),
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
