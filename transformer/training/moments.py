"""What Adam remembers, by the names of the parameters: as a checkpoint keeps it (chapter 9)."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from transformer.tensors import open_tensors, read_tensors

_KEYS = ("step", "exp_avg", "exp_avg_sq")  # Kingma and Ba (2015), Algorithm 1: t, m and v
_MOST_STEPS = 2**24  # Adam counts them in float32, which has no whole number after this one


def named_moments(
    model: nn.Module, optimizer: torch.optim.Optimizer
) -> Iterator[tuple[str, Tensor]]:
    """Adam's step count and two moments of each parameter that it has moved."""
    for name, p in model.named_parameters():
        for key, tensor in optimizer.state.get(p, {}).items():
            yield f"{name}:{key}", tensor.detach()


def read_moments(file: Path, model: nn.Module) -> dict[str, Tensor]:
    """The moments in a safetensors file, for the parameters of ``model`` that it names.

    Raises ValueError, which names the file and the tensor, for moments of another model, and for
    those that no Adam can have: not finite, negative mean squares, half a step.
    """
    moved = {name.rpartition(":")[0] for name in open_tensors(file)}
    like: dict[str, Tensor] = {}
    for name, p in model.named_parameters():
        if name in moved:
            counted = torch.zeros((), device="meta")
            like |= zip((f"{name}:{key}" for key in _KEYS), (counted, p, p), strict=True)
    moments = read_tensors(file, like)
    for name, tensor in moments.items():
        if name.endswith(":exp_avg_sq") and (tensor < 0).any():
            raise ValueError(f"{file} must hold no negative number in {name}")
        if name.endswith(":step") and not (0 <= tensor.item() <= _MOST_STEPS and tensor % 1 == 0):
            raise ValueError(f"{file} must hold a number of steps in {name}, got {tensor.item():g}")
    return moments


def restore_moments(
    model: nn.Module, optimizer: torch.optim.Optimizer, moments: Mapping[str, Tensor]
) -> None:
    """Gives ``optimizer``, which moves the parameters of ``model``, what ``read_moments`` read."""
    names = {p: name for name, p in model.named_parameters()}
    ordered = [p for group in optimizer.param_groups for p in group["params"]]
    stored = optimizer.state_dict()  # in which parameters are numbers, in their order
    stored["state"] = {
        i: {key: moments[f"{names[p]}:{key}"] for key in _KEYS}
        for i, p in enumerate(ordered)
        if f"{names[p]}:step" in moments
    }
    optimizer.load_state_dict(stored)
