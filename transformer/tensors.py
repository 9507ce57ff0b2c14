"""Tensors by name in a safetensors file; what it holds is known before any of it is read."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from transformer.checks import shape_text

# as the header of a safetensors file writes the types that a tensor of ours can have
_TYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}


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


def layout(file: Path) -> dict[str, Tensor]:
    """The names, shapes and types in a file: tensors without values, from its header alone.

    Raises ValueError, which names the file, for what is no safetensors file or is cut off, and
    OSError for one that cannot be read.
    """
    with open(file, "rb"):  # a missing permission is named here: safetensors misses the file
        pass
    try:
        with safe_open(file, framework="pt") as stored:
            slices = {name: stored.get_slice(name) for name in stored.keys()}  # noqa: SIM118
            kinds = {name: part.get_dtype() for name, part in slices.items()}
            shapes = {name: part.get_shape() for name, part in slices.items()}
    except SafetensorError as error:
        raise ValueError(f"{file} is damaged: {error}") from error
    if unknown := next((name for name, kind in kinds.items() if kind not in _TYPES), None):
        raise ValueError(f"{file} must hold plain numbers, got {unknown} of type {kinds[unknown]}")
    return {
        name: torch.empty(shape, dtype=_TYPES[kinds[name]], device="meta")
        for name, shape in shapes.items()
    }


def check_layout(file: Path, like: Mapping[str, Tensor]) -> None:
    """Raises ValueError unless a file holds tensors of the names, shapes and types of ``like``."""
    stored = layout(file)
    shapes = [{n: shape_text(t.shape) for n, t in ts.items()} for ts in (stored, like)]
    types = [{n: f"{t.dtype}"[6:] for n, t in ts.items()} for ts in (stored, like)]  # no "torch."
    for got, wanted in (shapes, types):
        if got != wanted:
            raise ValueError(f"{file} is of another model: {difference(got, wanted)}")


def read_tensors(file: Path, like: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors of a file, on the CPU, once its header has shown that they are as ``like``.

    Raises ValueError as ``check_layout`` does, and for a number that is not finite.
    """
    check_layout(file, like)
    with safe_open(file, framework="pt") as stored:
        tensors = {name: stored.get_tensor(name) for name in like}
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not tensor.isfinite().all():
            raise ValueError(f"{file} must hold finite numbers, got others in {name}")
    return tensors


def difference(got: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    """The first three names whose values differ, with both values."""
    names = sorted(n for n in got.keys() | wanted.keys() if got.get(n) != wanted.get(n))
    shown = [f"{n} is {got.get(n)}, not {wanted.get(n)}" for n in names[:3]]
    return "; ".join([*shown, *([f"and {len(names) - 3} more"] if len(names) > 3 else [])])
