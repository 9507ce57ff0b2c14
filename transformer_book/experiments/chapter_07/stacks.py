"""Chapter 7: what the page trains once, at three rates and from three starts each."""

import math
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import mean

from transformer_book.experiments.chapter_07 import WARM_UP, learn, of_the_page, stack
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
    return {
        f"{name}, {rate:g}": Arm(
            make=partial(stack, cell, wire, depth),
            learn=partial(learn, cell=cell, warm_up=warm_up),
            rates=(rate,),
            steps=(200 if depth == 1 else 250,),
            code=cells.code(ME),
            chapter=7,
        )
        for name, (wire, depth, warm_up) in kinds.items()
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
