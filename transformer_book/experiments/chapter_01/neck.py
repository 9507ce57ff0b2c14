"""The translator through one code, with a wider code."""

from functools import partial
from pathlib import Path

import torch
from jaxtyping import Int
from torch import Tensor

from transformer.cache import Memory
from transformer.recurrent import Seq2Seq
from transformer_book.experiments.cells import code_of
from transformer_book.experiments.experiment import Arm, Experiment
from transformer_book.experiments.imports import Import
from transformer_book.experiments.translator.data import corpus
from transformer_book.experiments.translator.experiment import learn
from transformer_book.experiments.translator.learning import N_STEPS


class Narrow(Seq2Seq):
    """Hands over as much as the page's translator: 64 numbers of h and 64 of c, the rest is 0."""

    def encode(self, src: Int[Tensor, "B S"]) -> Memory:
        code = super().encode(src).vectors
        place = torch.arange(code.size(-1), device=code.device) % (code.size(-1) // 2)
        return Memory(code * (place < 64))  # in h, and again in c


def neck_arms() -> dict[str, Arm]:
    sizes = len(corpus().english), len(corpus().french)
    rates, code = (0.0025, 0.005, 0.01), code_of([], [Import(__name__)])
    return {
        name: Arm(
            make=partial(kind, *sizes, d_model=64, hidden_size=256),
            learn=learn,
            rates=rates,
            steps=(N_STEPS,),
            code=code,
            chapter=1,
        )
        for name, kind in {
            "state of 256": Seq2Seq,
            "state of 256, 64 of it handed over": Narrow,
        }.items()
    }


neck = Experiment(
    path=Path(__file__).with_name("neck.json"),
    question="Does a translator through one code gain by a wider code?",
    measure="exact",
    scale=1.0,
    judged_by=("exact", "bleu"),
    arms=neck_arms,
    seconds=25.0,
)
