"""The checks of what the reader writes, in a module for each chapter."""

import torch
from torch import Tensor


def drawn(seed: int, *shapes: tuple[int, ...]) -> tuple[Tensor, ...]:
    """Tensors of these shapes, of normal numbers that are drawn one after the other."""
    g = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(shape, generator=g) for shape in shapes)
