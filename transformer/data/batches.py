"""Sentences of similar length share a padded batch, in an order that a seed fixes (chapter 9)."""

import random
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from transformer.checks import check_positive
from transformer.data.tokens import PAD_ID, Example


class Batch(NamedTuple):
    """Sources w1 … <eos> and targets <bos> w1 … <eos>, one pair a row, <pad> after; chapter 9."""

    src: Int[Tensor, "B S"]
    tgt: Int[Tensor, "B T+1"]

    @property
    def inputs(self) -> tuple[Int[Tensor, "B S"], Int[Tensor, "B T"]]:
        """What the model reads, the source and the target without its last token."""
        return self.src, self.tgt[:, :-1]

    @property
    def labels(self) -> Int[Tensor, "B T"]:
        """The tokens to be predicted, the next one after each position of the target."""
        return self.tgt[:, 1:]

    def to(self, device: torch.device | str, *, non_blocking: bool = False) -> "Batch":
        """Both tensors on ``device``."""
        return Batch(*(tensor.to(device, non_blocking=non_blocking) for tensor in self))


class TextBatch(NamedTuple):
    """Text without a source, <bos> w1 … <eos>, one a row, <pad> after; chapter 14."""

    tokens: Int[Tensor, "B T+1"]

    @property
    def inputs(self) -> tuple[Int[Tensor, "B T"]]:
        """What the model reads, all but the last token."""
        return (self.tokens[:, :-1],)

    @property
    def labels(self) -> Int[Tensor, "B T"]:
        """The tokens to be predicted, the next one after each position."""
        return self.tokens[:, 1:]

    def to(self, device: torch.device | str, *, non_blocking: bool = False) -> "TextBatch":
        """The tokens on ``device``."""
        return TextBatch(self.tokens.to(device, non_blocking=non_blocking))


def pad(sequences: Sequence[Sequence[int]], pad_id: int = PAD_ID) -> Int[Tensor, "B L"]:
    """One sequence a row, followed by ``pad_id`` up to the length of the longest; chapter 9.

    Raises ValueError if there is no sequence.
    """
    if len(sequences) == 0:
        raise ValueError("sequences must hold at least one sequence, got none")
    L = max(map(len, sequences))
    rows = [[*sequence, *[pad_id] * (L - len(sequence))] for sequence in sequences]
    return torch.tensor(rows, dtype=torch.long)  # (B, L)


def make_batch(examples: Sequence[Example]) -> Batch:
    """The examples as one batch, in their order; chapter 9.

    Raises ValueError if there is none.
    """
    if len(examples) == 0:
        raise ValueError("examples must hold at least one example, got none")
    return Batch(pad([src for src, _ in examples]), pad([tgt for _, tgt in examples]))


def padding_share(batches: Iterable[Batch]) -> float:
    """The share of all positions, sources and targets, that is padding; chapter 9.

    Raises ValueError if there is no batch.
    """
    tensors = [tensor for batch in batches for tensor in batch]
    if not tensors:
        raise ValueError("batches must hold at least one batch, got none")
    n_padding = sum(int((tensor == PAD_ID).sum()) for tensor in tensors)
    return n_padding / sum(tensor.numel() for tensor in tensors)


class BucketedBatches:
    """Batches of pairs of similar length, shuffled anew each epoch; chapter 9.

    Vaswani et al. (2017), section 5.1, batch by approximate length. A batch has ``batch_size``
    pairs, or as many as keep each of its sides within ``max_tokens`` positions, padding included.
    Its content depends on ``seed`` and the epoch alone, on every machine.

    All sentences of a batch are of about one length, and an update that sees one length alone
    learns less: it should have several small batches (``accumulate`` of ``fit``), which hold as
    many sentences of different lengths, with hardly any padding.

    Both sizes are those of one process. ``world_size`` processes take as many times more pairs of
    neighbouring lengths, and every ``world_size``-th of them goes to process ``rank``. Given
    ``batch_size``, they thus share out what one process with the size of all would get. Each has
    the same number of batches: where the shortest pairs of all are fewer than the processes, they
    are left out.

    Raises ValueError, or TypeError for a size that is no integer, if no batch can be made.
    """

    def __init__(
        self,
        examples: Sequence[Example],
        *,
        batch_size: int | None = None,
        max_tokens: int | None = None,
        seed: int = 0,
        shuffle: bool = True,
        rank: int = 0,
        world_size: int = 1,
    ):
        if batch_size is not None and max_tokens is None:
            check_positive(batch_size=batch_size, world_size=world_size)
        elif max_tokens is not None and batch_size is None:
            check_positive(max_tokens=max_tokens, world_size=world_size)
        else:
            raise ValueError(
                f"batch_size or max_tokens must be given, not both, got {batch_size}, {max_tokens}"
            )
        if not 0 <= rank < world_size:
            raise ValueError(f"rank must lie between 0 and {world_size - 1}, got {rank}")
        _check_examples(examples, max_tokens)
        self._examples, self._seed, self._shuffle = examples, seed, shuffle
        self._batch_size, self._max_tokens = batch_size or 0, max_tokens or 0  # one of them is 0
        self._rank, self._world_size = rank, world_size
        # Compared one after the other: the longer side first, since max_tokens bounds that.
        self._lengths = [(max(len(src), len(tgt)), len(tgt), len(src)) for src, tgt in examples]
        self._latest = (0, self.indices(0))  # the epoch that was asked for last
        self._n_batches = len(self._latest[1])
        if self._n_batches == 0:
            raise ValueError(
                f"examples must fill a batch on each of {world_size} processes, got {len(examples)}"
            )

    def __len__(self) -> int:
        """The number of batches in an epoch, the same in each."""
        return self._n_batches

    def epoch(self, e: int) -> Iterator[Batch]:
        """This process's batches of epoch ``e``."""
        for chosen in self.indices(e):
            yield make_batch([self._examples[i] for i in chosen])

    def __call__(self, i: int) -> Batch:
        """Batch ``i`` of this process, counted from 0 through all epochs: what ``fit`` asks for."""
        e, at = divmod(i, len(self))
        if e != self._latest[0]:
            self._latest = (e, self.indices(e))
        return make_batch([self._examples[i] for i in self._latest[1][at]])

    def indices(self, e: int) -> list[list[int]]:
        """The numbers of the examples in each of this process's batches of epoch ``e``."""
        rng = random.Random(f"{self._seed} {e}")
        order = list(range(len(self._examples)))
        if self._shuffle:
            rng.shuffle(order)
        # The sort is stable: pairs of equal lengths stay shuffled, and meet others in each epoch.
        order.sort(key=lambda i: self._lengths[i], reverse=True)
        batches = self.cut(order)
        if self._shuffle:
            rng.shuffle(batches)
        W = self._world_size
        return [batch[self._rank :: W] for batch in batches if len(batch) >= W]

    def padding(self) -> float:
        """The share of this process's positions that is padding, the same in every epoch."""
        return padding_share(self.epoch(0))

    def cut(self, order: list[int]) -> list[list[int]]:
        """Batches for all processes, of neighbours in ``order``, which starts at the longest."""
        batches, start = [], 0
        while start < len(order):
            longest = self._lengths[order[start]][0]
            size = self._world_size * (self._batch_size or self._max_tokens // longest)
            batches.append(order[start : start + size])
            start += size
        return batches


def _check_examples(examples: Sequence[Example], max_tokens: int | None) -> None:
    if len(examples) == 0:
        raise ValueError("examples must hold at least one example, got none")
    for i, (src, tgt) in enumerate(examples):
        if len(src) < 1 or len(tgt) < 2:
            raise ValueError(
                f"examples[{i}] must have a source of 1 token or more and a target of 2 or more, "
                f"got {len(src)} and {len(tgt)}"
            )
        if PAD_ID in src or PAD_ID in tgt:
            raise ValueError(f"examples[{i}] must be without padding, got the id {PAD_ID} in it")
        longer = max(len(src), len(tgt))
        if max_tokens is not None and longer > max_tokens:
            raise ValueError(f"examples[{i}] must fit max_tokens {max_tokens}, got {longer} tokens")
