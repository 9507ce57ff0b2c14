"""The numbers and the choices that make one model of the family (chapter 14)."""

from dataclasses import KW_ONLY, dataclass, replace
from typing import Literal, get_args

import torch

from transformer.checks import (
    check_choice,
    check_finite_and_positive,
    check_heads,
    check_pad_id,
    check_positive,
    check_share,
)
from transformer.family.parts import RotaryPositions
from transformer.layers import NormOrder
from transformer.positional import POSITIONS, Positions

NormKind = Literal["layer", "rms"]
FeedForwardKind = Literal["relu", "gelu", "gelu_tanh", "swiglu"]


@dataclass(frozen=True)
class FamilyConfig:
    """The sizes and parts of a decoder or an encoder alone; chapter 14.

    ``n_key_heads`` heads of keys and values share out the ``n_heads`` of queries; left at None
    there are as many. ``norm_order`` "pre" normalises what each sub-layer and the output layer
    read, "post" each sum: of the embeddings, and after each sub-layer. ``bias`` is that of the
    linear layers; ``rope_theta`` the base of rotary angles. With ``tie_embeddings`` the output
    layer is the table of embeddings. ``n_token_types`` is BERT's number of segments.

    Raises ValueError for a value that no model can have; TypeError for one of the wrong type.
    """

    vocab_size: int
    _: KW_ONLY
    d_model: int
    n_heads: int
    n_layers: int
    d_ff: int
    n_key_heads: int | None = None
    norm: NormKind = "layer"
    norm_order: NormOrder = "pre"
    norm_eps: float = 1e-5
    feed_forward: FeedForwardKind = "gelu"
    position: str = "learned"  # a word of POSITIONS
    rope_theta: float = 10_000.0
    bias: bool = True
    dropout: float = 0.0
    max_len: int = 512
    pad_id: int = 0
    tie_embeddings: bool = True
    n_token_types: int = 0

    def __post_init__(self):
        check_positive(**{name: getattr(self, name) for name in _SIZES})
        check_heads(self.d_model, self.n_heads)
        if self.n_key_heads is None:
            object.__setattr__(self, "n_key_heads", self.n_heads)
        check_positive(n_key_heads=self.n_key_heads)
        if self.n_heads % self.n_key_heads:
            raise ValueError(
                "n_heads must be a multiple of n_key_heads, "
                f"got {self.n_heads} and {self.n_key_heads}"
            )
        check_choice(get_args(NormKind), norm=self.norm)
        check_choice(get_args(NormOrder), norm_order=self.norm_order)
        check_choice(get_args(FeedForwardKind), feed_forward=self.feed_forward)
        check_choice(POSITIONS, position=self.position)
        check_finite_and_positive(norm_eps=self.norm_eps, rope_theta=self.rope_theta)
        check_share(dropout=self.dropout)
        check_pad_id(self.pad_id, self.vocab_size, self.vocab_size)
        for name in ("bias", "tie_embeddings"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} must be a bool, got {getattr(self, name)!r}")
        if not isinstance(self.n_token_types, int) or self.n_token_types < 0:
            raise ValueError(f"n_token_types must be 0 or more, got {self.n_token_types!r}")
        with torch.device("meta"):  # the kind of positions knows itself what sizes it can have
            self.positions_at_embedding(), self.positions_in_attention()

    @property
    def d_k(self) -> int:
        """The width of one head."""
        return self.d_model // self.n_heads

    def positions_at_embedding(self) -> Positions:
        """What an embedding keeps."""
        return POSITIONS[self.position].at_embedding(max_len=self.max_len, d_model=self.d_model)

    def positions_in_attention(self) -> Positions:
        """What the self-attentions of all layers share."""
        if self.position == "rotary":
            return RotaryPositions(self.max_len, self.d_k, theta=self.rope_theta)
        kind = POSITIONS[self.position]
        return kind.in_attention(max_len=self.max_len, d_k=self.d_k, n_heads=self.n_heads)

    def replace(self, **changes) -> "FamilyConfig":
        """A copy with some values changed; with ``n_heads``, those of keys are decided anew."""
        if "n_heads" in changes:
            changes = {"n_key_heads": None, **changes}
        return replace(self, **changes)

    @classmethod
    def gpt2(cls, vocab_size: int = 50_257, **changes) -> "FamilyConfig":
        """GPT-2, the smallest, 124 million parameters; Radford et al. (2019), Table 2."""
        return cls(vocab_size, **{**_GPT2, **changes})

    @classmethod
    def bert(cls, vocab_size: int = 30_522, **changes) -> "FamilyConfig":
        """BERT base, 110 million parameters; Devlin et al. (2019), section 3."""
        return cls(vocab_size, **{**_BERT, **changes})

    @classmethod
    def modern(cls, vocab_size: int = 49_152, **changes) -> "FamilyConfig":
        """The parts of Llama (Touvron et al., 2023) with grouped keys, 135 million parameters.

        The sizes are those of SmolLM-135M. With another ``n_heads`` and no ``n_key_heads``, each
        head of queries has its own keys.
        """
        if "n_heads" in changes:
            changes = {"n_key_heads": None, **changes}
        return cls(vocab_size, **{**_MODERN, **changes})


_SIZES = ("vocab_size", "d_model", "n_heads", "n_layers", "d_ff", "max_len")
_BASE = {"d_model": 768, "n_heads": 12, "n_layers": 12, "d_ff": 3072, "dropout": 0.1}
_GPT2 = {**_BASE, "feed_forward": "gelu_tanh", "max_len": 1024}
_BERT = {**_BASE, "norm_order": "post", "norm_eps": 1e-12, "n_token_types": 2}
_MODERN = {
    **{"d_model": 576, "n_heads": 9, "n_key_heads": 3, "n_layers": 30, "d_ff": 1536},
    **{"norm": "rms", "feed_forward": "swiglu", "position": "rotary", "bias": False},
    "max_len": 2048,
}
