"""Chapter 7: what the page trains once, at three rates and from three starts each."""

import math
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import mean
from types import SimpleNamespace
from typing import Any

from torch import Tensor, nn

from transformer_book.experiments.chapter_07 import WARM_UP, Wire, learn, of_the_page, stack
from transformer_book.experiments.experiment import Arm, Experiment

HERE, ME = Path(__file__).parent, "transformer_book.experiments.chapter_07.stacks"
RATES = (0.003, 0.01, 0.03)


@dataclass(frozen=True, kw_only=True)
class Rates(Experiment):
    """An arm for each wiring at each rate, since a page shows all of them."""

    def at(self, wiring: str, rate: float, measure: str = "") -> tuple[float, ...]:
        """A measure of each start; what has grown beyond all numbers is infinite."""
        found = (
            run.curve[run.n_steps][measure or self.measure]
            for run in self.finals(f"{wiring}, {rate:g}")
        )
        return tuple(math.inf if x is None else x for x in found)

    def best_rate(self, wiring: str) -> float:
        """That with the lowest mean of the three starts."""
        return min(RATES, key=lambda rate: mean(self.at(wiring, rate)))

    def at_best(self, wiring: str) -> tuple[float, ...]:
        return self.at(wiring, self.best_rate(wiring))


class OverBatch(nn.BatchNorm1d):
    """Each feature over all words of all sentences."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.flatten(0, -2)).view_as(x)


def over_batches(cell: SimpleNamespace, wire: Wire) -> nn.Module:
    """The page's stack with batch normalisation in the place of each LayerNorm."""
    model: Any = stack(cell, wire)
    model.norms = nn.ModuleList(OverBatch(16) for _ in model.norms)
    if wire is cell.pre:
        model.read_out[0] = OverBatch(16)
    return model


def arms() -> dict[str, Arm]:
    cells = of_the_page()
    cell = cells.names()
    kinds = {
        "one layer": (cell.plain, 1, WARM_UP),
        "plain": (cell.plain, 8, WARM_UP),
        "norm only": (cell.norm_only, 8, WARM_UP),
        "add": (cell.add, 8, WARM_UP),
        "post-LN, warm-up": (cell.post, 8, WARM_UP),
        "post-LN": (cell.post, 8, 0),
        "pre-LN, warm-up": (cell.pre, 8, WARM_UP),
        "pre-LN": (cell.pre, 8, 0),
        "plain, 24 layers": (cell.plain, 24, WARM_UP),
        "post-LN, warm-up, 24 layers": (cell.post, 24, WARM_UP),
        "pre-LN, warm-up, 24 layers": (cell.pre, 24, WARM_UP),
    }
    makes = {name: partial(stack, cell, wire, depth) for name, (wire, depth, _) in kinds.items()}
    for order, wire in (("post", cell.post), ("pre", cell.pre)):
        name = f"{order}, batch norm, warm-up"
        kinds[name], makes[name] = (wire, 8, WARM_UP), partial(over_batches, cell, wire)
    return {
        f"{name}, {rate:g}": Arm(
            make=makes[name],
            learn=partial(learn, cell=cell, warm_up=warm_up),
            rates=(rate,),
            steps=(200 if depth == 1 else 250,),
            code=cells.code(ME),
            chapter=7,
        )
        for name, (_, depth, warm_up) in kinds.items()
        for rate in RATES
    }


stacks = Rates(
    path=HERE / "stacks.json",
    question="Which wiring learns to say four words backwards in 250 steps, at which rate?",
    measure="last",
    scale=math.log(6),
    lower_is_better=True,
    widens=False,
    arms=arms,
    seconds=4.0,
)
