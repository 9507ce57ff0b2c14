"""Who may attend to whom: boolean masks, True = may attend (chapter 4)."""

import torch
from jaxtyping import Bool, Int
from torch import Tensor


def padding_mask(tokens: Int[Tensor, "B S"], pad_id: int | None = 0) -> Bool[Tensor, "B 1 1 S"]:
    """True where ``tokens`` is a word, False where it is padding; chapter 4.

    The two middle axes broadcast over heads and queries. With a ``pad_id`` of None all are words.

    Raises ValueError if ``tokens`` is not a (B, S) tensor of integers.
    """
    if tokens.dim() != 2:
        raise ValueError(f"tokens must have two axes (B, S), got shape {tuple(tokens.shape)}")
    if tokens.dtype == torch.bool or tokens.is_floating_point() or tokens.is_complex():
        raise ValueError(f"tokens must hold integer ids, got {tokens.dtype}")
    words = torch.ones_like(tokens, dtype=torch.bool) if pad_id is None else tokens != pad_id
    return words[:, None, None, :]


def causal_mask(T: int, *, device: torch.device | str | None = None) -> Bool[Tensor, "{T} {T}"]:
    """True on and below the diagonal: position t may attend to 0 … t; chapter 4.

    Raises ValueError if ``T`` is negative.
    """
    if T < 0:
        raise ValueError(f"T must not be negative, got {T}")
    return torch.ones(T, T, dtype=torch.bool, device=device).tril()
