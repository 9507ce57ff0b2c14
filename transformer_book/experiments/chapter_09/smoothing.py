"""Chapter 9: the translator of chapter 8, taught with label smoothing and without."""

import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from transformer.data.batches import BucketedBatches, make_batch
from transformer.data.tokens import PAD_ID
from transformer.training import evaluate_loss, linear_schedule
from transformer_book import minimise
from transformer_book.experiments.cells import chapter
from transformer_book.experiments.experiment import Arm, Experiment, Make, Plan
from transformer_book.experiments.learning import one_for_each
from transformer_book.experiments.runs import Measures
from transformer_book.experiments.translator.data import corpus
from transformer_book.experiments.translator.learning import judge
from transformer_book.experiments.translator.teaching import pairs_of

HERE, ME = Path(__file__).parent, "transformer_book.experiments.chapter_09.smoothing"


def learn(make: Make, plan: Plan, *, smoothing: float) -> Iterator[tuple[int, Measures]]:
    """The share without a fault, the perplexity, and the mean of the largest probability."""
    batches = BucketedBatches(corpus().examples, batch_size=32, seed=plan.seed)

    def train(model: Any, n_steps: int) -> Measures:
        rate_of = linear_schedule(plan.lr, warmup=50, n_steps=n_steps)

        def loss_of(step: int) -> Tensor:
            batch = batches(step)
            logits = model(*batch.inputs)
            return cross_entropy(
                logits.mT, batch.labels, ignore_index=PAD_ID, label_smoothing=smoothing
            )

        minimise(
            loss_of,
            model.parameters(),
            n_steps=n_steps,
            lr=lambda step: rate_of(step + 1),
            clip_norm=1.0,
        )
        test = make_batch(corpus().encode(pairs_of(plan)))
        with torch.no_grad():
            largest = model(*test.inputs).softmax(dim=-1).amax(dim=-1)[test.labels != PAD_ID]
        return {
            "exact": judge(model, pairs_of(plan)).exact,
            "perplexity": math.exp(evaluate_loss(model, [test])),
            "largest": largest.mean().item(),
        }

    yield from one_for_each(make, plan, train)


def arms() -> dict[str, Arm]:
    cells = chapter(9, "imports*", "translator-model*")
    return {
        name: Arm(
            make=cells.names().longer,
            learn=partial(learn, smoothing=smoothing),
            rates=(0.005,),  # the best with plain labels
            steps=(800,),
            code=cells.code(ME),
            chapter=9,
        )
        for name, smoothing in (("plain labels", 0.0), ("smoothed labels", 0.1))
    }


smoothing = Experiment(
    path=HERE / "smoothing.json",
    question="What does label smoothing cost and give where each sentence has one right answer?",
    measure="exact",
    scale=1.0,
    arms=arms,
    widens=False,
    seconds=12.0,
)
