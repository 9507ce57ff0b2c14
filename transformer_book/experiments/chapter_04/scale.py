"""What the division by √d_k does in the translator: a milder start, and shorter steps."""

import math
from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from transformer.attention import attention
from transformer.data.batches import make_batch
from transformer_book.experiments.cells import chapter
from transformer_book.experiments.chapter_04 import HERE
from transformer_book.experiments.experiment import Arm, Experiment, Make, Plan
from transformer_book.experiments.learning import one_for_each
from transformer_book.experiments.runs import Measures
from transformer_book.experiments.translator.data import corpus
from transformer_book.experiments.translator.teaching import pairs_of, taught

ME = "transformer_book.experiments.chapter_04.scale"


def scaled(cell: SimpleNamespace) -> type[nn.Module]:
    """The chapter's attention, which remembers how far apart its last scores were."""

    class Scaled(cell.Attend):  # type: ignore[name-defined]
        times = 1

        def forward(self, x: Tensor, y: Tensor, mask: Tensor) -> Tensor:
            q, k = self.times * self.W_q(x), self.W_k(y)
            scores = q @ k.mT / math.sqrt(q.size(-1))
            self.spread = scores[mask.expand_as(scores)].std().item()
            return attention(q, k, self.W_v(y), mask)

    return Scaled


def begun(cell: SimpleNamespace, attend: type[nn.Module], times: int, smaller: float) -> nn.Module:
    """A translator; ``times`` 8 takes the division by √64 away, ``smaller`` is of its scores."""
    new = cell.Translator(attend=attend)
    for each in (new.read, new.recall, new.look):
        each.times = times
        for parameter in (*each.W_q.parameters(), *each.W_k.parameters()):
            parameter.data /= math.sqrt(smaller)
    return new


@torch.no_grad()
def spread_of(model: Any, plan: Plan) -> float:
    """Of the scores in its three attentions, on 200 new sentences."""
    model.cpu()(*make_batch(corpus().encode(pairs_of(plan)[:200])).inputs)
    return sum(each.spread for each in (model.read, model.recall, model.look)) / 3


def arms() -> dict[str, Arm]:
    cells = chapter(4, "imports*", "translator-model*")
    cell = cells.names()
    Scaled = scaled(cell)

    def learn(make: Make, plan: Plan) -> Iterator[tuple[int, Measures]]:
        """How far apart the scores are before and after, and the share of right sentences."""

        def train(model: nn.Module, n_steps: int) -> Measures:
            first = spread_of(model, plan)
            found = taught(model, plan, n_steps)
            return found | {"first": first, "then": spread_of(model, plan)}

        yield from one_for_each(make, plan, train)

    def arm(times: int, smaller: float) -> Arm:
        return Arm(
            make=partial(begun, cell, Scaled, times, smaller),
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
