"""Chapter 15: experts in the blocks' language, where there is little to know by heart.

Eight networks of the size that the block of today has there, of which a word reads one, and one
network that is eight times as wide. The block with a single one is ``blocks``' arm "all".
"""

from functools import partial

from torch import Tensor, nn

from transformer.family import DecoderOnly
from transformer_book.experiments import Make, experiment
from transformer_book.experiments.chapter_15.experts import N_EXPERTS, Experts
from transformer_book.experiments.family.experiment import curve
from transformer_book.experiments.family.models import block_config


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


@experiment(
    "What are eight experts worth in a text of which little is known by heart?",
    measure="excess",
    lower_is_better=True,
    curve=partial(curve, order=2),
    rates=(0.002, 0.004, 0.008),
    steps=(1000,),
)
def experts_in_text() -> dict[str, Make]:
    names = "eight experts, one is read", "one as large as eight"
    return {name: partial(small_model, name) for name in names}
