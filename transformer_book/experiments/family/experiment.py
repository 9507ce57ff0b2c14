"""Chapter 15's experiments on languages that are made from a seed.

``BLOCKS``: the block of today against that of GPT-2, one change at a time, with as many parameters.
``SCALING``: five sizes with five numbers of tokens, each with a best rate of its own. Their rates
are halved and doubled until the best has a worse one on both sides. ``SCALING_BACK``: the same in
the blocks' language, in which a model must look back.
"""

from collections.abc import Iterator
from functools import partial

from torch import nn

from transformer.family import DecoderOnly, FamilyConfig
from transformer_book.experiments.cells import code_of
from transformer_book.experiments.experiment import Arm, Experiment, Make, Plan
from transformer_book.experiments.family import results
from transformer_book.experiments.family.language import excess_loss, language
from transformer_book.experiments.family.learning import Training, steps_before_fall
from transformer_book.experiments.family.models import (
    CHANGES,
    SIZES,
    block_config,
    count_embedding,
    scaling_config,
)
from transformer_book.experiments.imports import Import
from transformer_book.experiments.runs import Measures

ENDS = (120, 240, 480, 960, 1920)  # steps, of the sizes


def learn(make: Make, plan: Plan, *, order: int) -> Iterator[tuple[int, Measures]]:
    """One way with an end at each number of steps: the loss there, and on the way, in nats.

    Both are above the language's entropy. Where there is one end alone, the way is not measured.
    """
    _ = language(order).contexts  # made before the first step
    training = Training(make(), lr=plan.lr, seed=plan.seed, order=order)
    for n_steps in plan.steps:
        training.run(steps_before_fall(n_steps))
        end = training.finished(n_steps).model
        measures: Measures = {"excess": _rounded(end, order)}
        if len(plan.steps) > 1:
            training.run(n_steps)
            measures["on_the_way"] = _rounded(training.model, order)
        yield n_steps, measures


def _rounded(model: nn.Module, order: int) -> float:
    return round(excess_loss(model, order=order), 5)


def _arm(
    config: FamilyConfig, *, order: int, rates: tuple[float, ...], steps: tuple[int, ...]
) -> Arm:
    facts = {"d_model": config.d_model, "d_ff": config.d_ff}
    return Arm(
        make=partial(DecoderOnly, config),
        learn=partial(learn, order=order),
        rates=rates,
        steps=steps,
        code=code_of([], [Import("transformer_book.experiments.family.experiment")]),
        chapter=15,
        about=facts | {"n_embedding": count_embedding(DecoderOnly(config))},
    )


def block_arms() -> dict[str, Arm]:
    rates = 0.002, 0.004, 0.008, 0.016
    return {n: _arm(block_config(n), order=2, rates=rates, steps=(1000,)) for n in CHANGES}


def scaling_arms(order: int) -> dict[str, Arm]:
    return {
        str(d): _arm(scaling_config(d, order=order), order=order, rates=(0.008,), steps=ENDS)
        for d in SIZES
    }


BLOCKS = Experiment(
    path=results.BLOCKS,
    question="What is each part of the block of today worth, at equal parameters?",
    measure="excess",
    lower_is_better=True,
    arms=block_arms,
    seeds=tuple(range(5)),
    seconds=10.0,
)
SCALING, SCALING_BACK = (
    Experiment(
        path=results.SCALING[order],
        question=f"How does the loss fall with parameters and tokens, {where}?",
        measure="excess",
        lower_is_better=True,
        arms=partial(scaling_arms, order),
        rate_for_each_step=True,
        seconds=60.0,
    )
    for order, where in ((1, "where the last symbol decides"), (2, "where a model must look back"))
)
