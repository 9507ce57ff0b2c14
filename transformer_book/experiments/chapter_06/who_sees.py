"""Chapter 6: what small stacks of attention without positions know of the order of words."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace

from torch import nn

from transformer.masks import causal_mask
from transformer_book.experiments.cells import chapter
from transformer_book.experiments.experiment import Arm, Experiment, Make, Plan
from transformer_book.experiments.runs import Measures

HERE, ME = Path(__file__).parent, "transformer_book.experiments.chapter_06.who_sees"
CELLS = ("imports*", "reader", "train", "who-sees")
KINDS = {  # layers, whether there is a causal mask, and which word answers
    "no mask": (1, False, 1),
    "causal mask": (1, True, 1),
    "the full stop": (1, True, 3),
    "the full stop, two layers": (2, True, 3),
    "two layers, no mask": (2, False, 3),
}


def learn(make: Make, plan: Plan, *, cell: SimpleNamespace) -> Iterator[tuple[int, Measures]]:
    """The share of the 56 sentences of which the model says who sees."""
    for n_steps in plan.steps:
        model = make()
        cell.train(model, lambda: (cell.sentences, cell.animals[:, :1]), plan.lr, n_steps)
        answers = model(cell.sentences).argmax(dim=-1)
        yield n_steps, {"right": (answers == cell.animals[:, :1]).float().mean().item()}


def arms() -> dict[str, Arm]:
    cells = chapter(6, *CELLS)
    cell = cells.names()
    return {
        name: Arm(
            make=partial(_reader, cell, *kind),
            learn=partial(learn, cell=cell),
            rates=(0.01,),
            steps=(120,),
            code=cells.code(ME),
            chapter=6,
        )
        for name, kind in KINDS.items()
    }


def _reader(cell: SimpleNamespace, n_layers: int, masked: bool, at: int) -> nn.Module:
    return cell.Reader(n_layers, causal_mask(4) if masked else None, at)


who_sees = Experiment(
    path=HERE / "who_sees.json",
    question="Who sees whom, without positions?",
    measure="right",
    scale=1.0,
    arms=arms,
    widens=False,
    seconds=1.0,
)
