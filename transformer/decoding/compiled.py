"""Greedy decoding by one step that is compiled once and then repeated (chapter 13).

A step of decoding asks PyTorch for a hundred operations and more, one by one. On a GPU, or of a
small model, asking takes longer than the arithmetic. A step can be compiled, and repeated as it
is, if nothing differs from one to the next but numbers. So here

- the keys fill all their room from the start, and a mask hides what is not yet written;
- the place of the next token is a tensor, not a number of Python's;
- a sentence that has ended stays in the batch, and writes padding.

That a step reads the whole room is the price, which is small as long as the room is.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Int
from torch import Tensor

from transformer.cache import (
    Caches,
    DecodingState,
    KeyValueCache,
    LayerCache,
    Memory,
    WindowCache,
)
from transformer.decoding.limits import Limits
from transformer.decoding.protocol import Decodable
from transformer.decoding.steps import not_a_number
from transformer.masks import note_of, noted
from transformer.runtime import compile_or_refuse, evaluating


def compiled_greedy(
    model: Decodable, src: Int[Tensor, "B S"], limits: Limits
) -> Int[Tensor, "B length"]:
    """The tokens of ``greedy_decode``, all steps but the first by ``torch.compile``; chapter 13."""
    limits.check(model, len(src))
    if not model.takes_cache:
        raise ValueError("compiled must be False for a model that takes no cache, got True")
    with evaluating(model), torch.inference_mode():
        started = model.start_decoding(src, max_len=limits.max_len)
        if not isinstance(started, Caches):
            kind = type(model).__name__
            raise ValueError(f"compiled must be False for a {kind}, which has a state of its own")
        state: Any = started
        pad_id = limits.eos_id if model.pad_id is None else model.pad_id
        out = limits.unwritten(len(src), limits.max_len, pad_id=model.pad_id, device=src.device)
        tokens, step = limits.first_tokens(len(src), src.device), _step
        ended = torch.zeros_like(tokens, dtype=torch.bool)
        are_numbers = torch.ones((), dtype=torch.bool, device=src.device)
        t = -1  # no sentence has no step
        for t in range(limits.max_len if len(src) else 0):
            tokens = step(model, tokens, state, ended, are_numbers, limits.eos_id, pad_id)
            out[:, t] = tokens
            if ended.all():
                break
            if t == 0:  # the first step has set the room aside
                state, step = StaticState(state), _compiled_step()
            else:
                state.length.add_(1)
    if not are_numbers:
        raise not_a_number()
    return out[:, : t + 1].clone()


def _step(
    model: Decodable,
    tokens: Int[Tensor, " B"],
    state: Any,
    ended: Bool[Tensor, " B"],
    are_numbers: Bool[Tensor, ""],
    eos_id: int,
    pad_id: int,
) -> Int[Tensor, " B"]:
    """The likeliest next token of each sentence; updates ``ended`` and ``are_numbers``."""
    logits = model.decode_next(tokens, state)
    if model.pad_id is not None:  # padding is not a word
        logits[:, pad_id] = -math.inf
    are_numbers &= (logits.amax(dim=-1).isfinite() | ended).all()
    tokens = torch.where(ended, pad_id, logits.argmax(dim=-1))
    ended |= tokens == eos_id
    return tokens


@functools.cache
def _compiled_step() -> Callable[..., Tensor]:
    return compile_or_refuse(_step)  # past the limit of shapes that it keeps, it runs as it is


class StaticState:
    """A decoder's state whose tensors keep their shapes: all that ``decode_next`` asks of one."""

    def __init__(self, state: Caches):
        self.words, self.n_padding = state.words, state.n_padding
        self.memory = None
        if isinstance(state, DecodingState):
            vectors, mask = state.memory
            if mask is not None:
                mask = noted(mask, note_of(mask), for_good=True)
            self.memory = Memory(vectors, mask)
        growing: list[Any] = [getattr(cache, "self_attention", cache) for cache in state.caches]
        device = growing[0].keys.device
        self.length = torch.tensor(state.length, device=device)
        self.places = torch.arange(growing[0].max_len, device=device)
        self.caches: list[Any] = [
            StaticWindowCache(cache, self.length)
            if isinstance(cache, WindowCache)
            else StaticCache(cache, self.length)
            for cache in growing
        ]
        if self.memory is not None:
            memories = [cache.cross_attention for cache in state.caches]
            self.caches = list(map(LayerCache, self.caches, memories))

    def next_position(self) -> Int[Tensor, "#B 1"]:
        """The position of the next token, as :class:`~transformer.cache.Caches` counts it."""
        return self.length.view(1, 1) - self.n_padding

    def mask(self, window: int | None = None) -> Bool[Tensor, "*#B room"]:
        """The mask that :class:`~transformer.cache.Caches` has, for all places of a cache."""
        read = (self.places <= self.length)[None]  # what is written, and the new token
        read = read if self.words is None else read & self.words
        if window is not None:  # of the last so many places, the new token's behind the others
            last = self.length + 1 - len(self.places[:window]) + self.places[:window]
            read = read.index_select(-1, last.clamp(min=0)) & (last >= 0)
        return noted(read, "keyed")


class StaticCache(KeyValueCache):
    """A cache of one shape: a step writes one position and reads all; ``length`` is a tensor."""

    keys: Any
    values: Any
    length: Any

    def __init__(self, cache: KeyValueCache, length: Int[Tensor, ""]):
        super().__init__(cache.max_len)
        self.keys, self.values = cache.keys, cache.values
        for room in (self.keys, self.values):
            room[:, :, cache.length :] = 0.0  # what is hidden must be numbers, too
        self.length = length

    def update(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Writes one position; returns all of the room."""
        self.keys.index_copy_(2, self.length.view(1), k)
        self.values.index_copy_(2, self.length.view(1), v)
        return self.keys, self.values


class StaticWindowCache(WindowCache):
    """A cache of one shape for a window: it starts with zeros, and a step reads all of them."""

    keys: Any
    values: Any
    length: Any

    def __init__(self, cache: WindowCache, length: Int[Tensor, ""]):
        super().__init__(cache.max_len, min(cache.window, cache.max_len))
        rooms: list[Any] = [cache.keys, cache.values]
        self.keys, self.values = (
            F.pad(room, (0, 0, self.window - 1 - room.size(2), 0)) for room in rooms
        )
        self.length = length

    def update(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Adds one position, in the place of the first; returns all in the window."""
        k, v = torch.cat([self.keys, k], dim=2), torch.cat([self.values, v], dim=2)
        self.keys.copy_(k[:, :, 1:])
        self.values.copy_(v[:, :, 1:])
        return k, v
