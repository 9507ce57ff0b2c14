"""What decoding keeps from one step to the next: the memory, and keys and values (chapter 10).

A decoder writes one token at a time. Whatever it has worked out for the tokens before stays true,
since no token sees a later one; so each attention keeps the keys and values that it has made, and a
step makes those of one token. The classes below, from the inside out: the cache of one attention,
that of one layer, and the state of the whole model. All of them can ``select`` rows, because a
search drops sentences that have ended, and goes on twice from a beam that it likes.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from transformer.checks import has_values
from transformer.masks import note_of, noted

Rows = Int[Tensor, " N"]  # of the batch, in a new order; one may be named more than once
Length = int | Int[Tensor, "B 1"]  # of all rows, or of each
New = Float[Tensor, "B h T d_k"]  # keys or values of T new positions
Heads = Float[Tensor, "B h S d_k"]  # and of all S so far


class Memory(NamedTuple):
    """The output of an encoder, with the mask that says which positions are words.

    Chapters 1, 2 and 8. A code, which has no positions, has no mask.
    """

    vectors: Float[Tensor, "B *rest"]
    mask: Bool[Tensor, "B *rest"] | None = None

    def select(self, rows: Rows) -> "Memory":
        """The memory of these sentences alone, in this order."""
        mask = None
        if self.mask is not None:
            mask = noted(self.mask.index_select(0, rows), note_of(self.mask))
        return Memory(self.vectors.index_select(0, rows), mask)


class KeyValueCache:
    """The keys and values of one self-attention, more of them at each step; chapter 10.

    Room for ``max_len`` positions is set aside at once: a step writes one and copies none. Once
    others have joined, each row has a length of its own (chapter 17).
    """

    def __init__(self, max_len: int):
        self.max_len = max_len  # how many positions it can hold
        self.length: Length = 0  # and holds
        self.keys: Heads | None = None  # until the first step brings their sizes
        self.values: Heads | None = None

    def update(self, k: New, v: New) -> tuple[Heads, Heads]:
        """Adds the keys and values of new positions; returns those of all positions so far.

        Where rows have lengths of their own, what is returned is as long as the longest, and zeros
        stand behind the others. Raises ValueError past the room.
        """
        start, end = self.longest, self.longest + k.size(2)
        if end > self.max_len:
            raise ValueError(f"the cache has room for {self.max_len} positions, got {end}")
        # The first step sets all the room aside. What stands in it is never read before it is
        # written, so that it need not be cleared.
        if self.keys is None or self.values is None:
            B, h, _, d_k = k.shape
            # Position before head in memory: what a row has written lies in one piece, which is
            # what select copies.
            rooms = (k.new_empty(B, self.max_len, h, d_k) for _ in range(2))
            self.keys, self.values = (room.transpose(1, 2) for room in rooms)
        if isinstance(self.length, Tensor):  # each row goes on at its own place
            new = torch.arange(k.size(2), device=k.device)
            places = (self.length + new)[:, None, :, None].expand_as(k)
            self.keys.scatter_(2, places, k)
            self.values.scatter_(2, places, v)
        else:
            # narrow(2, start, n) is [:, :, start : start + n]: a view, so that the room itself is
            # written to, and what is returned copies nothing.
            self.keys.narrow(2, start, end - start).copy_(k)
            self.values.narrow(2, start, end - start).copy_(v)
        self.length = self.length + k.size(2)
        return self.keys.narrow(2, 0, end), self.values.narrow(2, 0, end)

    @property
    def longest(self) -> int:
        """The number of positions that the longest row holds."""
        return int(self.length.max()) if isinstance(self.length, Tensor) else self.length

    def join(self, other: "KeyValueCache") -> None:
        """Puts the rows of another cache below these; from now on each has a length of its own.

        Chapter 17. The room is the larger of the two. Raises ValueError where one is empty.
        """
        caches, rooms, lengths = (self, other), [], []
        for cache in caches:
            if cache.keys is None or cache.values is None:
                raise ValueError("caches that join must hold a position or more, got none")
            rooms.append((cache.keys, cache.values))
            nought = cache.keys.new_zeros(len(cache.keys), 1, dtype=torch.long)
            lengths.append(nought + cache.length)
        self.max_len = max(cache.max_len for cache in caches)
        ends = [cache.longest for cache in caches]
        self.keys, self.values = (self._joined(both, ends) for both in zip(*rooms, strict=True))
        self.length = torch.cat(lengths)

    def _joined(self, rooms: Sequence[Tensor], ends: Sequence[int]) -> Tensor:
        n, (_, h, _, d_k) = [len(room) for room in rooms], rooms[0].shape
        # Zeros, since a longer row's places are read in all rows, and a mask hides numbers only.
        both = rooms[0].new_zeros(sum(n), self.max_len, h, d_k).transpose(1, 2)
        for part, room, end in zip(both.split(n), rooms, ends, strict=True):
            part.narrow(2, 0, end).copy_(room.narrow(2, 0, end))
        return both

    def select(self, rows: Rows) -> None:
        """Keeps these rows of the batch, in this order; room not yet written to is not copied."""
        if self.keys is not None and self.values is not None:
            self.keys, self.values = (self._select(room, rows) for room in (self.keys, self.values))
        if isinstance(self.length, Tensor):
            self.length = self.length.index_select(0, rows)

    def _select(self, room: Tensor, rows: Tensor) -> Tensor:
        written = room.narrow(2, 0, self.longest).transpose(1, 2).index_select(0, rows)
        if len(rows) > len(room):  # a search begins: one row becomes several
            _, h, _, d_k = room.shape
            room = room.new_zeros(len(rows), self.max_len, h, d_k).transpose(1, 2)
        room = room.narrow(0, 0, len(rows))
        room.narrow(2, 0, self.longest).transpose(1, 2).copy_(written)
        return room


class WindowCache(KeyValueCache):
    """The keys and values of a layer that sees only the last ``window`` positions; chapter 16.

    It keeps those that the next position will see, ``window`` - 1 with no place for more, in their
    order, and counts all in ``length``. Where rows have lengths of their own (chapter 17), all end
    on the right, and zeros stand before the shorter ones.
    """

    def __init__(self, max_len: int, window: int):
        super().__init__(max_len)
        self.window = window

    def update(self, k: New, v: New) -> tuple[Heads, Heads]:
        """Adds new positions; returns what was kept before and all the new, of which a mask hides
        from each what is out of its window.

        Raises ValueError past ``max_len``.
        """
        n_new, end = k.size(2), self.longest + k.size(2)
        if end > self.max_len:
            raise ValueError(f"the cache is for texts of {self.max_len} positions, got {end}")
        if self.keys is not None and self.values is not None:
            k, v = torch.cat([self.keys, k], dim=2), torch.cat([self.values, v], dim=2)
        self.length = self.length + n_new
        self.keys, self.values = self._last(k), self._last(v)
        if k.size(2) > self.window:  # a view would hold on to all of a long prompt
            self.keys, self.values = self.keys.clone(), self.values.clone()
        return k, v

    def select(self, rows: Rows) -> None:
        """Keeps these rows of the batch, in this order."""
        if self.keys is not None and self.values is not None:
            self.keys, self.values = (x.index_select(0, rows) for x in (self.keys, self.values))
            if isinstance(self.length, Tensor) and len(rows):  # the longest may have left
                self.length = self.length.index_select(0, rows)
                self.keys, self.values = self._last(self.keys), self._last(self.values)

    def _last(self, x: Tensor) -> Tensor:
        """The end of ``x`` that the next position of the longest row sees."""
        n = min(self.longest, self.window - 1)
        return x.narrow(2, x.size(2) - n, n)

    def _joined(self, rooms: Sequence[Tensor], ends: Sequence[int]) -> Tensor:
        widest = max(room.size(2) for room in rooms)
        return torch.cat([F.pad(room, (0, 0, widest - room.size(2), 0)) for room in rooms])


class MemoryCache:
    """The keys and values of a memory: projected at the first step, the same at all; chapter 10."""

    length = 0  # the queries that look into a memory have no place in it

    def __init__(self) -> None:
        self.kept: tuple[Heads, Heads] | None = None  # until the first step

    def update(self, k: New, v: New) -> tuple[Heads, Heads]:
        """Keeps these for all steps; whoever finds ``kept`` filled need not make them again."""
        self.kept = k, v
        return self.kept

    def used_by(self, attention: Callable[..., Tensor]) -> Callable[..., Tensor]:
        """``attention`` with this cache, for rows of which several may attend to one memory.

        The beams of a source are so many queries of its memory: see :class:`DecodingState`.
        """

        def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
            n, queries = k.size(0), q
            if q.size(0) > n:
                queries = q.reshape(n, -1, q.size(-1))
            return attention(queries, k, v, mask, cache=self).reshape(q.shape)

        return attend

    def select(self, rows: Rows) -> None:
        """Keeps these rows of the batch, in this order."""
        if self.kept is not None:
            keys, values = self.kept
            self.kept = keys.index_select(0, rows), values.index_select(0, rows)


AttentionCache = KeyValueCache | MemoryCache


def takes_cache(part: nn.Module) -> bool:
    """Whether an attention, or a layer, takes the keyword ``cache``: it says so itself.

    One that says nothing, such as a part from elsewhere, does not, and decoding does without.
    """
    return bool(getattr(part, "takes_cache", False))


class LayerCache:
    """The caches of one decoder layer: of self-attention, and of attention to the memory."""

    def __init__(self, self_attention: KeyValueCache, cross_attention: MemoryCache):
        self.self_attention, self.cross_attention = self_attention, cross_attention

    @property
    def length(self) -> Length:
        """The number of positions read so far."""
        return self.self_attention.length

    def select(self, rows: Rows, sources: Int[Tensor, " sources"] | None) -> None:
        """Keeps these rows of the batch, and these sources of the memory; None keeps all."""
        self.self_attention.select(rows)
        if sources is not None:
            self.cross_attention.select(sources)


class Caches:
    """The state of a decoder that writes: a cache for each layer. Chapters 10 and 14."""

    words: Bool[Tensor, "B 1 1 room"] | None = None  # True at words, where prompts are padded
    n_padding: int | Int[Tensor, "B 1"] = 0  # how much padding stands before the words

    def __init__(self, caches: Sequence[Any]):
        self.caches = caches

    @property
    def length(self) -> Length:
        """The number of positions written so far."""
        return self.caches[0].length

    def next_position(self) -> int | Int[Tensor, "B 1"]:
        """The position of the next token of each text: padding is not counted."""
        return self.length - self.n_padding

    def mask(self, window: int | None = None) -> Bool[Tensor, "B 1 1 S"] | None:
        """A mask of what the next token may attend to, itself included; None stands for all.

        With a ``window``, it is for the keys that a :class:`WindowCache` holds.
        """
        length = self.length
        if isinstance(length, Tensor):  # of each text
            places = torch.arange(int(length.max()) + 1, device=length.device)
            if window is not None:  # there they stand on the right, and so many before the new one
                places = places[:window].flip(0)
            return noted((places <= length)[:, None, None], "keyed")
        if self.words is None:
            return None
        end = length + 1
        start = 0 if window is None else max(0, end - window)
        return noted(self.words.narrow(-1, start, end - start), "keyed")

    def select(self, rows: Rows) -> None:
        """Keeps these rows, in this order; one may be named more than once."""
        for cache in self.caches:
            cache.select(rows)


class DecodingState(Caches):
    """What an encoder-decoder keeps while it writes: the memory, and its decoder's caches.

    A row is a text that is being written. The beams of a search are several texts of one source::

        row       0  1  2  3    4  5  6  7
        source    0  0  0  0    1  1  1  1      (per_source = 4)

    Each has keys and values of its own, since each has other words behind it; but the memory, and
    the keys and values made of it, are kept once a source. An attention to the memory takes the
    rows of a source as so many queries of one sentence.
    """

    def __init__(self, memory: Memory, caches: Sequence[LayerCache]):
        super().__init__(caches)
        self.memory = memory
        self.per_source = 1  # rows that share a source, side by side

    def select(self, rows: Rows) -> None:
        """Keeps these rows, in this order; one may be named more than once."""
        sources = self._select_sources(rows)
        for cache in self.caches:
            cache.select(rows, sources)

    def _select_sources(self, rows: Rows) -> Int[Tensor, " sources"] | None:
        """Keeps the memory of these rows' sources, and returns which; None where all stay."""
        sources, n_before = rows // self.per_source, len(self.memory.vectors)  # of each row
        self.per_source = 1
        if has_values(rows) and len(rows):
            distinct, counts = sources.unique_consecutive(return_counts=True)
            if (counts == counts[0]).all():  # else each row gets a memory of its own
                sources, self.per_source = distinct, len(rows) // len(distinct)
            if torch.equal(sources, torch.arange(n_before, device=rows.device)):
                return None  # as long as beams of the same sentences change places
        self.memory = self.memory.select(sources)
        return sources
