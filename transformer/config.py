"""The numbers and the choices that make one model (chapters 8, 14, 15)."""

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, get_args

import torch

from transformer.checks import (
    check_choice,
    check_finite_and_positive,
    check_heads,
    check_pad_id,
    check_positive,
    check_share,
)
from transformer.layers import FeedForwardKind, NormKind, NormOrder
from transformer.positional import POSITIONS, Positions


@dataclass(frozen=True, kw_only=True)
class LayerConfig:
    """The sizes and parts of a layer, in every model of this book; chapters 8, 14, 15.

    ``norm`` puts the normalisation after each residual sum, as the paper does, or before each
    sub-layer; ``norm_kind`` says which it is. ``n_key_heads`` heads of keys and values share out
    the ``n_heads`` of queries; at None there are as many. ``bias`` is that of the linear layers,
    ``rope_theta`` the base of rotary angles, ``max_len`` the longest sequence, in tokens. Tokens
    equal to ``pad_id`` are padding, and nothing attends to them; at None every token is text.

    Raises ValueError for a value that no model can have; TypeError for one of the wrong type.
    """

    d_model: int
    n_heads: int
    d_ff: int
    n_key_heads: int | None = None
    dropout: float = 0.1
    norm: NormOrder = "post"
    norm_kind: NormKind = "layer"
    norm_eps: float = 1e-5
    feed_forward: FeedForwardKind = "relu"
    bias: bool = True
    position: str = "sinusoidal"  # a word of POSITIONS
    rope_theta: float = 10_000.0
    max_len: int = 512
    pad_id: int | None = 0

    def __post_init__(self) -> None:
        check_positive(d_ff=self.d_ff, max_len=self.max_len)
        check_heads(self.d_model, self.n_heads, self.n_key_heads)
        check_share(dropout=self.dropout)
        check_choice(get_args(NormOrder), norm=self.norm)
        check_choice(get_args(NormKind), norm_kind=self.norm_kind)
        check_choice(get_args(FeedForwardKind), feed_forward=self.feed_forward)
        check_choice(POSITIONS, position=self.position)
        check_finite_and_positive(norm_eps=self.norm_eps, rope_theta=self.rope_theta)
        if not isinstance(self.bias, bool):
            raise TypeError(f"bias must be a bool, got {self.bias!r}")
        with torch.device("meta"):  # the kind of positions knows itself what sizes it can have
            self.positions_at_embedding(), self.positions_in_attention()

    @property
    def d_k(self) -> int:
        """The width of one head."""
        return self.d_model // self.n_heads

    def positions_at_embedding(self) -> Positions:
        """The positions that an embedding adds, as its module."""
        return POSITIONS[self.position].at_embedding(max_len=self.max_len, d_model=self.d_model)

    def positions_in_attention(self) -> Positions:
        """The positions that all self-attentions of a stack share, as one module."""
        return POSITIONS[self.position].in_attention(
            max_len=self.max_len, d_k=self.d_k, n_heads=self.n_heads, theta=self.rope_theta
        )


def own_keys(changes: dict[str, Any]) -> dict[str, Any]:
    """The changes of a config; another number of heads gives each its own keys, unless they say."""
    return {"n_key_heads": None, **changes} if "n_heads" in changes else changes


@dataclass(frozen=True)
class TransformerConfig(LayerConfig):
    """The sizes of an encoder-decoder; the defaults are the base model of Vaswani et al. (2017).

    Table 3, first row; chapter 8. ``share_embeddings`` makes one table of the two embeddings and
    the output layer, as in section 3.4 of the paper; left at None it is on where both vocabularies
    are of one size. All else is as in :class:`LayerConfig`.

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
    share_embeddings: bool | None = None

    def __post_init__(self) -> None:
        check_positive(
            src_vocab_size=self.src_vocab_size,
            tgt_vocab_size=self.tgt_vocab_size,
            n_encoder_layers=self.n_encoder_layers,
            n_decoder_layers=self.n_decoder_layers,
        )
        super().__post_init__()
        if self.pad_id is not None:
            check_pad_id(self.pad_id, self.src_vocab_size, self.tgt_vocab_size)
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

    def replace(self, **changes: Any) -> "TransformerConfig":
        """A copy with some values changed; with a vocabulary, sharing is decided anew.

        With ``n_heads``, each has keys of its own again.
        """
        if changes.keys() & {"src_vocab_size", "tgt_vocab_size"}:
            changes = {"share_embeddings": None, **changes}
        return replace(self, **own_keys(changes))

    @classmethod
    def tiny(cls, src_vocab_size: int, tgt_vocab_size: int, **changes: Any) -> "TransformerConfig":
        """Two layers of width 64: for a first try, in seconds on a CPU."""
        return cls(src_vocab_size, tgt_vocab_size, **{**_TINY, **changes})

    @classmethod
    def small(cls, src_vocab_size: int, tgt_vocab_size: int, **changes: Any) -> "TransformerConfig":
        """Two layers of width 128: translates short sentences after minutes on a CPU."""
        return cls(src_vocab_size, tgt_vocab_size, **{**_SMALL, **changes})

    @classmethod
    def base(cls, src_vocab_size: int, tgt_vocab_size: int, **changes: Any) -> "TransformerConfig":
        """The paper's base model, 63 million parameters with its 37,000 tokens; Table 3 says 65."""
        return cls(src_vocab_size, tgt_vocab_size, **changes)

    @classmethod
    def big(cls, src_vocab_size: int, tgt_vocab_size: int, **changes: Any) -> "TransformerConfig":
        """The paper's big model, 214 million parameters with 37,000 tokens; Table 3: 213."""
        return cls(src_vocab_size, tgt_vocab_size, **{**_BIG, **changes})


_TINY = {"d_model": 64, "n_heads": 4, "n_encoder_layers": 2, "n_decoder_layers": 2, "d_ff": 256}
_SMALL = {"d_model": 128, "n_heads": 4, "n_encoder_layers": 2, "n_decoder_layers": 2, "d_ff": 512}
_BIG: dict[str, Any] = {"d_model": 1024, "n_heads": 16, "d_ff": 4096, "dropout": 0.3}
