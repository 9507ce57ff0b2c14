"""Tensors by name in a safetensors file, which is held against a model before it changes one."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from transformer.checks import shape_text

_FLOATS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)


def named_tensors(model: nn.Module) -> dict[str, Tensor]:
    """The parameters and the saved buffers of a model, as views of its own.

    Each comes once, under its first name, though several modules may share it.
    """
    saved = model.state_dict().keys()  # a table of positions is made anew rather than saved
    named: dict[str, Tensor] = dict(model.named_parameters())
    named |= {name: buffer for name, buffer in model.named_buffers() if name in saved}
    return {name: tensor.detach() for name, tensor in named.items()}


def copy_tensors(tensors: Mapping[str, Tensor], model: nn.Module) -> None:
    """Gives a model the values of ``tensors``, which are named as ``named_tensors`` does."""
    with torch.no_grad():
        for name, own in named_tensors(model).items():
            own.copy_(tensors[name])


def save_tensors(tensors: Mapping[str, Tensor], file: Path) -> None:
    """Raises OSError where the file cannot be written, as on a full disk."""
    file.touch()
    mode = file.stat().st_mode  # the user's usual one; safetensors lets nobody else read a file
    try:
        save_file(dict(tensors), file, metadata={"format": "pt"})
    except SafetensorError as error:
        raise OSError(str(error)) from error
    file.chmod(mode)


def open_tensors(file: Path) -> dict[str, Tensor]:
    """The tensors of a file, on the CPU; their numbers are read where they are first looked at.

    Raises ValueError, which names the file, for what is no safetensors file or is cut off, and
    OSError for one that cannot be read.
    """
    with open(file, "rb"):  # a missing permission is named here: safetensors misses the file
        pass
    try:
        return load_file(file)
    except SafetensorError as error:
        raise ValueError(f"{file} is damaged: {error}") from error


def check_like(stored: Mapping[str, Tensor], like: Mapping[str, Tensor], file: Path) -> None:
    """Raises ValueError unless what ``file`` holds is like the tensors of a model, and finite."""
    shapes = [{n: shape_text(t.shape) for n, t in ts.items()} for ts in (stored, like)]
    types = [{n: f"{t.dtype}"[6:] for n, t in ts.items()} for ts in (stored, like)]  # no "torch."
    for got, wanted in (shapes, types):
        if got != wanted:
            raise ValueError(f"{file} is of another model: {difference(got, wanted)}")
    for name, tensor in stored.items():
        if tensor.is_floating_point():
            check_finite(tensor, name, file)


def check_finite(tensor: Any, name: str, source: str | Path) -> None:
    """Raises ValueError unless a tensor of ``source`` holds floating-point numbers, all finite."""
    got = tensor.dtype if isinstance(tensor, Tensor) else type(tensor)
    if got not in _FLOATS:
        raise ValueError(f"{source} must hold floating-point numbers, got {got} in {name}")
    if not tensor.isfinite().all():
        raise ValueError(f"{source} must hold finite numbers, got others in {name}")


def difference(got: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    """The first three names whose values differ, with both values."""
    names = sorted(n for n in got.keys() | wanted.keys() if got.get(n) != wanted.get(n))
    shown = [f"{n} is {got.get(n)}, not {wanted.get(n)}" for n in names[:3]]
    return "; ".join([*shown, *([f"and {len(names) - 3} more"] if len(names) > 3 else [])])
