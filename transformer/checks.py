"""Checks of what callers pass in, which the modules of several chapters share."""

import torch
from torch import Tensor


def check_positive(**sizes: int) -> None:
    """Raises TypeError for a size that is no integer, ValueError for one below 1; names it."""
    for name, size in sizes.items():
        if not isinstance(size, int) or isinstance(size, bool):
            raise TypeError(f"{name} must be an integer, got {size!r}")
        if size < 1:
            raise ValueError(f"{name} must be positive, got {size}")


def check_shape(tensor: Tensor, *wanted: int | str, name: str) -> None:
    """Raises ValueError unless ``tensor`` has the ``wanted`` sizes; a letter means any."""
    sizes = tensor.shape
    if len(sizes) != len(wanted) or any(
        isinstance(want, int) and size != want for size, want in zip(sizes, wanted, strict=True)
    ):
        shape = f"({', '.join(map(str, wanted))}{',' if len(wanted) == 1 else ''})"
        raise ValueError(f"{name} must have shape {shape}, got {tuple(sizes)}")


def check_width(x: Tensor, width: int, *, name: str) -> None:
    """Raises ValueError unless the last axis of ``x`` is ``width`` long."""
    if x.dim() == 0 or x.size(-1) != width:
        raise ValueError(f"{name} must have shape (..., {width}), got {tuple(x.shape)}")


def check_tokens(tokens: Tensor, vocab_size: int, *, name: str) -> None:
    """Raises ValueError unless ``tokens`` is (B, length ≥ 1), of integers in [0, vocab_size).

    The smallest and the largest id come to the CPU in one copy: on a GPU the check waits for
    whatever made the tokens, once.
    """
    if not isinstance(tokens, Tensor):
        raise TypeError(f"{name} must be a tensor of ids, got {type(tokens).__name__}")
    if tokens.dim() != 2:
        raise ValueError(f"{name} must have two axes (B, length), got shape {tuple(tokens.shape)}")
    if tokens.dtype not in (torch.int32, torch.int64):
        raise ValueError(f"{name} must hold integer ids, got {tokens.dtype}; want int64 or int32")
    if tokens.size(1) == 0:
        raise ValueError(f"{name} must have at least one position, got {tuple(tokens.shape)}")
    if tokens.size(0) == 0:
        return  # no sentence, no id; aminmax would fail
    smallest, largest = torch.stack(tokens.aminmax()).tolist()
    if smallest < 0 or largest >= vocab_size:
        wrong = smallest if smallest < 0 else largest
        raise ValueError(f"{name} must hold ids from 0 to {vocab_size - 1}, got {wrong}")
