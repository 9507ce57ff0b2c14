"""The numbers and the choices that make one model of the family (chapters 14 and 15)."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Literal, get_args

from transformer.checks import (
    check_choice,
    check_finite_and_positive,
    check_pad_id,
    check_positive,
)
from transformer.config import LayerConfig, own_keys
from transformer.layers import FeedForwardKind, NormOrder

LayerType = Literal["sliding_attention", "full_attention"]


@dataclass(frozen=True)
class FamilyConfig(LayerConfig):
    """The sizes and parts of a decoder or an encoder alone; chapters 14 and 15.

    With ``norm`` "pre", what each sub-layer and the output layer read is normalised; with "post"
    each sum: of the embeddings, and after each sub-layer. With ``tie_embeddings`` the output layer
    is the table of embeddings. ``n_token_types`` is BERT's number of segments. All else is as in
    :class:`~transformer.config.LayerConfig`, with defaults that are GPT-2's.

    With a ``window``, a token sees that many of the last tokens, itself included, as in Mistral
    (Jiang et al., 2023): in all layers, or in those that ``layer_types`` calls
    "sliding_attention", such as five of six in Gemma 3 (Gemma Team, 2025), whose angles have the
    base ``local_rope_theta``; at None that of the others. Gemma 3 has ``qk_norm``, too, a
    ``sandwich_norm``, which normalises what each sub-layer gives before it is added, embeddings
    times √d_model (``scale_embeddings``) and heads that are not d_model / n_heads wide, but
    ``head_dim``. Chapters 15 and 16.

    Raises ValueError for a value that no model can have; TypeError for one of the wrong type.
    """

    vocab_size: int
    _: KW_ONLY
    n_layers: int
    dropout: float = 0.0
    norm: NormOrder = "pre"
    feed_forward: FeedForwardKind = "gelu"
    position: str = "learned"  # a word of POSITIONS
    tie_embeddings: bool = True
    n_token_types: int = 0
    window: int | None = None
    layer_types: Sequence[LayerType] | None = None
    local_rope_theta: float | None = None
    head_dim: int | None = None
    qk_norm: bool = False
    sandwich_norm: bool = False
    scale_embeddings: bool = False

    def __post_init__(self) -> None:
        check_positive(vocab_size=self.vocab_size, n_layers=self.n_layers)
        if self.head_dim is not None:
            check_positive(head_dim=self.head_dim)
        self._check_windows()
        super().__post_init__()
        if self.pad_id is not None:
            check_pad_id(self.pad_id, self.vocab_size, self.vocab_size)
        for name in ("tie_embeddings", "qk_norm", "sandwich_norm", "scale_embeddings"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} must be a bool, got {getattr(self, name)!r}")
        if self.sandwich_norm and self.norm != "pre":
            raise ValueError(f"norm must be 'pre' with a sandwich_norm, got {self.norm!r}")
        if not isinstance(self.n_token_types, int) or self.n_token_types < 0:
            raise ValueError(f"n_token_types must be 0 or more, got {self.n_token_types!r}")

    def _check_windows(self) -> None:
        if self.window is not None:
            check_positive(window=self.window)
        if self.local_rope_theta is not None:
            check_finite_and_positive(local_rope_theta=self.local_rope_theta)
        if self.layer_types is None:
            return
        kinds = tuple(self.layer_types)
        object.__setattr__(self, "layer_types", kinds)  # a file has a list
        for kind in kinds:
            check_choice(get_args(LayerType), layer_types=kind)
        if len(kinds) != self.n_layers:
            wanted = f"a kind for each of n_layers = {self.n_layers}"
            raise ValueError(f"layer_types must have {wanted}, got {len(kinds)}")
        if "sliding_attention" in kinds and self.window is None:
            raise ValueError("window must be a number where layer_types has one, got None")

    @property
    def d_k(self) -> int:
        """The width of one head."""
        return super().d_k if self.head_dim is None else self.head_dim

    @property
    def windows(self) -> tuple[int | None, ...]:
        """How many of the last tokens each layer sees; None stands for all."""
        kinds = self.layer_types or ["sliding_attention"] * self.n_layers
        return tuple(self.window if kind == "sliding_attention" else None for kind in kinds)

    def replace(self, **changes: Any) -> "FamilyConfig":
        """A copy with some values changed; with ``n_heads``, each has keys of its own again."""
        return replace(self, **own_keys(changes))

    @classmethod
    def gpt2(cls, vocab_size: int = 50_257, **changes: Any) -> "FamilyConfig":
        """GPT-2, the smallest, 124 million parameters; Radford et al. (2019), Table 2."""
        return cls(vocab_size, **{**_GPT2, **changes})

    @classmethod
    def bert(cls, vocab_size: int = 30_522, **changes: Any) -> "FamilyConfig":
        """BERT base, 110 million parameters; Devlin et al. (2019), section 3."""
        return cls(vocab_size, **{**_BERT, **changes})

    @classmethod
    def modern(cls, vocab_size: int = 49_152, **changes: Any) -> "FamilyConfig":
        """The parts of Llama (Touvron et al., 2023) with grouped keys, 135 million parameters.

        The sizes are those of SmolLM-135M. With another ``n_heads`` and no ``n_key_heads``, each
        head of queries has its own keys.
        """
        return cls(vocab_size, **{**_MODERN, **own_keys(changes)})


_BASE = {"d_model": 768, "n_heads": 12, "n_layers": 12, "d_ff": 3072, "dropout": 0.1}
_GPT2: dict[str, Any] = {**_BASE, "feed_forward": "gelu_tanh", "max_len": 1024}
_BERT: dict[str, Any] = {**_BASE, "norm": "post", "norm_eps": 1e-12, "n_token_types": 2}
_MODERN: dict[str, Any] = {
    "d_model": 576,
    "n_heads": 9,
    "n_key_heads": 3,
    "n_layers": 30,
    "d_ff": 1536,
    "norm_kind": "rms",
    "feed_forward": "swiglu",
    "position": "rotary",
    "bias": False,
    "max_len": 2048,
}
