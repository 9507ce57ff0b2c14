"""Chapter 9: four ways for the rate, in three trainings, each at its own best rate."""

import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from transformer.data.batches import BucketedBatches, make_batch
from transformer.data.tokens import PAD_ID
from transformer.training import evaluate_loss
from transformer_book.experiments.chapter_09 import fresh, of_the_page
from transformer_book.experiments.experiment import Arm, Experiment, Make, Plan
from transformer_book.experiments.learning import one_for_each
from transformer_book.experiments.runs import Measures
from transformer_book.experiments.translator.data import corpus
from transformer_book.experiments.translator.teaching import pairs_of

HERE, ME = Path(__file__).parent, "transformer_book.experiments.chapter_09.schedules"
SHAPES = ("constant", "linear", "cosine", "wsd")
SETTINGS = {  # a batch, steps, and rates; the last is the small translator of the chapter
    "batches of 4": (4, 400, (0.02, 0.04, 0.08)),
    "batches of 32": (32, 400, (0.02, 0.04, 0.08)),
    "a translator": (32, 400, (0.004, 0.008, 0.016)),
}


class Bag(nn.Module):
    """The word before and the mean of the English words; a layer of both says the next word."""

    pad_id = PAD_ID

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        english, french = len(corpus().english), len(corpus().french)
        self.source = nn.Parameter(0.3 * torch.randn(english, width))
        self.before = nn.Parameter(0.3 * torch.randn(french, width))
        self.output = nn.Parameter(0.1 * torch.randn(2 * width, french))

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        real = (src != PAD_ID).float()[..., None]
        bag = (self.source[src] * real).sum(dim=1) / real.sum(dim=1)  # (B, width)
        last = self.before[tgt]  # (B, T, width)
        both = torch.cat([bag[:, None].expand_as(last), last], dim=-1)
        return both.relu() @ self.output


def learn(
    make: Make, plan: Plan, *, cell: SimpleNamespace, shape: str, batch_size: int
) -> Iterator[tuple[int, Measures]]:
    """The loss of sentences that were not learned from, by the page's loop."""
    batches = BucketedBatches(corpus().examples, batch_size=batch_size, seed=plan.seed)
    share = getattr(cell, shape)

    def train(model: Any, n_steps: int) -> Measures:
        cell.loop(model, batches, n_steps, lambda step: plan.lr * share(step, n_steps))
        return {"loss": evaluate_loss(model, [make_batch(corpus().encode(pairs_of(plan)))])}

    yield from one_for_each(make, plan, train)


def arms() -> dict[str, Arm]:
    cells = of_the_page()
    cell = cells.names()
    return {
        f"{shape}, {setting}": Arm(
            make=partial(fresh, cell) if setting == "a translator" else Bag,
            learn=partial(learn, cell=cell, shape=shape, batch_size=batch_size),
            rates=rates,
            steps=(n_steps,),
            code=cells.code(ME),
            chapter=9,
        )
        for setting, (batch_size, n_steps, rates) in SETTINGS.items()
        for shape in SHAPES
    }


schedules = Experiment(
    path=HERE / "schedules.json",
    question="Which schedule ends lowest, and does the order hold for another batch or model?",
    measure="loss",
    scale=math.log(316),
    lower_is_better=True,
    arms=arms,
    seeds=tuple(range(5)),
    seconds=3.0,
)
