"""The sizes that are measured, and the sentences."""

from dataclasses import dataclass

import torch
from torch import Tensor

PAD_ID, BOS_ID, EOS_ID = 0, 1, 2


@dataclass(frozen=True)
class Setting:
    """The sizes of a model and of a batch."""

    d_model: int
    n_heads: int
    n_layers: int
    d_ff: int
    vocab_size: int
    batch: int
    length: int
    new_tokens: int  # that decoding makes for each of 16 sentences
    dropout: float = 0.1


SETTINGS = {
    "tiny": Setting(32, 2, 1, 64, 50, 4, 8, 4),  # for a rehearsal
    "small": Setting(128, 4, 2, 512, 1000, 64, 32, 32),
    "base": Setting(512, 8, 6, 2048, 8000, 16, 64, 64),
    "base, 512 x 128": Setting(512, 8, 6, 2048, 8000, 512, 128, 64),  # on a GPU, as the next
    "big, 256 x 128": Setting(1024, 16, 6, 4096, 8000, 256, 128, 64, dropout=0.3),
}


def sentences(
    s: Setting, device: torch.device, *, size: int | None = None
) -> tuple[Tensor, Tensor]:
    """A batch of random words: sources of half to full length, padded, and full targets that begin
    with bos; of ``size`` sentences, or as many as a step has."""
    generator = torch.Generator().manual_seed(0)
    B = size or s.batch
    src = torch.randint(3, s.vocab_size, (B, s.length), generator=generator)
    lengths = torch.randint(s.length // 2, s.length + 1, (B, 1), generator=generator)
    lengths[0] = s.length
    src[torch.arange(s.length) >= lengths] = PAD_ID
    tgt = torch.randint(3, s.vocab_size, (B, s.length + 1), generator=generator)
    tgt[:, 0] = BOS_ID
    return src.to(device), tgt.to(device)
