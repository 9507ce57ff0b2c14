"""Chapter 15's experiments on languages that are made from a seed.

``blocks``: the block of today against that of GPT-2, one change at a time, with as many parameters.
``scaling``: five sizes with five numbers of tokens, each with a best rate of its own. Their rates
are halved and doubled until the best has a worse one on both sides. ``scaling_back``: the same in
the blocks' language, in which a model must look back.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from torch import nn

from transformer.family import DecoderOnly, FamilyConfig
from transformer_book.experiments import Arm, Measures, Plan, experiment
from transformer_book.experiments.family.language import excess_loss, language
from transformer_book.experiments.family.learning import Training, steps_before_fall
from transformer_book.experiments.family.models import (
    CHANGES,
    SIZES,
    block_config,
    count_embedding,
    scaling_config,
)

ENDS = (120, 240, 480, 960, 1920)  # steps, of the sizes


def curve(model: nn.Module, plan: Plan, *, order: int) -> dict[int, Measures]:
    """One way with an end at each number of steps: the loss there, and on the way, in nats.

    Both are above the language's entropy. Where there is one end alone, the way is not measured.
    """
    _ = language(order).contexts  # made before the first step
    training = Training(model, lr=plan.lr, seed=plan.seed, order=order)
    found: dict[int, Measures] = {}
    for n_steps in plan.steps:
        training.run(steps_before_fall(n_steps))
        end = training.finished(n_steps).model
        found[n_steps] = {"excess": _rounded(end, order)}
        if len(plan.steps) > 1:
            training.run(n_steps)
            found[n_steps]["on_the_way"] = _rounded(training.model, order)
    return found


def _rounded(model: nn.Module, order: int) -> float:
    return round(excess_loss(model, order=order), 5)


def _arms(configs: Mapping[str, FamilyConfig]) -> dict[str, Arm]:
    return {
        name: Arm(
            partial(DecoderOnly, config),
            about={
                "d_model": config.d_model,
                "d_ff": config.d_ff,
                "n_embedding": count_embedding(DecoderOnly(config)),
            },
        )
        for name, config in configs.items()
    }


LOSS: dict[str, Any] = {"measure": "excess", "lower_is_better": True, "chapter": 15}
SIZED: dict[str, Any] = LOSS | {"rates": (0.008,), "steps": ENDS, "rate_for_each_step": True}


@experiment(
    "What is each part of the block of today worth, at equal parameters?",
    curve=partial(curve, order=2),
    rates=(0.002, 0.004, 0.008, 0.016),
    steps=(1000,),
    seeds=tuple(range(5)),
    **LOSS,
)
def blocks() -> dict[str, Arm]:
    return _arms({name: block_config(name) for name in CHANGES})


@experiment(
    "How does the loss fall with parameters and tokens, where the last symbol decides?",
    curve=partial(curve, order=1),
    **SIZED,
)
def scaling() -> dict[str, Arm]:
    return _arms({str(d): scaling_config(d, order=1) for d in SIZES})


@experiment(
    "How does the loss fall with parameters and tokens, where a model must look back?",
    curve=partial(curve, order=2),
    **SIZED,
)
def scaling_back() -> dict[str, Arm]:
    return _arms({str(d): scaling_config(d, order=2) for d in SIZES})
