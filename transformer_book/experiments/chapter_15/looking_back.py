"""Chapter 15: why rotary positions have less loss, asked where no head needs to look back.

In the blocks' language the last two symbols decide, so that a head must look one place back. Two
controls take that away: a language in which the last symbol decides, which each place reads itself,
and the blocks' language with the symbol before handed to each place. Two others take away what
learned positions put into the stream: at the start, or for good.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

from torch import Tensor, nn

from transformer.cache import KeyValueCache
from transformer.data.tokens import PAD_ID
from transformer.family import DecoderOnly, FamilyConfig
from transformer.masks import decoder_mask, word_positions
from transformer_book.experiments import Arm, experiment
from transformer_book.experiments.family.experiment import curve
from transformer_book.experiments.family.language import N_SYMBOLS
from transformer_book.experiments.family.models import block_config

NAMES = ("base", "rotary")


class Handed(DecoderOnly):
    """A decoder whose places get the vector of the symbol before, too, so that no head must."""

    def __init__(self, config: FamilyConfig):
        super().__init__(config)
        self.before = nn.Embedding(config.vocab_size, config.d_model)
        nn.init.normal_(self.before.weight, std=config.d_model**-0.5)  # as the tokens

    def read(
        self, tokens: Tensor, words: Tensor, caches: Sequence[KeyValueCache] | None = None
    ) -> Tensor:
        """The logits after each token; there is none before the first."""
        before = nn.functional.pad(tokens[:, :-1], (1, 0), value=PAD_ID)
        x = self.embedding(tokens, word_positions(words)) + self.before(before)
        return self.output(self.run(x, decoder_mask(words), caches))


class FromZero(DecoderOnly):
    """A decoder whose learned positions begin with nothing, and not as large as the tokens."""

    def __init__(self, config: FamilyConfig):
        super().__init__(config)
        for table in self.embedding.positions.parameters():
            nn.init.zeros_(table)


@experiment(
    "Is the way back found where learned positions begin with nothing?",
    measure="excess",
    lower_is_better=True,
    curve=partial(curve, order=2),
    steps=(1000,),
    widens=False,
)
def from_zero() -> dict[str, Arm]:
    # the two rates that did best with three tuning seeds, and on average equally well
    make = partial(FromZero, block_config("base"))
    return {f"rate {lr}": Arm(make, rates=(lr,)) for lr in (0.004, 0.008)}


@experiment(
    "Do rotary positions have less loss where no head needs to look back?",
    measure="excess",
    lower_is_better=True,
    rates=(0.002, 0.004, 0.008),
    steps=(1000,),
)
def looking_back() -> dict[str, Arm]:
    no_positions = block_config("rotary").replace(position="none")  # of rotary's size
    models = {name: (DecoderOnly, block_config(name)) for name in NAMES}
    none = {"none": (DecoderOnly, no_positions)}
    others = {"from zero": (FromZero, block_config("base"))} | none
    kinds: dict[str, tuple[int, dict[str, Any]]] = {
        "the last symbol decides": (1, models | others),
        "handed": (2, {name: (Handed, config) for name, (_, config) in models.items()}),
        "the last two decide": (2, none),  # the rest is in ``blocks`` and ``from_zero``
    }
    return {
        f"{kind}, {name}": Arm(
            partial(made, config.replace(vocab_size=N_SYMBOLS[order] + 1)),
            curve=partial(curve, order=order),
        )
        for kind, (order, some) in kinds.items()
        for name, (made, config) in some.items()
    }
