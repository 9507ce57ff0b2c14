"""The numbers and the choices that make one model of the family (chapters 14 and 15)."""

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

from transformer.checks import check_pad_id, check_positive
from transformer.config import LayerConfig, own_keys
from transformer.layers import FeedForwardKind, NormOrder


@dataclass(frozen=True)
class FamilyConfig(LayerConfig):
    """The sizes and parts of a decoder or an encoder alone; chapters 14 and 15.

    With ``norm`` "pre", what each sub-layer and the output layer read is normalised; with "post"
    each sum: of the embeddings, and after each sub-layer. With ``tie_embeddings`` the output layer
    is the table of embeddings. ``n_token_types`` is BERT's number of segments. All else is as in
    :class:`~transformer.config.LayerConfig`, with defaults that are GPT-2's.

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

    def __post_init__(self) -> None:
        check_positive(vocab_size=self.vocab_size, n_layers=self.n_layers)
        super().__post_init__()
        self._check_size(self.vocab_size, n_layers=self.n_layers)
        if self.pad_id is not None:
            check_pad_id(self.pad_id, self.vocab_size, self.vocab_size)
        if not isinstance(self.tie_embeddings, bool):
            raise TypeError(f"tie_embeddings must be a bool, got {self.tie_embeddings!r}")
        if not isinstance(self.n_token_types, int) or self.n_token_types < 0:
            raise ValueError(f"n_token_types must be 0 or more, got {self.n_token_types!r}")

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
