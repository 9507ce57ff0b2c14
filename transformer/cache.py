"""What decoding keeps from one step to the next: the memory, and keys and values (chapter 10).

A decoder writes one token at a time. Whatever it has worked out for the tokens before stays true,
since no token sees a later one; so each attention keeps the keys and values that it has made, and a
step makes those of one token. The classes below, from the inside out: the cache of one attention,
that of one layer, and the state of the whole model. All of them can :meth:`select` rows, because a
search drops sentences that have ended, and goes on twice from a beam that it likes.
"""

from collections.abc import Sequence
from typing import NamedTuple

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

Rows = Int[Tensor, " N"]  # of the batch, in a new order; one may be named more than once
New = Float[Tensor, "B h T d_k"]  # keys or values of T new positions
Heads = Float[Tensor, "B h S d_k"]  # and of all S so far


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

    def update(self, k: New, v: New) -> tuple[Heads, Heads]:
        """Adds the keys and values of new positions; returns those of all positions so far.

        Raises ValueError past the room.
        """
        start, end = self.length, self.length + k.size(2)
        if end > self.max_len:
            raise ValueError(f"the cache has room for {self.max_len} positions, got {end}")
        # The first step sets all the room aside. What stands in it is never read before it is
        # written, so that it need not be cleared.
        if self.keys is None or self.values is None:
            B, h, _, d_k = k.shape
            self.keys, self.values = (k.new_empty(B, h, self.max_len, d_k) for _ in range(2))
        # narrow(2, start, n) is [:, :, start : start + n]: a view, so that the room itself is
        # written to, and what is returned copies nothing.
        self.keys.narrow(2, start, end - start).copy_(k)
        self.values.narrow(2, start, end - start).copy_(v)
        self.length = end
        return self.keys.narrow(2, 0, end), self.values.narrow(2, 0, end)

    def select(self, rows: Rows) -> None:
        """Keeps these rows of the batch, in this order."""
        if self.keys is not None and self.values is not None:
            self.keys, self.values = self.keys[rows], self.values[rows]


class MemoryCache:
    """The keys and values of a memory: projected at the first step, the same at all; chapter 10."""

    length = 0  # the queries that look into a memory have no place in it

    def __init__(self) -> None:
        self.kept: tuple[Heads, Heads] | None = None  # until the first step

    def update(self, k: New, v: New) -> tuple[Heads, Heads]:
        """Keeps these for all steps; whoever finds ``kept`` filled need not make them again."""
        self.kept = k, v
        return self.kept

    def select(self, rows: Rows) -> None:
        """Keeps these rows of the batch, in this order."""
        if self.kept is not None:
            keys, values = self.kept
            self.kept = keys[rows], values[rows]


AttentionCache = KeyValueCache | MemoryCache


def takes_cache(part: nn.Module) -> bool:
    """Whether an attention, or a layer, takes the keyword ``cache``: it says so itself.

    One that says nothing, such as a part from elsewhere, does not, and decoding does without.
    """
    return bool(getattr(part, "takes_cache", False))


class LayerCache:
    """What one decoder layer keeps: of itself all that it has read, of the memory one copy."""

    def __init__(self, max_len: int):
        self.self_attention = KeyValueCache(max_len)
        self.cross_attention = MemoryCache()

    @property
    def length(self) -> int:
        """The number of positions read so far."""
        return self.self_attention.length

    def select(self, rows: Rows) -> None:
        """Keeps these rows of the batch, in this order."""
        self.self_attention.select(rows)
        self.cross_attention.select(rows)


class Caches:
    """What a decoder keeps while it writes: a cache for each layer. Chapters 10 and 14."""

    def __init__(self, caches: Sequence[LayerCache | KeyValueCache]):
        self.caches = caches

    @property
    def length(self) -> int:
        """The number of positions written so far."""
        return self.caches[0].length

    def select(self, rows: Rows) -> None:
        """Keeps these sentences, in this order; one may be named more than once."""
        for cache in self.caches:
            cache.select(rows)


class DecodingState(Caches):
    """All that an encoder-decoder keeps while it writes: the memory, and its decoder's caches."""

    def __init__(self, memory: Memory, caches: Sequence[LayerCache | KeyValueCache]):
        super().__init__(caches)
        self.memory = memory

    def select(self, rows: Rows) -> None:
        """Keeps these sentences, in this order; one may be named more than once."""
        super().select(rows)
        self.memory = self.memory.select(rows)
