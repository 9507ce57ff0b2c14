"""Chapter 7: eight layers that only add, only normalise, or do neither, trained for longer."""

import math
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

from torch import nn

from transformer_book.experiments.cells import chapter
from transformer_book.experiments.chapter_07 import CELLS, DEPTH, WARM_UP, Wire, learn
from transformer_book.experiments.experiment import Arm, Experiment

HERE, ME = Path(__file__).parent, "transformer_book.experiments.chapter_07.wires"
STEPS = (250, 1000, 2000)


def _stack(cell: SimpleNamespace, wire: Wire) -> nn.Module:
    return cell.Stack(DEPTH, wire).to(cell.device)


def arms() -> dict[str, Arm]:
    cells = chapter(7, "imports*", "training", definitions=(*CELLS, "translator-model-add"))
    cell = cells.names()
    plain = Arm(
        make=partial(_stack, cell, cell.plain),
        learn=partial(learn, cell=cell, warm_up=WARM_UP),
        rates=(0.001, 0.003, 0.01),
        steps=STEPS,
        code=cells.code(ME),
        chapter=7,
    )
    return {
        "plain": plain,
        "norm only": replace(plain, make=partial(_stack, cell, cell.norm_only)),
        "add": replace(plain, make=partial(_stack, cell, cell.add)),
    }


wires = Experiment(
    path=HERE / "wires.json",
    question="Do eight layers learn without addition, or without a norm, given more steps?",
    measure="loss",
    scale=math.log(6),
    lower_is_better=True,
    arms=arms,
    tuning_seeds=(100, 101, 102),  # at too high a rate addition alone overflows in some runs only
    seconds=60.0,
)
