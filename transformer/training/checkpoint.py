"""Checkpoints that a killed process cannot spoil: safetensors and JSON, renamed into place."""

import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import MISSING, asdict, fields
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from transformer.checks import check_positive
from transformer.config import TransformerConfig
from transformer.model import Transformer

FORMAT = "transformer.training.checkpoint 1"
_FILES = ("model.safetensors", "optimizer.safetensors", "state.json")


def save_checkpoint(
    run: str | Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    *,
    step: int,
    state: dict[str, Any],
    keep: int = 2,
) -> Path:
    """Writes ``run``/step-00000000 whole or not at all, and returns its path.

    Weights and moments are in safetensors; ``step``, the model's config and ``state``, which must
    be JSON, in state.json. Of the checkpoints in ``run``, the ``keep`` latest stay.
    """
    check_positive(step=step, keep=keep)
    run = Path(run)
    final, temporary = run / f"step-{step:08d}", run / f".writing-{os.getpid()}"
    _remove_leftovers(run)
    temporary.mkdir(parents=True)
    about = {"format": FORMAT, "step": step, "config": _config(model), "state": state}
    try:
        save_file(_weights(model), temporary / _FILES[0])
        save_file(dict(_moments(model, optimizer)), temporary / _FILES[1])
        (temporary / _FILES[2]).write_text(json.dumps(about), encoding="utf-8")
        for name in _FILES:
            _flush(temporary / name)
        os.rename(temporary, final)
    except BaseException:
        shutil.rmtree(temporary)
        raise
    _flush(run)
    for old in checkpoints(run)[:-keep]:
        os.rename(old, run / f".removing-{old.name}")  # so that no checkpoint is ever half there
        shutil.rmtree(run / f".removing-{old.name}")
    return final


def checkpoints(run: str | Path) -> list[Path]:
    """The checkpoints in ``run``, oldest first."""
    found = [p for p in Path(run).glob("step-*") if re.fullmatch(r"step-\d{8,}", p.name)]
    return sorted(found, key=lambda p: int(p.name.removeprefix("step-")))


def load_checkpoint(
    path: str | Path, model: nn.Module, optimizer: torch.optim.Optimizer | None = None
) -> tuple[int, dict[str, Any]]:
    """Restores ``model``, and ``optimizer`` if given; returns the step and the state saved with it.

    Raises ValueError, which names the file, for one that is missing, truncated or of another
    model; nothing is changed then.
    """
    path = Path(path)
    about = _read_about(path)
    saved, config = about["config"], _config(model)
    if isinstance(saved, dict) and config is not None:
        saved = _defaults(type(model.config)) | saved  # a field may be younger than the checkpoint
    if saved != config:
        raise ValueError(f"{path} is of another model: {_difference(saved, config)}")
    weights = _read_tensors(path / _FILES[0], _weights(model))
    if optimizer is not None:
        _restore_moments(model, optimizer, _read_moments(path / _FILES[1], model))
    with torch.no_grad():
        for name, tensor in _weights(model).items():
            tensor.copy_(weights[name])
    return about["step"], about["state"]


def load_transformer(path: str | Path, *, device: torch.device | str = "cpu") -> Transformer:
    """The model of a checkpoint, in evaluation mode. Raises ValueError as load_checkpoint does."""
    about = _read_about(Path(path))
    try:
        model = Transformer(TransformerConfig(**about["config"]))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path} holds no Transformer: {error}") from error
    load_checkpoint(path, model)
    return model.to(device).eval()


def _weights(model: nn.Module) -> dict[str, Tensor]:
    """Each tensor once, though several modules may share it; views of the model's own."""
    named = dict(model.named_parameters())
    known = model.state_dict().keys()
    named |= {name: buffer for name, buffer in model.named_buffers() if name in known}
    return {name: tensor.detach() for name, tensor in named.items()}


def _moments(model: nn.Module, optimizer) -> Iterator[tuple[str, Tensor]]:
    """Adam's step count and two moments of each parameter that it has moved, by name."""
    for name, p in model.named_parameters():
        for key, tensor in optimizer.state.get(p, {}).items():
            yield f"{name}:{key}", tensor.detach()


def _read_moments(file: Path, model: nn.Module) -> dict[str, Tensor]:
    moved = {name.rpartition(":")[0] for name in _open_tensors(file)}
    like = {}
    for name, p in model.named_parameters():
        if name in moved:
            like |= {f"{name}:step": torch.zeros(()), f"{name}:exp_avg": p, f"{name}:exp_avg_sq": p}
    return _read_tensors(file, like)


def _restore_moments(model: nn.Module, optimizer, moments: dict[str, Tensor]) -> None:
    names = {p: name for name, p in model.named_parameters()}
    ordered = [p for group in optimizer.param_groups for p in group["params"]]
    stored = optimizer.state_dict()
    stored["state"] = {
        i: {key: moments[f"{names[p]}:{key}"] for key in ("step", "exp_avg", "exp_avg_sq")}
        for i, p in enumerate(ordered)
        if f"{names[p]}:step" in moments
    }
    optimizer.load_state_dict(stored)


def _config(model: nn.Module) -> dict[str, Any] | None:
    return asdict(model.config) if hasattr(model, "config") else None


def _defaults(kind: type) -> dict[str, Any]:
    return {f.name: f.default for f in fields(kind) if f.default is not MISSING}


def _read_about(path: Path) -> dict[str, Any]:
    file = path / _FILES[2]
    try:
        about = json.loads(file.read_bytes())
        if about["format"] != FORMAT or not isinstance(about["step"], int):
            raise ValueError(f"its format is not {FORMAT!r}")
        if not isinstance(about["state"], dict) or not isinstance(
            about["config"], dict | type(None)
        ):
            raise ValueError("its config or state is not an object")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{file} is not a checkpoint of this package: {error!r}") from error
    return about


def _read_tensors(file: Path, like: dict[str, Tensor]) -> dict[str, Tensor]:
    tensors = _open_tensors(file)
    shapes, wanted = ({n: tuple(t.shape) for n, t in ts.items()} for ts in (tensors, like))
    if shapes != wanted:
        raise ValueError(f"{file} is of another model: {_difference(shapes, wanted)}")
    return tensors


def _open_tensors(file: Path) -> dict[str, Tensor]:
    try:
        return load_file(file)
    except (OSError, SafetensorError) as error:
        raise ValueError(f"{file} is missing or damaged: {error}") from error


def _difference(got: dict | None, wanted: dict | None) -> str:
    got, wanted = got or {}, wanted or {}
    names = sorted(n for n in got.keys() | wanted.keys() if got.get(n) != wanted.get(n))
    shown = [f"{n} is {got.get(n)}, not {wanted.get(n)}" for n in names[:3]]
    return "; ".join([*shown, *([f"and {len(names) - 3} more"] if len(names) > 3 else [])])


def _flush(path: Path) -> None:
    """Has the disk hold what the kernel does, so that a power cut loses nothing either."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove_leftovers(run: Path) -> None:
    for pattern in (".writing-*", ".removing-*"):
        for folder in run.glob(pattern):
            shutil.rmtree(folder)
