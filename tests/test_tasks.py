import pytest
import torch

from transformer.data.tasks import copy_batch, reversal_batch

BOTH = pytest.mark.parametrize("task", [copy_batch, reversal_batch])


def batch(task, seed=0, batch_size=200, vocab_size=9, min_len=2, max_len=6):
    g = torch.Generator().manual_seed(seed)
    return task(batch_size, vocab_size, min_len=min_len, max_len=max_len, generator=g)


@BOTH
def test_every_row_is_the_sequence_and_its_answer(task):
    src, tgt = batch(task)
    assert src.dtype == tgt.dtype == torch.int64
    assert (src.shape, tgt.shape) == ((200, 7), (200, 8))
    for source, target in zip(src.tolist(), tgt.tolist(), strict=True):
        words = source[: source.index(2)]
        answer = words if task is copy_batch else words[::-1]
        pads = [0] * (6 - len(words))
        assert source == [*words, 2, *pads]
        assert target == [1, *answer, 2, *pads]
        assert all(4 <= word < 9 for word in words)


@BOTH
def test_all_lengths_and_symbols_come_about_equally_often(task):
    src, _ = batch(task, batch_size=5000)
    lengths = (src >= 4).sum(1)
    assert (lengths.bincount(minlength=7)[2:] - 1000).abs().max() < 150
    share = src[src >= 4].bincount(minlength=9)[4:] / (src >= 4).sum()
    assert (share - 0.2).abs().max() < 0.02
    assert lengths.bincount()[:2].tolist() == [0, 0]


@BOTH
def test_of_one_length_there_are_no_pads(task):
    src, tgt = batch(task, min_len=4, max_len=4)
    assert src.shape == (200, 5)
    assert (src != 0).all()
    assert (tgt != 0).all()


@BOTH
def test_the_generator_decides(task):
    assert torch.equal(batch(task, seed=3).src, batch(task, seed=3).src)
    assert not torch.equal(batch(task, seed=3).src, batch(task, seed=4).src)
    g = torch.Generator().manual_seed(3)
    first, second = (task(4, 50, min_len=9, max_len=9, generator=g) for _ in range(2))
    assert not torch.equal(first.src, second.src)


@BOTH
@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"batch_size": 0}, "batch_size must be at least 1, got 0"),
        ({"vocab_size": 4}, "vocab_size must be more than the 4 special ids, got 4"),
        ({"min_len": 0}, "1 <= min_len <= max_len, got 0 and 6"),
        ({"min_len": 7}, "1 <= min_len <= max_len, got 7 and 6"),
    ],
)
def test_sizes_that_make_no_sense_are_refused(task, sizes, message, unchecked):
    with pytest.raises(ValueError, match=message):
        batch(task, **sizes)
