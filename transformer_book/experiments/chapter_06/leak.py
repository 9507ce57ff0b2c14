"""Chapter 6: the loss and the worth of a translator with positions and without its causal mask."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace

from torch import nn

from transformer_book.experiments.cells import chapter
from transformer_book.experiments.experiment import Arm, Experiment, Make, Plan
from transformer_book.experiments.runs import Measures
from transformer_book.experiments.translator import judge, stored, train_translator

HERE, ME = Path(__file__).parent, "transformer_book.experiments.chapter_06.leak"
LAST = 50  # steps whose mean loss is told


def learn(make: Make, plan: Plan) -> Iterator[tuple[int, Measures]]:
    """The mean training loss of the last steps, and the share of sentences without a mistake."""
    for n_steps in plan.steps:
        model = make()
        last = train_translator(model, lr=plan.lr, seed=plan.seed, n_steps=n_steps)[-LAST:]
        yield n_steps, {"loss": sum(last) / len(last), "exact": judge(model).exact}


def arms() -> dict[str, Arm]:
    cells = chapter(6, "imports*", "translator-model*")
    cell = cells.names()
    return {
        name: Arm(
            make=partial(_translator, cell, causal),
            learn=learn,
            rates=(stored("positions").lr,),
            steps=(300, 800, 2000),
            code=cells.code(ME),
            chapter=6,
        )
        for name, causal in (("mask", True), ("no mask", False))
    }


def _translator(cell: SimpleNamespace, causal: bool) -> nn.Module:
    return cell.Translator(causal=causal)


leak = Experiment(
    path=HERE / "leak.json",
    question="Is a translator with positions better without its causal mask?",
    measure="loss",
    lower_is_better=True,
    arms=arms,
    widens=False,
    seconds=60.0,
)
