"""Chapter 15: what is left of a block's lead after two and four times the steps."""

from functools import partial
from pathlib import Path

from transformer.family import DecoderOnly
from transformer_book.experiments.cells import code_of
from transformer_book.experiments.experiment import Arm, Experiment
from transformer_book.experiments.family.experiment import learn
from transformer_book.experiments.family.models import block_config
from transformer_book.experiments.imports import Import

HERE, ME = Path(__file__).parent, "transformer_book.experiments.chapter_15.blocks_longer"
NAMES = ("base", "rotary")
STEPS = (2000, 4000)
RATE = 0.004  # the best of both after 1,000 steps


def arms() -> dict[str, Arm]:
    return {
        name: Arm(
            make=partial(DecoderOnly, block_config(name)),
            learn=partial(learn, order=2),
            rates=(RATE,),
            steps=STEPS,
            code=code_of([], [Import(ME)]),
            chapter=15,
        )
        for name in NAMES
    }


blocks_longer = Experiment(
    path=HERE / "blocks_longer.json",
    question="Does a part's lead stay when all models are trained four times as long?",
    measure="excess",
    lower_is_better=True,
    arms=arms,
    seeds=(0, 1),
    widens=False,
    seconds=60.0,
)
