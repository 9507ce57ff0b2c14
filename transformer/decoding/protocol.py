"""What decoding needs of a model: any that has these can be decoded (chapter 10)."""

from collections.abc import Iterator
from typing import Any, Protocol, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor, nn

Logits = Float[Tensor, "B vocab"]


@runtime_checkable
class Selectable(Protocol):
    """A memory, or the state of a decoder: it holds a row for each sentence."""

    def select(self, rows: Int[Tensor, " N"]) -> Any:
        """Selects these sentences, in this order; one may be named more than once.

        A memory returns a memory of them; a state keeps them, and no others.
        """


@runtime_checkable
class Decodable(Protocol):
    """A ``torch.nn.Module`` that writes one token after another.

    ``src`` is what it has read before: the source, or the prompt of a model without one.
    """

    @property
    def pad_id(self) -> int | None:
        """The id that fills a sentence which has ended, and is never written; at None, its end."""
        ...

    @property
    def max_len(self) -> int: ...

    @property
    def tgt_vocab_size(self) -> int: ...

    @property
    def takes_cache(self) -> bool:
        """Whether ``start_decoding`` and ``decode_next`` are to be had; else it decodes without."""
        ...

    def encode(self, src: Int[Tensor, "B S"]) -> Any:
        """The memory, which is :class:`Selectable`."""

    def decode(self, tgt: Int[Tensor, "B T"], memory: Any) -> Float[Tensor, "B T vocab"]:
        """The logits of the token after each of ``tgt``."""

    def start_decoding(self, src: Int[Tensor, "B S"], *, max_len: int) -> Any:
        """A :class:`Selectable` state, with room for ``max_len`` tokens."""

    def decode_next(self, tokens: Int[Tensor, " B"], state: Any) -> Logits:
        """The logits after one more token of each sentence; ``state`` grows by it."""

    def modules(self) -> Iterator[nn.Module]: ...

    def eval(self) -> Any: ...
