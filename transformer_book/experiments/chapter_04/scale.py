"""What the division by √d_k does in the translator: a milder start, and shorter steps."""

from collections.abc import Iterator
from functools import partial

from torch import nn

from transformer_book.experiments.cells import chapter
from transformer_book.experiments.chapter_04 import HERE
from transformer_book.experiments.experiment import Arm, Experiment, Make, Plan
from transformer_book.experiments.learning import one_for_each
from transformer_book.experiments.runs import Measures
from transformer_book.experiments.translator.teaching import taught

ME = "transformer_book.experiments.chapter_04.scale"


def arms() -> dict[str, Arm]:
    cells = chapter(4, "imports*", "translator-model*", definitions=("scale-models",))
    names = cells.names()

    def learn(make: Make, plan: Plan) -> Iterator[tuple[int, Measures]]:
        """How far apart the scores are before and after, and the share of right sentences."""

        def train(model: nn.Module, n_steps: int) -> Measures:
            first = names.spread_of(model)
            found = taught(model, plan, n_steps)
            return found | {"first": first, "then": names.spread_of(model)}

        yield from one_for_each(make, plan, train)

    def arm(times: int, smaller: float) -> Arm:
        return Arm(
            make=partial(names.begun, times, smaller),
            learn=learn,
            rates=(0.003, 0.005, 0.008),
            steps=(800,),
            code=cells.code(ME),
            chapter=4,
        )

    return {
        "with the scale": arm(1, 1.0),
        "without the scale": arm(8, 1.0),
        "without, small start": arm(8, 8.0),
        "with, large start": arm(1, 1 / 8),
    }


scale = Experiment(
    path=HERE / "scale.json",
    question="Is it the milder start or the shorter steps that the translator needs?",
    measure="exact",
    scale=1.0,
    arms=arms,
    seeds=tuple(range(3)),
    seconds=8.0,
)
