"""What decoding keeps from one step to the next: the memory, and keys and values (chapter 10)."""

from collections.abc import Callable, Sequence
from inspect import signature
from typing import NamedTuple

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

Rows = Int[Tensor, " N"]  # of the batch, in a new order; one may be named more than once
Heads = Float[Tensor, "B h S d_k"]
Project = Callable[[Tensor, Tensor, int], tuple[Heads, Heads]]


class Memory(NamedTuple):
    """What an encoder makes of a source, with the mask that says which of it are words.

    Chapters 1, 2 and 8. A code, which has no positions, has no mask.
    """

    vectors: Float[Tensor, "B *rest"]
    mask: Bool[Tensor, "B *rest"] | None = None

    def select(self, rows: Rows) -> "Memory":
        """Of these sentences, in this order."""
        return Memory(self.vectors[rows], None if self.mask is None else self.mask[rows])


class KeyValueCache:
    """The keys and values of one self-attention, more of them at each step; chapter 10.

    Room for ``max_len`` positions is set aside at once: a step writes one and copies none.
    """

    def __init__(self, max_len: int):
        self.max_len, self.length = max_len, 0  # how many positions it can hold, and holds
        self.keys: Heads | None = None  # until the first step brings their sizes
        self.values: Heads | None = None

    def extend(self, project: Project, key: Tensor, value: Tensor) -> tuple[Heads, Heads]:
        """Adds the keys and values that ``project`` makes of new positions; returns all so far.

        Raises ValueError past the room.
        """
        k, v = project(key, value, self.length)
        start, T = self.length, k.size(2)
        if start + T > self.max_len:
            raise ValueError(f"the cache has room for {self.max_len} positions, got {start + T}")
        if self.keys is None or self.values is None:
            B, h, _, d_k = k.shape
            self.keys, self.values = (k.new_empty(B, h, self.max_len, d_k) for _ in range(2))
        self.keys.narrow(2, start, T).copy_(k)
        self.values.narrow(2, start, T).copy_(v)
        self.length += T
        return self.keys.narrow(2, 0, self.length), self.values.narrow(2, 0, self.length)

    def select(self, rows: Rows) -> None:
        """Keeps these rows of the batch, in this order."""
        if self.keys is not None and self.values is not None:
            self.keys, self.values = self.keys[rows], self.values[rows]


class MemoryCache:
    """The keys and values of a memory: projected at the first step, the same at all; chapter 10."""

    length = 0  # the queries that look into a memory have no place in it

    def __init__(self):
        self.kept: tuple[Heads, Heads] | None = None

    def extend(self, project: Project, key: Tensor, value: Tensor) -> tuple[Heads, Heads]:
        """The keys and values of the memory, which ``project`` makes once."""
        if self.kept is None:
            self.kept = project(key, value, 0)
        return self.kept

    def select(self, rows: Rows) -> None:
        """Keeps these rows of the batch, in this order."""
        if self.kept is not None:
            keys, values = self.kept
            self.kept = keys[rows], values[rows]


AttentionCache = KeyValueCache | MemoryCache


def takes_cache(part: nn.Module) -> bool:
    """Whether the ``forward`` of an attention, or of a layer, takes the keyword ``cache``."""
    parameters = signature(part.forward).parameters.values()
    return any(p.name == "cache" or p.kind is p.VAR_KEYWORD for p in parameters)


class LayerCache:
    """What one decoder layer keeps: of itself all that it has read, of the memory one copy."""

    def __init__(self, max_len: int):
        self.self_attention = KeyValueCache(max_len)
        self.cross_attention = MemoryCache()

    @property
    def length(self) -> int:
        return self.self_attention.length

    def select(self, rows: Rows) -> None:
        self.self_attention.select(rows)
        self.cross_attention.select(rows)


class DecodingState:
    """All that a model keeps while it writes: its memory, if it reads a source, and its caches."""

    def __init__(self, memory: Memory | None, caches: Sequence[LayerCache | KeyValueCache]):
        self.memory, self.caches = memory, caches

    @property
    def length(self) -> int:
        """The number of positions written so far."""
        return self.caches[0].length

    def select(self, rows: Rows) -> None:
        """Keeps these sentences, in this order; one may be named more than once."""
        if self.memory is not None:
            self.memory = self.memory.select(rows)
        for cache in self.caches:
            cache.select(rows)
