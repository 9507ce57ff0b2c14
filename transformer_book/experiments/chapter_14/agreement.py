"""Chapter 14: number that another word tells, to a GPT before and to a BERT behind."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import torch
from torch import nn

from transformer_book.experiments.cells import chapter
from transformer_book.experiments.experiment import Arm, Experiment, Make, Plan
from transformer_book.experiments.runs import Measures

HERE, ME = Path(__file__).parent, "transformer_book.experiments.chapter_14.agreement"
STEPS_OF_GPT, STEPS_OF_BERT = (0, 100, 200, 400, 600), (0, 200, 400, 600, 800, 1000)
LossOf = Callable[[nn.Module], torch.Tensor]


def learn(
    make: Make,
    plan: Plan,
    *,
    cell: SimpleNamespace,
    loss_of: LossOf,
    agrees: Callable[[nn.Module], float],
) -> Iterator[tuple[int, Measures]]:
    """The chapter's training, looked into on the way."""
    model, n_steps = make(), max(plan.steps)
    points: dict[int, Measures] = {}

    def look(step: int) -> None:
        if step in plan.steps:
            points[step] = {"right": agrees(model)}

    cell.train(model, loss_of, lr=plan.lr, n_steps=n_steps, look=look)
    look(n_steps)
    yield from points.items()


def arms() -> dict[str, Arm]:
    written = "gpt-text", "gpt-parts", "questions"
    filled = "bert-model", "your-turn-hide", "solution-your-turn-hide", "use-hide"
    gpt = chapter(14, "imports*", *written, definitions=("train", "next-words", "agreement"))
    bert = chapter(14, "imports*", *written, *filled, definitions=("train", "gap"))
    own, other = gpt.names(), bert.names()
    return {
        "GPT: the verb after its noun": Arm(
            make=lambda: own.DecoderOnly(own.gpt),
            learn=partial(learn, cell=own, loss_of=own.next_words, agrees=own.verb_agrees),
            rates=(0.008,),
            steps=STEPS_OF_GPT,
            code=gpt.code(ME),
            chapter=14,
        ),
        "BERT: the noun before its verb": Arm(
            make=lambda: other.EncoderOnly(other.bert),
            learn=partial(learn, cell=other, loss_of=other.hidden_words, agrees=other.gap_agrees),
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
