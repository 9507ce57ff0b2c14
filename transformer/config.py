"""The numbers that make one Transformer (chapter 8)."""

from dataclasses import KW_ONLY, dataclass, replace
from typing import get_args

import torch

from transformer.checks import check_choice, check_heads, check_pad_id, check_positive, check_share
from transformer.layers import NormOrder
from transformer.positional import POSITIONS


@dataclass(frozen=True)
class TransformerConfig:
    """The sizes of an encoder-decoder; the defaults are the base model of Vaswani et al. (2017).

    Table 3, first row; chapter 8. ``norm`` puts the normalisation after each residual sum, as the
    paper does, or before each sub-layer; ``max_len`` is the longest sequence, in tokens.
    ``share_embeddings`` makes one table of the two embeddings and the output layer, as in section
    3.4 of the paper; left at None it is on where both vocabularies are of one size.

    Raises ValueError for a value that no model can have; TypeError for one of the wrong type.
    """

    src_vocab_size: int
    tgt_vocab_size: int
    _: KW_ONLY
    d_model: int = 512
    n_heads: int = 8
    n_encoder_layers: int = 6
    n_decoder_layers: int = 6
    d_ff: int = 2048
    dropout: float = 0.1
    norm: NormOrder = "post"
    position: str = "sinusoidal"  # a word of POSITIONS
    max_len: int = 512
    pad_id: int = 0
    share_embeddings: bool | None = None

    def __post_init__(self):
        check_positive(**{name: getattr(self, name) for name in _SIZES})
        check_heads(self.d_model, self.n_heads)
        check_share(dropout=self.dropout)
        check_choice(get_args(NormOrder), norm=self.norm)
        check_choice(POSITIONS, position=self.position)
        check_pad_id(self.pad_id, self.src_vocab_size, self.tgt_vocab_size)
        kind = POSITIONS[self.position]  # which knows itself what sizes it can have
        with torch.device("meta"):
            kind.at_embedding(max_len=self.max_len, d_model=self.d_model)
            kind.in_attention(max_len=self.max_len, d_k=self.d_k, n_heads=self.n_heads)
        if self.share_embeddings not in (None, True, False):
            raise TypeError(f"share_embeddings must be a bool, got {self.share_embeddings!r}")
        one_size = self.src_vocab_size == self.tgt_vocab_size
        if self.share_embeddings is None:
            object.__setattr__(self, "share_embeddings", one_size)
        if self.share_embeddings and not one_size:
            raise ValueError(
                "share_embeddings must be False for vocabularies of two sizes, "
                f"got {self.src_vocab_size} and {self.tgt_vocab_size}"
            )

    @property
    def d_k(self) -> int:
        """The width of one head."""
        return self.d_model // self.n_heads

    def replace(self, **changes) -> "TransformerConfig":
        """A copy with some values changed; with a vocabulary, sharing is decided anew."""
        if changes.keys() & {"src_vocab_size", "tgt_vocab_size"}:
            changes = {"share_embeddings": None, **changes}
        return replace(self, **changes)

    @classmethod
    def tiny(cls, src_vocab_size: int, tgt_vocab_size: int, **changes) -> "TransformerConfig":
        """Two layers of width 64: for a first try, in seconds on a CPU."""
        return cls(src_vocab_size, tgt_vocab_size, **{**_TINY, **changes})

    @classmethod
    def small(cls, src_vocab_size: int, tgt_vocab_size: int, **changes) -> "TransformerConfig":
        """Two layers of width 128: translates short sentences after minutes on a CPU."""
        return cls(src_vocab_size, tgt_vocab_size, **{**_SMALL, **changes})

    @classmethod
    def base(cls, src_vocab_size: int, tgt_vocab_size: int, **changes) -> "TransformerConfig":
        """The paper's base model, 63 million parameters with its 37,000 tokens; Table 3 says 65."""
        return cls(src_vocab_size, tgt_vocab_size, **changes)

    @classmethod
    def big(cls, src_vocab_size: int, tgt_vocab_size: int, **changes) -> "TransformerConfig":
        """The paper's big model, 214 million parameters with 37,000 tokens; Table 3: 213."""
        return cls(src_vocab_size, tgt_vocab_size, **{**_BIG, **changes})


_SIZES = (
    "src_vocab_size",
    "tgt_vocab_size",
    "d_model",
    "n_heads",
    "n_encoder_layers",
    "n_decoder_layers",
    "d_ff",
    "max_len",
)
_TINY = {"d_model": 64, "n_heads": 4, "n_encoder_layers": 2, "n_decoder_layers": 2, "d_ff": 256}
_SMALL = {"d_model": 128, "n_heads": 4, "n_encoder_layers": 2, "n_decoder_layers": 2, "d_ff": 512}
_BIG = {"d_model": 1024, "n_heads": 16, "d_ff": 4096, "dropout": 0.3}
