"""Checkpoints that a killed process cannot spoil: safetensors and JSON, renamed into place."""

import json
import math
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import MISSING, asdict, fields
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from transformer.checks import check_positive
from transformer.config import TransformerConfig
from transformer.files import flush
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
    be JSON, in state.json. Of the checkpoints in ``run``, the ``keep`` latest and the best stay.

    Raises OSError, which names the checkpoint; those there are stay then.
    """
    check_positive(step=step, keep=keep)
    run = Path(run)
    final, temporary = run / f"step-{step:08d}", run / f".writing-{os.getpid()}"
    about = {"format": FORMAT, "step": step, "config": _config(model), "state": state}
    try:
        _remove_leftovers(run)
        temporary.mkdir(parents=True)
        (temporary / _FILES[2]).write_text(json.dumps(about), encoding="utf-8")
        save_file(_weights(model), temporary / _FILES[0])
        save_file(dict(_moments(model, optimizer)), temporary / _FILES[1])
        for name in _FILES:
            flush(temporary / name)
        os.rename(temporary, final)
    except BaseException as error:
        shutil.rmtree(temporary, ignore_errors=True)
        if isinstance(error, OSError | SafetensorError):  # a full disk, say
            raise OSError(f"{final} was not saved: {error}") from error
        raise
    flush(run)
    _remove_old(run, keep)
    return final


def checkpoints(run: str | Path) -> list[Path]:
    """The checkpoints in ``run``, oldest first."""
    found = [p for p in Path(run).glob("step-*") if re.fullmatch(r"step-\d{8,}", p.name)]
    return sorted(found, key=step_of)


def step_of(path: Path) -> int:
    """How many steps had been done when the checkpoint was saved."""
    return int(path.name.removeprefix("step-"))


def best_checkpoint(run: str | Path) -> Path:
    """Of the checkpoints in ``run``, the one that ``evaluate`` gave the lowest value.

    That is the first of several, and the latest checkpoint where none was evaluated. Raises
    ValueError if there is no checkpoint, and as load_checkpoint does.
    """
    saved = checkpoints(run)
    if not saved:
        raise ValueError(f"run must hold a checkpoint, got {run}")
    evaluations = _read_about(saved[-1])["state"].get("evaluations", {})
    values = {path: evaluations.get(str(step_of(path)), math.nan) for path in saved}
    return min((p for p in saved if not math.isnan(values[p])), key=values.get, default=saved[-1])


def load_checkpoint(
    path: str | Path, model: nn.Module, optimizer: torch.optim.Optimizer | None = None
) -> tuple[int, dict[str, Any]]:
    """Restores ``model``, and ``optimizer`` if given; returns the step and the state saved with it.

    Raises ValueError, which names the file, for one that is truncated, of another model or has
    NaN among its weights, and OSError for one that cannot be read; nothing is changed then.
    """
    path = Path(path)
    about = _read_about(path)
    saved, config = about["config"], _config(model)
    if isinstance(saved, dict) and config is not None:
        saved = _defaults(type(model.config)) | saved  # a field may be younger than the checkpoint
    if saved != config:
        raise ValueError(f"{path} is of another model: {_difference(saved, config)}")
    weights = _read_tensors(path / _FILES[0], _weights(model))
    broken = [name for name, _ in model.named_parameters() if not weights[name].isfinite().all()]
    if broken:
        raise ValueError(f"{path / _FILES[0]} must hold finite weights, got others in {broken[0]}")
    if optimizer is not None:
        _restore_moments(model, optimizer, _read_moments(path / _FILES[1], model))
    _copy_weights(weights, model)
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


def average_checkpoints(
    paths: Iterable[str | Path], *, device: torch.device | str = "cpu"
) -> Transformer:
    """The model whose weights are the means of theirs, in evaluation mode.

    Vaswani et al. (2017), section 6.1, average the last 5 checkpoints, or 20.

    Raises ValueError if there are none, or of two models, and as load_checkpoint does.
    """
    paths = list(paths)
    if not paths:
        raise ValueError("paths must hold at least one checkpoint, got none")
    model = load_transformer(paths[0])
    sums = {name: tensor.double() for name, tensor in _weights(model).items()}
    for path in paths[1:]:
        load_checkpoint(path, model)
        for name, tensor in _weights(model).items():
            sums[name] += tensor
    _copy_weights({name: total / len(paths) for name, total in sums.items()}, model)
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


def _copy_weights(weights: dict[str, Tensor], model: nn.Module) -> None:
    with torch.no_grad():
        for name, tensor in _weights(model).items():
            tensor.copy_(weights[name])


def _config(model: nn.Module) -> dict[str, Any] | None:
    return asdict(model.config) if hasattr(model, "config") else None


def _defaults(kind: type) -> dict[str, Any]:
    return {f.name: f.default for f in fields(kind) if f.default is not MISSING}


def _read_about(path: Path) -> dict[str, Any]:
    file = path / _FILES[2]
    data = file.read_bytes()
    try:
        about = json.loads(data)
        if about["format"] != FORMAT or not isinstance(about["step"], int):
            raise ValueError(f"its format is not {FORMAT!r}")
        if not isinstance(about["state"], dict):
            raise ValueError("its state is not an object")
        if not isinstance(about["config"], dict | None):
            raise ValueError("its config is not an object")
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{file} is not a checkpoint of this package: {error!r}") from error
    return about


def _read_tensors(file: Path, like: dict[str, Tensor]) -> dict[str, Tensor]:
    tensors = _open_tensors(file)
    shapes, wanted = ({n: tuple(t.shape) for n, t in ts.items()} for ts in (tensors, like))
    if shapes != wanted:
        raise ValueError(f"{file} is of another model: {_difference(shapes, wanted)}")
    return tensors


def _open_tensors(file: Path) -> dict[str, Tensor]:
    with open(file, "rb"):  # a missing permission is named here: safetensors misses the file
        pass
    try:
        return load_file(file)
    except SafetensorError as error:
        raise ValueError(f"{file} is damaged: {error}") from error


def _difference(got: dict | None, wanted: dict | None) -> str:
    got, wanted = got or {}, wanted or {}
    names = sorted(n for n in got.keys() | wanted.keys() if got.get(n) != wanted.get(n))
    shown = [f"{n} is {got.get(n)}, not {wanted.get(n)}" for n in names[:3]]
    return "; ".join([*shown, *([f"and {len(names) - 3} more"] if len(names) > 3 else [])])


def _remove_leftovers(run: Path) -> None:
    for pattern in (".writing-*", ".removing-*"):
        for folder in run.glob(pattern):
            shutil.rmtree(folder)


def _remove_old(run: Path, keep: int) -> None:
    best = best_checkpoint(run)
    for old in checkpoints(run)[:-keep]:
        if old != best:
            os.rename(old, run / f".removing-{old.name}")  # so that none is ever half there
            shutil.rmtree(run / f".removing-{old.name}")
