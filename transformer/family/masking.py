"""Words hidden from the model, which it is to say: BERT's training (chapter 14)."""

from collections.abc import Collection
from functools import partial
from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from transformer.checks import check_share, check_tokens
from transformer.data.tokens import BOS_ID, EOS_ID, PAD_ID


class MaskedBatch(NamedTuple):
    """Texts with some words hidden, and these words; ``pad_id`` where nothing is asked.

    Chapter 14. ``fit`` trains an :class:`~transformer.family.encoder_only.EncoderOnly` with it.
    """

    tokens: Int[Tensor, "B T"]
    labels: Int[Tensor, "B T"]

    @property
    def inputs(self) -> tuple[Int[Tensor, "B T"]]:
        """What the model reads, the texts with some words hidden."""
        return (self.tokens,)

    def to(self, device: torch.device | str, *, non_blocking: bool = False) -> "MaskedBatch":
        """Both tensors on ``device``."""
        return MaskedBatch(*(tensor.to(device, non_blocking=non_blocking) for tensor in self))


def mask_words(
    tokens: Int[Tensor, "B T"],
    *,
    vocab_size: int,
    mask_id: int,
    generator: torch.Generator | None = None,
    share: float = 0.15,
    specials: Collection[int] = (PAD_ID, BOS_ID, EOS_ID),
    pad_id: int = PAD_ID,
) -> MaskedBatch:
    """Each word is asked for with probability ``share``; of those, 80 % are hidden.

    Devlin et al. (2019), Task 1 and appendix A.1; chapter 14. Of the words asked for, 80 % become
    ``mask_id``, 10 % any word, and 10 % stay. ``specials`` are never asked for and never put in.

    Raises ValueError for ids outside the vocabulary and a ``share`` outside [0, 1).
    """
    check_tokens(tokens, vocab_size, name="tokens")
    check_share(share=share)
    reserved = sorted({*specials, mask_id, pad_id})
    if reserved[0] < 0 or reserved[-1] >= vocab_size:
        raise ValueError(
            f"mask_id, specials and pad_id must be ids below {vocab_size}, got {reserved}"
        )
    is_word = torch.ones(vocab_size, dtype=torch.bool, device=tokens.device)
    is_word.index_fill_(0, torch.tensor(reserved, device=tokens.device), False)
    words = is_word.nonzero()[:, 0]
    if len(words) == 0:
        raise ValueError(f"specials must leave a word of the {vocab_size}, got {reserved}")
    draw = partial(torch.rand, tokens.shape, generator=generator, device=tokens.device)
    asked = (draw() < share) & is_word[tokens]
    fate = draw()
    which = torch.randint(len(words), tokens.shape, generator=generator, device=tokens.device)
    shown = tokens.where(~asked | (fate >= 0.9), words[which])  # 10 % stay
    shown = shown.masked_fill(asked & (fate < 0.8), mask_id)
    return MaskedBatch(shown, tokens.masked_fill(~asked, pad_id))
