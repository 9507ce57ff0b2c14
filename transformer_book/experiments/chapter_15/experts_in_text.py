"""Chapter 15: experts in the blocks' language, where there is little to know by heart.

Eight networks of the size that the block of today has there, of which a word reads one, and one
network that is eight times as wide. The block with a single one is ``blocks``' arm "all".
"""

from functools import partial
from pathlib import Path

from torch import Tensor, nn

from transformer.family import DecoderOnly
from transformer_book.experiments.cells import code_of
from transformer_book.experiments.chapter_15.experts import N_EXPERTS, Experts
from transformer_book.experiments.experiment import Arm, Experiment
from transformer_book.experiments.family.experiment import learn
from transformer_book.experiments.family.models import block_config
from transformer_book.experiments.imports import Import

HERE, ME = Path(__file__).parent, "transformer_book.experiments.chapter_15.experts_in_text"


class ForEachWord(nn.Module):
    """A layer of rows, for the words of many texts."""

    def __init__(self, layer: nn.Module):
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x.flatten(0, -2)).view_as(x)


def small_model(name: str) -> DecoderOnly:
    """The model of an arm."""
    config = block_config("all")
    if name == "one as large as eight":
        return DecoderOnly(config.replace(d_ff=N_EXPERTS * config.d_ff))
    model = DecoderOnly(config)
    for block in model.blocks:
        block.feed_forward = ForEachWord(Experts(config.d_model, config.d_ff, N_EXPERTS))
    return model


def arms() -> dict[str, Arm]:
    return {
        name: Arm(
            make=partial(small_model, name),
            learn=partial(learn, order=2),
            rates=(0.002, 0.004, 0.008),
            steps=(1000,),
            code=code_of([], [Import(ME)]),
            chapter=15,
        )
        for name in ("eight experts, one is read", "one as large as eight")
    }


experts_in_text = Experiment(
    path=HERE / "experts_in_text.json",
    question="What are eight experts worth in a text of which little is known by heart?",
    measure="excess",
    lower_is_better=True,
    arms=arms,
    seconds=20.0,
)
