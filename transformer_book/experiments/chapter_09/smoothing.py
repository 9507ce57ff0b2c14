"""Chapter 9: the translator of chapter 8, taught with label smoothing and without."""

import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from transformer.data.batches import Batch, make_batch
from transformer.data.tokens import PAD_ID
from transformer.training import evaluate_loss
from transformer_book.experiments.cells import chapter
from transformer_book.experiments.experiment import Arm, Experiment, Make, Plan
from transformer_book.experiments.learning import one_for_each
from transformer_book.experiments.runs import Measures
from transformer_book.experiments.translator.data import corpus
from transformer_book.experiments.translator.learning import judge, train_translator
from transformer_book.experiments.translator.teaching import pairs_of

HERE, ME = Path(__file__).parent, "transformer_book.experiments.chapter_09.smoothing"


def learn(make: Make, plan: Plan, *, smoothing: float) -> Iterator[tuple[int, Measures]]:
    """The share without a fault, the perplexity, and the mean of the largest probability."""

    def smoothed(logits: Tensor, batch: Batch) -> Tensor:
        return cross_entropy(
            logits.mT, batch.labels, ignore_index=PAD_ID, label_smoothing=smoothing
        )

    def train(model: Any, n_steps: int) -> Measures:
        train_translator(model, lr=plan.lr, seed=plan.seed, n_steps=n_steps, loss=smoothed)
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
        f"{name}, {rate:g}": Arm(
            make=cells.names().longer,
            learn=partial(learn, smoothing=smoothing),
            rates=(rate,),
            steps=(800,),
            code=cells.code(ME),
            chapter=9,
        )
        for rate in (0.005, 0.003, 0.008)
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
