"""What decoding keeps from step to step, held against attention over the whole sequence."""

import pytest
import torch
from torch.testing import assert_close

from tests.package.test_multihead import POSITIONED, B, D, H, S, T, module, source, vectors
from transformer.cache import (
    DecodingState,
    KeyValueCache,
    LayerCache,
    Memory,
    MemoryCache,
    WindowCache,
)
from transformer.masks import causal_mask, padding_mask

PIECES = pytest.mark.parametrize("pieces", [(1,) * S, (3, 1, 3), (S,)], ids=str)


def by_pieces(attend, x, pieces, cache):
    """Rows of ``x`` so many at a time, each seeing itself and those before."""
    rows, mask = [], causal_mask(S)
    for part in x.split(list(pieces), dim=1):
        start, end = cache.length, cache.length + part.size(1)
        rows.append(attend(part, part, part, mask[start:end, :end], cache=cache))
    return torch.cat(rows, dim=1)


@POSITIONED
@PIECES
def test_room_that_is_not_used_yet_is_never_read(make, pieces):
    attend, cache = module(positions=make()), KeyValueCache(S + 3)
    (x,) = vectors(S)
    keys, values = cache.update(*attend.project(x[:, :1], x[:, :1]))
    assert keys.shape == values.shape == (B, H, 1, D // H)
    cache.keys[:, :, 1:], cache.values[:, :, 1:] = torch.nan, torch.nan
    cache.length = 0
    assert_close(
        by_pieces(attend, x, pieces, cache), attend(x, x, x, causal_mask(S)), rtol=0, atol=1e-12
    )
    assert cache.keys[:, :, S:].isnan().all()


def test_a_cache_refuses_more_than_it_has_room_for():
    attend, cache = module(), KeyValueCache(4)
    (x,) = vectors(S)
    attend(x[:, :3], x[:, :3], x[:, :3], cache=cache)
    held = cache.keys.clone(), cache.values.clone()
    with pytest.raises(ValueError, match="the cache has room for 4 positions, got 5"):
        attend(x[:, 3:5], x[:, 3:5], x[:, 3:5], cache=cache)
    assert cache.length == 3
    assert torch.equal(cache.keys[:, :, :3], held[0][:, :, :3])
    attend(x[:, 3:4], x[:, 3:4], x[:, 3:4], cache=cache)
    assert cache.length == 4
    with pytest.raises(ValueError, match="the cache has room for 2 positions, got 3"):
        attend(x[:, :3], x[:, :3], x[:, :3], cache=KeyValueCache(2))


WINDOWS = pytest.mark.parametrize("window", [1, 2, 4, S, S + 2])


@POSITIONED
@PIECES
@WINDOWS
def test_a_cache_with_a_window_keeps_what_the_next_position_sees_and_no_more(make, pieces, window):
    attend, cache = module(positions=make()), WindowCache(S, window)
    (x,) = vectors(S)
    seen = causal_mask(S) & ~causal_mask(S).tril(-window)
    whole, rows, end = attend(x, x, x, seen), [], 0
    for part in x.split(list(pieces), dim=1):
        start, end = max(0, end + 1 - window), end + part.size(1)
        mask = seen[end - part.size(1) : end, start:end]
        rows.append(attend(part, part, part, mask, cache=cache))
        assert cache.length == end
        for kept in (cache.keys, cache.values):
            assert kept.shape == (B, H, min(end, window - 1), D // H)
            assert kept.untyped_storage().nbytes() <= B * min(end, window) * D * 8
    assert_close(torch.cat(rows, dim=1), whole, rtol=0, atol=1e-12)


def test_a_cache_with_a_window_is_for_texts_of_a_length_too():
    attend, cache = module(), WindowCache(4, 2)
    (x,) = vectors(S)
    attend(x[:, :3], x[:, :3], x[:, :3], cache=cache)
    with pytest.raises(ValueError, match="the cache is for texts of 4 positions, got 5"):
        attend(x[:, 3:5], x[:, 3:5], x[:, 3:5], cache=cache)
    assert cache.length == 3


def filled(n_layers=2):
    """A state that has read three positions of three sources, and copies of what it holds."""
    attend = [module(seed=seed) for seed in range(2 * n_layers)]
    x, memory = vectors(S, T)
    caches = [LayerCache(KeyValueCache(S), MemoryCache()) for _ in range(n_layers)]
    state = DecodingState(Memory(memory, padding_mask(source(T))), caches)
    for i, cache in enumerate(state.caches):
        attend[2 * i](x, x, x, causal_mask(S), cache=cache.self_attention)
        attend[2 * i + 1](x, memory, memory, cache=cache.cross_attention)
    own = [c.self_attention.keys.clone() for c in state.caches]
    of_memory = [c.cross_attention.kept[0].clone() for c in state.caches]
    return state, own, of_memory


@pytest.mark.parametrize(
    ("selections", "rows", "sources"),
    [
        ([[0, 0, 1, 1, 2, 2]], [0, 0, 1, 1, 2, 2], [0, 1, 2]),  # two beams of each
        ([[0, 0, 1, 1, 2, 2], [1, 0, 3, 3, 4, 5]], [0, 0, 1, 1, 2, 2], [0, 1, 2]),  # reordered
        ([[0, 0, 1, 1, 2, 2], [5, 4, 1, 1]], [2, 2, 0, 0], [2, 0]),  # a source leaves
        ([[0, 0, 1, 1, 2, 2], [0, 3, 4]], [0, 1, 2], [0, 1, 2]),  # back to one of each
        ([[0, 0, 1, 1, 2, 2], [0, 3, 2]], [0, 1, 1], [0, 1, 1]),  # not as many of each
        ([[0, 1, 1, 2]], [0, 1, 1, 2], [0, 1, 1, 2]),
        ([[1, 0, 1]], [1, 0, 1], [1, 0, 1]),
        ([[0, 0, 1, 1, 2, 2], []], [], []),
    ],
)
def test_rows_of_one_source_share_its_memory(selections, rows, sources):
    state, own, of_memory = filled()
    vectors_, mask = state.memory
    for chosen in selections:
        state.select(torch.tensor(chosen, dtype=torch.long))
    assert state.per_source == (len(rows) // len(sources) if sources else 1)
    assert torch.equal(state.memory.vectors, vectors_[sources])
    assert torch.equal(state.memory.mask, mask[sources])
    for i, cache in enumerate(state.caches):
        assert torch.equal(cache.self_attention.keys, own[i][rows])
        assert torch.equal(cache.cross_attention.kept[0], of_memory[i][sources])


def test_a_memory_stays_where_it_is_while_its_rows_change_places():
    state, _, _ = filled()
    state.select(torch.tensor([0, 0, 1, 1, 2, 2]))
    before = state.memory.vectors, state.caches[1].cross_attention.kept[0]
    state.select(torch.tensor([1, 0, 2, 3, 5, 5]))
    assert state.memory.vectors is before[0]
    assert state.caches[1].cross_attention.kept[0] is before[1]
