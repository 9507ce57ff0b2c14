"""Chapter 8: with and without recurrence, at equal parameters and for more steps."""

from dataclasses import replace
from functools import partial
from pathlib import Path

from transformer_book.experiments.cells import chapter
from transformer_book.experiments.experiment import Arm, Experiment
from transformer_book.experiments.translator.experiment import learn

HERE, ME = Path(__file__).parent, "transformer_book.experiments.chapter_08"
STEPS = (500, 1000, 2000)
RATES = (0.0025, 0.005, 0.01)
EQUAL = 84  # hidden numbers: 222,728 parameters; the Transformer has 221,568, half a percent less


def arms() -> dict[str, Arm]:
    """The chapter's Transformer; chapter 2's translator with the factor, as large and as given."""
    cells = chapter(8, "imports*", "translator-model*")
    cell, code = cells.names(), cells.code(ME)
    whole = Arm(make=cell.whole_model, learn=learn, rates=RATES, steps=STEPS, code=code, chapter=8)
    wider = partial(cell.recurrent_with_factor, hidden_size=EQUAL)
    return {
        "Transformer": whole,
        "recurrent": replace(whole, make=cell.recurrent_with_factor),
        "recurrent, as many parameters": replace(whole, make=wider),
    }


recurrence = Experiment(
    path=HERE / "recurrence.json",
    question="Does the Transformer stay ahead of recurrence at equal parameters, and for long?",
    measure="exact",
    scale=1.0,
    judged_by=("exact", "bleu"),
    arms=arms,
    seconds=120.0,
)
