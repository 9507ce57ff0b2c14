"""Two tasks of random symbols, as many as training asks for: copy and reversal (chapters 8, 9)."""

import torch
from torch import Generator

from transformer.data.batches import Batch
from transformer.data.tokens import BOS_ID, EOS_ID, PAD_ID, UNK_ID

FIRST_SYMBOL = max(PAD_ID, BOS_ID, EOS_ID, UNK_ID) + 1


def copy_batch(
    batch_size: int, vocab_size: int, *, min_len: int, max_len: int, generator: Generator
) -> Batch:
    """Random sequences whose translation is the sequence itself.

    Symbols are 4 … ``vocab_size`` - 1; lengths are uniform, in symbols, without bos and eos.
    ``src`` is ``max_len`` + 1 wide, ``tgt`` ``max_len`` + 2.

    Raises ValueError where a size is too small or ``max_len`` is less than ``min_len``.
    """
    src, _ = _random_sources(batch_size, vocab_size, min_len, max_len, generator)
    return Batch(src, _with_bos(src))


def reversal_batch(
    batch_size: int, vocab_size: int, *, min_len: int, max_len: int, generator: Generator
) -> Batch:
    """Random sequences whose translation is the sequence backwards; chapters 8 and 9.

    Arguments, shapes and errors are those of :func:`copy_batch`.
    """
    src, lengths = _random_sources(batch_size, vocab_size, min_len, max_len, generator)
    position = torch.arange(max_len + 1)
    backwards = lengths - 1 - position  # (B, S)
    order = torch.where(position < lengths, backwards, position)  # eos and pads stay
    return Batch(src, _with_bos(src.gather(1, order)))


def _random_sources(
    batch_size: int, vocab_size: int, min_len: int, max_len: int, generator: Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """Sources (B, S = max_len + 1): symbols, eos, pads; and their lengths (B, 1)."""
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, got {batch_size}")
    if vocab_size <= FIRST_SYMBOL:
        raise ValueError(
            f"vocab_size must be more than the {FIRST_SYMBOL} special ids, got {vocab_size}"
        )
    if not 1 <= min_len <= max_len:
        raise ValueError(f"lengths must keep 1 <= min_len <= max_len, got {min_len} and {max_len}")
    lengths = torch.randint(min_len, max_len + 1, (batch_size, 1), generator=generator)
    shape = (batch_size, max_len + 1)
    src = torch.randint(FIRST_SYMBOL, vocab_size, shape, generator=generator)
    src.masked_fill_(torch.arange(max_len + 1) > lengths, PAD_ID)
    return src.scatter_(1, lengths, EOS_ID), lengths


def _with_bos(words: torch.Tensor) -> torch.Tensor:
    """bos in front: (B, S) -> (B, S + 1)."""
    return torch.cat([words.new_full((len(words), 1), BOS_ID), words], dim=1)
