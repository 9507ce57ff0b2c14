"""Chapter 14: number that another word tells, to a GPT before and to a BERT behind."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from transformer.data.tokens import PAD_ID
from transformer.runtime import default_device
from transformer.training.objective import linear_schedule
from transformer_book import minimise
from transformer_book.experiments.cells import chapter
from transformer_book.experiments.experiment import Arm, Experiment, Make, Plan
from transformer_book.experiments.runs import Measures

HERE, ME = Path(__file__).parent, "transformer_book.experiments.chapter_14.agreement"
STEPS_OF_GPT, STEPS_OF_BERT = (0, 100, 200, 400, 600), (0, 200, 400, 600, 800, 1000)
BatchOf = Callable[[torch.Generator], Any]


def learn(
    make: Make, plan: Plan, *, batch_of: BatchOf, agrees: Callable[[nn.Module], float]
) -> Iterator[tuple[int, Measures]]:
    """As the chapter's ``train_text`` and ``pretrained``, looked into on the way."""
    generator = torch.Generator().manual_seed(plan.seed)
    rate_of = linear_schedule(plan.lr, warmup=50, n_steps=max(plan.steps))  # counts from 1
    model = make()
    points: dict[int, Measures] = {}

    def look(step: int) -> None:
        if step in plan.steps:
            points[step] = {"right": agrees(model)}

    def loss_of(step: int) -> torch.Tensor:
        look(step)
        batch = batch_of(generator).to(default_device())
        return cross_entropy(model(*batch.inputs).mT, batch.labels, ignore_index=PAD_ID)

    n_steps = max(plan.steps)
    minimise(
        loss_of,
        model.parameters(),
        n_steps=n_steps,
        lr=lambda step: rate_of(step + 1),
        clip_norm=1.0,
    )
    look(n_steps)
    yield from points.items()


def arms() -> dict[str, Arm]:
    written = "gpt-text", "gpt-batch", "agreement-data"
    filled = "numbers-bert", "bert-train", "gap-data"
    tests = ("agreement", "gap")
    gpt = chapter(14, "imports*", *written, definitions=tests)
    bert = chapter(14, "imports*", *written, *filled, definitions=tests)
    own, other = gpt.names(), bert.names()
    return {
        "GPT: the verb after its noun": Arm(
            make=lambda: own.DecoderOnly(own.gpt).to(default_device()),
            learn=partial(learn, batch_of=own.text_batch, agrees=own.verb_agrees),
            rates=(0.008,),
            steps=STEPS_OF_GPT,
            code=gpt.code(ME),
            chapter=14,
        ),
        "BERT: the noun before its verb": Arm(
            make=lambda: other.EncoderOnly(other.turning).to(default_device()),
            learn=partial(learn, batch_of=other.hidden_batch, agrees=other.gap_agrees),
            rates=(0.006,),
            steps=STEPS_OF_BERT,
            code=bert.code(ME),
            chapter=14,
        ),
    }


agreement = Experiment(
    path=HERE / "agreement.json",
    question="When does a word come to agree with one that is not beside it?",
    measure="right",
    scale=1.0,
    arms=arms,
    widens=False,
    seconds=12.0,
)
