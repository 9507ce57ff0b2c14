"""Two tasks of random symbols, as many as training asks for: copy and reversal (chapter 1)."""

import torch
from torch import Generator

from transformer.data.batches import Batch
from transformer.data.tokens import BOS_ID, EOS_ID, PAD_ID, UNK_ID

FIRST_SYMBOL = max(PAD_ID, BOS_ID, EOS_ID, UNK_ID) + 1


def copy_batch(
    batch_size: int, vocab_size: int, *, min_length: int, max_length: int, generator: Generator
) -> Batch:
    """Random sequences whose translation is the sequence itself; chapter 1.

    Symbols are 4 … ``vocab_size`` - 1; lengths are uniform, in symbols, without bos and eos.
    ``src`` is ``max_length`` + 1 wide, ``tgt`` ``max_length`` + 2.

    Raises ValueError where a size is too small or ``max_length`` is less than ``min_length``.
    """
    src, _ = _random_sources(batch_size, vocab_size, min_length, max_length, generator)
    return Batch(src, _begun(src))


def reversal_batch(
    batch_size: int, vocab_size: int, *, min_length: int, max_length: int, generator: Generator
) -> Batch:
    """Random sequences whose translation is the sequence backwards; chapter 9.

    Arguments, shapes and errors are those of :func:`copy_batch`.
    """
    src, lengths = _random_sources(batch_size, vocab_size, min_length, max_length, generator)
    position = torch.arange(max_length + 1)
    backwards = lengths - 1 - position  # (B, S)
    order = torch.where(position < lengths, backwards, position)  # eos and pads stay
    return Batch(src, _begun(src.gather(1, order)))


def _random_sources(
    batch_size: int, vocab_size: int, min_length: int, max_length: int, generator: Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """Sources (B, S = max_length + 1): symbols, eos, pads; and their lengths (B, 1)."""
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, got {batch_size}")
    if vocab_size <= FIRST_SYMBOL:
        raise ValueError(
            f"vocab_size must be more than the {FIRST_SYMBOL} special ids, got {vocab_size}"
        )
    if not 1 <= min_length <= max_length:
        raise ValueError(
            f"lengths must keep 1 <= min_length <= max_length, got {min_length} and {max_length}"
        )
    lengths = torch.randint(min_length, max_length + 1, (batch_size, 1), generator=generator)
    shape = (batch_size, max_length + 1)
    src = torch.randint(FIRST_SYMBOL, vocab_size, shape, generator=generator)
    src.masked_fill_(torch.arange(max_length + 1) > lengths, PAD_ID)
    return src.scatter_(1, lengths, EOS_ID), lengths


def _begun(words: torch.Tensor) -> torch.Tensor:
    """bos in front: (B, S) -> (B, S + 1)."""
    return torch.cat([words.new_full((len(words), 1), BOS_ID), words], dim=1)
