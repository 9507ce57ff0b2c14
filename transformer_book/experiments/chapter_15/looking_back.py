"""Chapter 15: why rotary positions have less loss, asked where no head needs to look back.

In the blocks' language the last two symbols decide, so that a head must look one place back. Two
controls take that away: a language in which the last symbol decides, which each place reads itself,
and the blocks' language with the symbol before handed to each place. Two others take away what
learned positions put into the stream: at the start, or for good.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from transformer.cache import KeyValueCache
from transformer.data.tokens import PAD_ID
from transformer.family import DecoderOnly, FamilyConfig
from transformer.masks import decoder_mask, word_positions
from transformer_book.experiments.cells import code_of
from transformer_book.experiments.experiment import Arm, Experiment
from transformer_book.experiments.family.experiment import learn
from transformer_book.experiments.family.language import N_SYMBOLS
from transformer_book.experiments.family.models import block_config
from transformer_book.experiments.imports import Import

HERE, ME = Path(__file__).parent, "transformer_book.experiments.chapter_15.looking_back"
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


def from_zero_arms() -> dict[str, Arm]:
    """At the two rates that did best with three tuning seeds, and on average equally well."""
    return {
        f"rate {lr}": Arm(
            make=partial(FromZero, block_config("base")),
            learn=partial(learn, order=2),
            rates=(lr,),
            steps=(1000,),
            code=code_of([], [Import(ME)]),
            chapter=15,
        )
        for lr in (0.004, 0.008)
    }


def arms() -> dict[str, Arm]:
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
            make=partial(made, config.replace(vocab_size=N_SYMBOLS[order] + 1)),
            learn=partial(learn, order=order),
            rates=(0.002, 0.004, 0.008),
            steps=(1000,),
            code=code_of([], [Import(ME)]),
            chapter=15,
        )
        for kind, (order, some) in kinds.items()
        for name, (made, config) in some.items()
    }


looking_back = Experiment(
    path=HERE / "looking_back.json",
    question="Do rotary positions have less loss where no head needs to look back?",
    measure="excess",
    lower_is_better=True,
    arms=arms,
    seconds=12.0,
)
from_zero = Experiment(
    path=HERE / "from_zero.json",
    question="Is the way back found where learned positions begin with nothing?",
    measure="excess",
    lower_is_better=True,
    arms=from_zero_arms,
    widens=False,
    seconds=12.0,
)
