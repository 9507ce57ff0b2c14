"""Chapter 9: a warm-up where there is one layer, and two schedules where there are 2,000 steps."""

import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from transformer.data.batches import BucketedBatches
from transformer_book.experiments.chapter_09 import batches, fresh, loss_on, of_the_page
from transformer_book.experiments.experiment import Arm, Experiment, Make, Plan
from transformer_book.experiments.learning import one_for_each
from transformer_book.experiments.runs import Measures
from transformer_book.experiments.translator.data import corpus
from transformer_book.experiments.translator.learning import judge
from transformer_book.experiments.translator.teaching import pairs_of

HERE, ME = Path(__file__).parent, "transformer_book.experiments.chapter_09.rates"
HEALTHY = 0.008  # the rate of section 9.3


def pairs(plan: Plan) -> list[tuple[list[int], list[int]]]:
    return list(corpus().encode(pairs_of(plan)))  # type: ignore[arg-type]


def learn_rising(
    make: Make, plan: Plan, *, cell: SimpleNamespace, warm_up: int
) -> Iterator[tuple[int, Measures]]:
    """The loss after section 9.3's loop, whose rate rises in ``warm_up`` steps and then stays."""

    def train(model: Any, n_steps: int) -> Measures:
        def rising(step: int) -> float:
            return plan.lr * min((step + 1) / max(warm_up, 1), 1)

        cell.loop(model, batches(), n_steps, rising, clip=math.inf)
        return {"loss": loss_on(model, pairs(plan))}

    yield from one_for_each(make, plan, train)


def arms_of_one_layer() -> dict[str, Arm]:
    cells = of_the_page()
    cell = cells.names()
    return {
        f"{norm}-LN, {times} times, {'warm-up' if warm_up else 'no warm-up'}": Arm(
            make=partial(fresh, cell, norm=norm),
            learn=partial(learn_rising, cell=cell, warm_up=warm_up),
            rates=(times * HEALTHY,),
            steps=(100,),
            code=cells.code(ME),
            chapter=9,
        )
        for norm in ("pre", "post")
        for times in (1, 2, 4)
        for warm_up in (20, 0)
    }


one_layer = Experiment(
    path=HERE / "one_layer.json",
    question="What does a warm-up give a single layer, at the healthy rate and at higher ones?",
    measure="loss",
    scale=math.log(316),
    lower_is_better=True,
    arms=arms_of_one_layer,
    seeds=tuple(range(5)),
    widens=False,
    seconds=1.0,
)


def learn_shape(
    make: Make, plan: Plan, *, cell: SimpleNamespace, shape: str
) -> Iterator[tuple[int, Measures]]:
    """The loss and the share without a fault, by the page's loop and batches of 32."""
    shown = BucketedBatches(corpus().examples, batch_size=32, seed=plan.seed)
    share = getattr(cell, shape)

    def train(model: Any, n_steps: int) -> Measures:
        cell.loop(model, shown, n_steps, lambda step: plan.lr * share(step, n_steps))
        return {"loss": loss_on(model, pairs(plan)), "exact": judge(model, pairs_of(plan)).exact}

    yield from one_for_each(make, plan, train)


def arms_of_two_thousand() -> dict[str, Arm]:
    cells = of_the_page()
    cell = cells.names()
    return {
        shape: Arm(
            make=partial(fresh, cell),
            learn=partial(learn_shape, cell=cell, shape=shape),
            rates=(0.004, 0.008, 0.016),
            steps=(2000,),
            code=cells.code(ME),
            chapter=9,
        )
        for shape in ("linear", "wsd")
    }


two_thousand = Experiment(
    path=HERE / "two_thousand.json",
    question="Does WSD end below a rate that falls from the start, in 2,000 steps, too?",
    measure="loss",
    scale=math.log(316),
    lower_is_better=True,
    arms=arms_of_two_thousand,
    seeds=tuple(range(5)),
    seconds=15.0,
)
