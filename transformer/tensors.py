"""Tensors by name: those of a model, those in a safetensors file, and whether they fit."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from transformer.checks import shape_text


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


def open_tensors(file: Path) -> dict[str, Tensor]:
    """The tensors of a file, on the CPU; their numbers are read where they are first looked at.

    Raises ValueError, which names the file, for what is no safetensors file or is cut off, and
    OSError for one that cannot be read.
    """
    return open_with_metadata(file)[0]


def open_with_metadata(file: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """What ``open_tensors`` returns, and the strings that stand in the file's header."""
    with open(file, "rb"):  # a missing permission is named here: safetensors misses the file
        pass
    try:
        with safe_open(file, "pt") as opened:
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
            return tensors, opened.metadata() or {}
    except SafetensorError as error:
        raise ValueError(f"{file} is damaged: {error}") from error


def check_like(
    stored: Mapping[str, Tensor],
    like: Mapping[str, Tensor],
    source: str | Path,
    fault: str = "is of another model",
) -> None:
    """Raises ValueError unless what ``source`` holds has the names and shapes of a model's."""
    got, wanted = ({n: shape_text(x.shape) for n, x in ts.items()} for ts in (stored, like))
    if got != wanted:
        raise ValueError(f"{source} {fault}: {difference(got, wanted)}")


def difference(got: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    """The first three names whose values differ, with both values."""
    names = sorted(n for n in got.keys() | wanted.keys() if got.get(n) != wanted.get(n))
    shown = [f"{n} is {got.get(n)}, not {wanted.get(n)}" for n in names[:3]]
    return "; ".join([*shown, *([f"and {len(names) - 3} more"] if len(names) > 3 else [])])
