"""Chapter 15: what is left of a block's lead after two and four times the steps."""

from functools import partial

from transformer.family import DecoderOnly
from transformer_book.experiments import Make, experiment
from transformer_book.experiments.family.experiment import curve
from transformer_book.experiments.family.models import block_config


@experiment(
    "Does a part's lead stay when all models are trained four times as long?",
    measure="excess",
    lower_is_better=True,
    curve=partial(curve, order=2),
    rates=(0.004,),  # the best of both after 1,000 steps
    steps=(2000, 4000),
    seeds=(0, 1),
    widens=False,
)
def blocks_longer() -> dict[str, Make]:
    return {name: partial(DecoderOnly, block_config(name)) for name in ("base", "rotary")}
