import random
from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from transformer.data.batches import BucketedBatches, TextBatch, make_batch, pad, padding_share
from transformer.training.protocol import TrainingBatch


def some_examples(n, *, longest=12, seed=0):
    """Examples of random lengths, all different: word 10 + i stands first in the i-th."""
    rng = random.Random(seed)
    return [
        (
            [10 + i, *[5] * rng.randrange(longest - 1), 2],
            [1, *[6] * rng.randrange(longest - 1), 10 + i, 2],
        )
        for i in range(n)
    ]


def longer(example):
    return max(map(len, example))


def rows(batch):
    """The pairs of a batch without their padding, in any order."""
    return sorted(
        ([i for i in src if i], [i for i in tgt if i])
        for src, tgt in zip(batch.src.tolist(), batch.tgt.tolist(), strict=True)
    )


def test_pad_fills_up_at_the_end():
    padded = pad([[7], [7, 8, 9], []])
    assert padded.dtype == torch.int64
    assert padded.tolist() == [[7, 0, 0], [7, 8, 9], [0, 0, 0]]
    assert pad([[1], [2, 3]], 9).tolist() == [[1, 9], [2, 3]]
    assert pad([[]]).shape == (1, 0)
    assert pad([[]]).dtype == torch.int64


def test_a_batch_says_what_goes_in_and_what_is_to_be_predicted():
    batch = make_batch([([5, 2], [1, 5, 6, 2]), ([5, 6, 2], [1, 7, 2])])
    src, tgt = batch.inputs
    assert src is batch.src
    assert tgt.tolist() == [[1, 5, 6], [1, 7, 2]]
    assert batch.labels.tolist() == [[5, 6, 2], [7, 2, 0]]
    text = TextBatch(pad([[1, 5, 6, 2], [1, 7, 2]]))
    assert [tensor.tolist() for tensor in text.inputs] == [[[1, 5, 6], [1, 7, 2]]]
    assert text.labels.tolist() == [[5, 6, 2], [7, 2, 0]]


def test_a_batch_moves_as_one():
    batch = make_batch(some_examples(2))
    for made, n_tensors in ((batch, 2), (TextBatch(batch.tgt), 1)):
        moved = made.to("meta", non_blocking=True)
        assert type(moved) is type(made)
        assert isinstance(moved, TrainingBatch)
        assert [tensor.device.type for tensor in moved] == ["meta"] * n_tensors


def test_padding_is_a_share_of_both_sides():
    batch = make_batch([([5, 2], [1, 5, 6, 2]), ([5, 6, 2], [1, 7, 2])])
    assert padding_share([batch]) == 2 / 14
    assert padding_share([batch, make_batch([([5, 2], [1, 2])])]) == 2 / 18


sizes = st.integers(1, 9)
seeds = st.integers(0, 2**31)


@given(st.integers(1, 60), sizes, seeds, st.integers(0, 5), st.booleans())
def test_every_example_is_in_one_batch(n, batch_size, seed, e, shuffle):
    examples = some_examples(n, seed=seed)
    batches = BucketedBatches(examples, batch_size=batch_size, seed=seed, shuffle=shuffle)
    made = list(batches.epoch(e))
    assert sorted(row for batch in made for row in rows(batch)) == sorted(examples)
    assert len(made) == len(batches) == -(-n // batch_size)
    assert sorted(len(batch.src) for batch in made)[1:] == [batch_size] * (len(made) - 1)


@given(st.integers(1, 60), st.integers(13, 60), seeds, st.integers(0, 5), st.integers(1, 4))
def test_max_tokens_bounds_both_sides_on_every_process(n, max_tokens, seed, e, world_size):
    examples = some_examples(max(n, world_size), seed=seed)
    seen = Counter()
    for rank in range(world_size):
        batches = BucketedBatches(
            examples, max_tokens=max_tokens, seed=seed, rank=rank, world_size=world_size
        )
        made = list(batches.epoch(e))
        assert len(made) == len(batches)
        assert all(0 < max(batch.src.numel(), batch.tgt.numel()) <= max_tokens for batch in made)
        seen.update(i for batch in batches.indices(e) for i in batch)
    assert set(seen.values()) == {1}
    assert len(examples) - len(seen) < world_size


def test_max_tokens_packs_as_many_as_fit():
    examples = [([5] * n, [1] * n) for n in (2, 3, 3, 4, 6)]
    batches = BucketedBatches(examples, max_tokens=9, shuffle=False)
    assert batches.indices(0) == [[4], [3, 1], [2, 0]]
    # the longer side counts, on whichever side it is
    assert len(BucketedBatches([([5] * 6, [1, 2])] * 4, max_tokens=12)) == 2
    assert len(BucketedBatches([([5], [1] * 6)] * 4, max_tokens=12)) == 2


@given(st.integers(1, 80), st.integers(1, 4), st.integers(2, 4), seeds, st.booleans())
def test_ranks_share_out_what_one_process_would_get(n, size, world_size, seed, shuffle):
    examples = some_examples(max(n, world_size * size), seed=seed)
    options = {"seed": seed, "shuffle": shuffle}
    alone = BucketedBatches(examples, batch_size=world_size * size, **options)
    ranks = [
        BucketedBatches(
            examples, batch_size=size, rank=rank, world_size=world_size, **options
        ).indices(3)
        for rank in range(world_size)
    ]
    whole = [batch for batch in alone.indices(3) if len(batch) >= world_size]
    for batch, *parts in zip(whole, *ranks, strict=True):
        assert parts == [batch[rank::world_size] for rank in range(world_size)]
        assert all(0 < len(part) <= size for part in parts)
    assert len(examples) - sum(map(len, whole)) < world_size


def test_epochs_differ_and_repeat():
    examples = some_examples(200, longest=4)
    batches = BucketedBatches(examples, batch_size=8, seed=1)
    assert batches.indices(0) == BucketedBatches(examples, batch_size=8, seed=1).indices(0)
    assert batches.indices(0) != batches.indices(1)
    assert batches.indices(0) != BucketedBatches(examples, batch_size=8, seed=2).indices(0)
    # the batches are other ones, not only in another order, and short ones do not all come last
    epochs = [{frozenset(batch) for batch in batches.indices(e)} for e in (0, 1)]
    assert epochs[0] != epochs[1]
    lengths = [max(longer(examples[i]) for i in batch) for batch in batches.indices(0)]
    assert lengths not in (sorted(lengths), sorted(lengths, reverse=True))


def test_called_by_number_it_goes_from_epoch_to_epoch():
    batches = BucketedBatches(some_examples(30), batch_size=4, seed=3)
    expected = [rows(batch) for e in (0, 1, 2) for batch in batches.epoch(e)]
    for i in (*range(3 * len(batches)), 1):  # and back, as when a run is resumed
        assert rows(batches(i)) == expected[i]


def test_the_order_is_the_same_on_every_machine():
    batches = BucketedBatches(some_examples(12), batch_size=3, seed=7)
    assert batches.indices(2) == [[10, 2, 6], [1, 7, 11], [8, 9, 5], [0, 4, 3]]  # as once recorded


def test_unshuffled_batches_go_from_long_to_short():
    examples = some_examples(50)
    batches = BucketedBatches(examples, batch_size=7, shuffle=False)
    order = [i for batch in batches.indices(0) for i in batch]
    lengths = [longer(examples[i]) for i in order]
    assert lengths == sorted(lengths, reverse=True)
    assert batches.indices(0) == batches.indices(1)


def test_buckets_save_most_of_the_padding():
    rng = random.Random(0)
    lengths = [rng.randrange(1, 30) for _ in range(1000)]  # of both sides, as in translation
    examples = [([5] * n, [1, *[6] * (n + rng.randrange(3)), 2]) for n in lengths]
    plain = padding_share(make_batch(examples[i : i + 20]) for i in range(0, 1000, 20))
    bucketed = BucketedBatches(examples, batch_size=20)
    assert bucketed.padding() < 0.1 < 0.4 < plain
    assert bucketed.padding() == padding_share(bucketed.epoch(1))


EXAMPLES = some_examples(4, longest=4)
BAD = [
    ({}, "batch_size or max_tokens must be given, not both, got None, None"),
    (
        {"batch_size": 2, "max_tokens": 9},
        "batch_size or max_tokens must be given, not both, got 2, 9",
    ),
    ({"batch_size": 0}, "batch_size must be positive, got 0"),
    ({"max_tokens": -1}, "max_tokens must be positive, got -1"),
    ({"batch_size": 2, "world_size": 0}, "world_size must be positive, got 0"),
    ({"max_tokens": 9, "world_size": 0}, "world_size must be positive, got 0"),
    ({"batch_size": 2, "rank": 2, "world_size": 2}, "rank must lie between 0 and 1, got 2"),
    ({"batch_size": 2, "rank": -1}, "rank must lie between 0 and 0, got -1"),
    ({"batch_size": 1, "world_size": 5}, "must fill a batch on each of 5 processes, got 4"),
    ({"batch_size": 2, "examples": []}, "examples must hold at least one example, got none"),
    (
        {"batch_size": 2, "examples": [*EXAMPLES, ([], [1, 2])]},
        r"examples\[4\] must have a source of 1 token .* got 0 and 2",
    ),
    (
        {"batch_size": 2, "examples": [([5, 2], [1])]},
        r"examples\[0\] must have .* a target of 2 or more, got 2 and 1",
    ),
    (
        {"batch_size": 2, "examples": [([5, 0, 2], [1, 2])]},
        r"examples\[0\] must be without padding, got the id 0 in it",
    ),
    (
        {"batch_size": 2, "examples": [([5, 2], [1, 2, 0])]},
        r"examples\[0\] must be without padding, got the id 0 in it",
    ),
    (
        {"max_tokens": 3, "examples": [([5, 2], [1, 2]), ([5, 2], [1, 5, 6, 2])]},
        r"examples\[1\] must fit max_tokens 3, got 4 tokens",
    ),
    (
        {"max_tokens": 3, "examples": [([5, 5, 5, 5, 2], [1, 2])]},
        r"examples\[0\] must fit max_tokens 3, got 5 tokens",
    ),
]


@pytest.mark.parametrize(("options", "message"), BAD)
def test_what_makes_no_batch_is_refused(options, message, unchecked):
    with pytest.raises(ValueError, match=message):
        BucketedBatches(**{"examples": EXAMPLES, **options})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (pad, "sequences must hold at least one sequence, got none"),
        (make_batch, "examples must hold at least one example, got none"),
        (padding_share, "batches must hold at least one batch, got none"),
    ],
)
def test_nothing_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make([])
