"""The task that the tests of training learn: random sequences, each the translation of itself."""

import torch

from transformer.data.batches import Batch
from transformer.data.tokens import BOS_ID, EOS_ID, PAD_ID

FIRST_SYMBOL = 4  # after the special ids


def copy_batch(batch_size, vocab_size, *, min_len, max_len, generator):
    """Symbols FIRST_SYMBOL … ``vocab_size`` - 1, of uniform lengths, without bos and eos.

    ``src`` is ``max_len`` + 1 wide, ``tgt`` ``max_len`` + 2.
    """
    lengths = torch.randint(min_len, max_len + 1, (batch_size, 1), generator=generator)
    shape = (batch_size, max_len + 1)
    src = torch.randint(FIRST_SYMBOL, vocab_size, shape, generator=generator)
    src.masked_fill_(torch.arange(max_len + 1) > lengths, PAD_ID)
    src.scatter_(1, lengths, EOS_ID)
    return Batch(src, torch.cat([src.new_full((batch_size, 1), BOS_ID), src], dim=1))
