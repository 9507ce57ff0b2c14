"""The sizes that are measured, and the sentences."""

from dataclasses import dataclass

import torch
from torch import Tensor

PAD_ID, BOS_ID, EOS_ID = 0, 1, 2


@dataclass(frozen=True)
class Setting:
    """The sizes of a model and of a batch."""

    name: str
    d_model: int
    n_heads: int
    n_layers: int
    d_ff: int
    vocab_size: int
    batch: int
    length: int
    new_tokens: int  # that greedy decoding makes for each of 16 sentences
    dropout: float = 0.1


SETTINGS = {
    "tiny": Setting("tiny", 32, 2, 1, 64, 50, 4, 8, 4),  # for a rehearsal
    "small": Setting("small", 128, 4, 2, 512, 1000, 64, 32, 32),
    "base": Setting("base", 512, 8, 6, 2048, 8000, 16, 64, 64),
    "big": Setting("big", 1024, 16, 6, 4096, 8000, 16, 64, 64, dropout=0.3),
}


def batch(s: Setting, size: int | None = None, *, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Random words: sources of half to full length, padded; full targets that begin with bos."""
    generator = torch.Generator().manual_seed(seed)
    B = size or s.batch
    src = torch.randint(3, s.vocab_size, (B, s.length), generator=generator)
    lengths = torch.randint(s.length // 2, s.length + 1, (B, 1), generator=generator)
    lengths[0] = s.length
    src[torch.arange(s.length) >= lengths] = PAD_ID
    tgt = torch.randint(3, s.vocab_size, (B, s.length + 1), generator=generator)
    tgt[:, 0] = BOS_ID
    return src, tgt
