"""Chapter 8: where words start and how far a step moves them, each as the factor has it or not."""

import dataclasses
import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from transformer.data.batches import BucketedBatches
from transformer.data.tokens import PAD_ID
from transformer.runtime import default_device
from transformer.training.objective import linear_schedule
from transformer_book.experiments.cells import chapter
from transformer_book.experiments.experiment import Arm, Experiment, Make, Plan
from transformer_book.experiments.learning import one_for_each
from transformer_book.experiments.runs import Measures
from transformer_book.experiments.translator.data import corpus
from transformer_book.experiments.translator.learning import judge
from transformer_book.experiments.translator.teaching import pairs_of

HERE, ME = Path(__file__).parent, "transformer_book.experiments.chapter_08.start_and_step"
FACTOR = math.sqrt(64)  # of the chapter's translator


def tables_of(model: Any) -> list[Tensor]:
    """The two tables of embeddings."""
    return [each.tokens.weight for each in (model.src_embedding, model.tgt_embedding)]


def begun(cell: SimpleNamespace, times: float) -> Any:
    """The chapter's Transformer without the factor, its tables ``times`` as large at the start."""
    model: Any = cell.whole_model()
    model.src_embedding.scale = model.tgt_embedding.scale = 1.0
    with torch.no_grad():
        for table in tables_of(model):
            table.mul_(times)
    return model


def train(model: nn.Module, *, lr: float, seed: int, n_steps: int, times: float) -> None:
    """As the book's translators are taught, with steps of the tables ``times`` as large."""
    model.to(default_device()).train()
    tables = tables_of(model)
    others = [p for p in model.parameters() if not any(p is table for table in tables)]
    groups: list[dict[str, Any]] = [{"params": others}, {"params": tables}]
    adam = torch.optim.Adam(groups, fused=True)
    rate_of = linear_schedule(lr, warmup=50, n_steps=n_steps)
    batches = BucketedBatches(corpus().examples, batch_size=32, seed=seed)
    for step in range(n_steps):
        rate = rate_of(step + 1)
        adam.param_groups[0]["lr"], adam.param_groups[1]["lr"] = rate, times * rate
        batch = batches(step).to(default_device())
        logits = model(*batch.inputs)
        loss = cross_entropy(logits.mT, batch.labels, ignore_index=PAD_ID)
        adam.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()


def learn(make: Make, plan: Plan, *, times: float) -> Iterator[tuple[int, Measures]]:
    """How well it translates, as the book's other translators are judged."""

    def taught(model: nn.Module, n_steps: int) -> Measures:
        train(model, lr=plan.lr, seed=plan.seed, n_steps=n_steps, times=times)
        scores = dataclasses.asdict(judge(model, pairs_of(plan)))
        return {name: round(x, 4) for name, x in scores.items()}

    yield from one_for_each(make, plan, taught)


def arms() -> dict[str, Arm]:
    cells = chapter(8, "imports*", "translator-model*")
    return {
        f"{words} words, {steps} steps": Arm(
            make=partial(begun, cells.names(), start),
            learn=partial(learn, times=times),
            rates=(0.003, 0.005, 0.008),
            steps=(800,),
            code=cells.code(ME),
            chapter=8,
        )
        for words, start in (("short", 1.0), ("long", FACTOR))
        for steps, times in (("small", 1.0), ("large", FACTOR))
    }


start_and_step = Experiment(
    path=HERE / "start_and_step.json",
    question="Is it the words' size at the start, or the size of their steps, that √d_model gives?",
    measure="exact",
    scale=1.0,
    judged_by=("exact", "bleu"),
    arms=arms,
    seeds=tuple(range(5)),
    tuning_seeds=(100, 101),
    seconds=15.0,
)
