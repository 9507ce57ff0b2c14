"""Checkpoints that a killed process cannot spoil: safetensors and JSON, renamed into place."""

import json
import math
import os
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from transformer.checks import check_positive
from transformer.config import TransformerConfig
from transformer.files import remove, whole_folder
from transformer.model import Transformer
from transformer.saved import make_model, read_json
from transformer.tensors import (
    copy_tensors,
    difference,
    named_tensors,
    open_tensors,
    read_tensors,
    save_tensors,
)
from transformer.training.moments import named_moments, read_moments, restore_moments

FORMAT = "transformer.training.checkpoint 1"
_FILES = ("model.safetensors", "optimizer.safetensors", "state.json")
_NAME = re.compile(r"step-\d{8,}")


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
    One process at a time may save in ``run``: ``fit`` holds its lock while it trains.

    Raises OSError, which names the checkpoint; those there are stay then.
    """
    check_positive(step=step, keep=keep)
    run = Path(run)
    final, temporary = run / f"step-{step:08d}", run / f".writing-{os.getpid()}"
    about = {"format": FORMAT, "step": step, "config": _config(model), "state": state}
    _remove_leftovers(run)
    with whole_folder(final, temporary):
        (temporary / _FILES[2]).write_text(json.dumps(about), encoding="utf-8")
        save_tensors(named_tensors(model), temporary / _FILES[0])
        save_tensors(dict(named_moments(model, optimizer)), temporary / _FILES[1])
    _remove_old(run, keep)
    return final


def checkpoints(run: str | Path) -> list[Path]:
    """The checkpoints in ``run``, oldest first."""
    run = Path(run)
    return sorted((run / name for name in _names(run) if _NAME.fullmatch(name)), key=step_of)


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
    if not isinstance(evaluations, dict) or not all(map(_is_number, evaluations.values())):
        raise ValueError(f"{saved[-1] / _FILES[2]} must hold numbers in state.evaluations")
    values = {path: evaluations.get(str(step_of(path)), math.nan) for path in saved}
    measured = [path for path in saved if not math.isnan(values[path])]
    return min(measured, key=lambda path: values[path], default=saved[-1])


@dataclass(frozen=True)
class Checkpoint:
    """What a checkpoint holds, read and held against a model, which has not changed yet."""

    file: Path  # state.json, for whoever checks the state to name
    step: int
    state: dict[str, Any]
    weights: dict[str, Tensor]
    moments: dict[str, Tensor]

    def restore(self, model: nn.Module, optimizer: torch.optim.Optimizer | None = None) -> None:
        """Gives ``model``, and ``optimizer`` if there is one, what it was read for."""
        copy_tensors(self.weights, model)
        if optimizer is not None:
            restore_moments(model, optimizer, self.moments)


def read_checkpoint(
    path: str | Path, model: nn.Module, optimizer: torch.optim.Optimizer | None = None
) -> Checkpoint:
    """All that ``load_checkpoint`` restores, checked; ``state`` is for the caller to check.

    Raises ValueError, which names the file, for one that is cut off, of another model, or holds
    what no training leaves: numbers that are not finite, negative second moments, half a step.
    """
    path = Path(path)
    about = _read_about(path)
    check_config(path, model)
    weights = read_tensors(path / _FILES[0], named_tensors(model))
    moments = {} if optimizer is None else read_moments(path / _FILES[1], model)
    return Checkpoint(path / _FILES[2], about["step"], about["state"], weights, moments)


def load_checkpoint(
    path: str | Path, model: nn.Module, optimizer: torch.optim.Optimizer | None = None
) -> tuple[int, dict[str, Any]]:
    """Restores ``model``, and ``optimizer`` if given; returns the step and the state saved with it.

    Raises ValueError as ``read_checkpoint`` does, and OSError for a file that cannot be read;
    nothing is changed then.
    """
    saved = read_checkpoint(path, model, optimizer)
    saved.restore(model, optimizer)
    return saved.step, saved.state


def check_config(path: Path, model: nn.Module) -> None:
    """Raises ValueError unless the checkpoint is of a model with the config of ``model``.

    That takes a look at a small file, and none at the weights.
    """
    stored, own = _read_about(path)["config"], _config(model)
    if stored is not None and own is not None:
        kind: Any = type(model.config)
        try:  # a field may be younger than the checkpoint
            stored = asdict(kind(**stored))
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path} is of another model: {error}") from error
    if stored != own:
        raise ValueError(f"{path} is of another model: {difference(stored or {}, own or {})}")


def load_transformer(path: str | Path, *, device: torch.device | str = "cpu") -> Transformer:
    """The model of a checkpoint, in evaluation mode. Raises ValueError as load_checkpoint does."""
    path = Path(path)
    config = _read_about(path)["config"]
    if config is None:
        raise ValueError(f"{path} holds no Transformer: it was saved without a config")
    file = path / _FILES[0]
    try:
        made = TransformerConfig(**config)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path} holds no Transformer: {error}") from error
    return make_model(Transformer, made, open_tensors(file), file).to(device).eval()


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
    sums = {name: tensor.double() for name, tensor in named_tensors(model).items()}
    for path in paths[1:]:
        for name, tensor in read_checkpoint(path, model).weights.items():
            sums[name] += tensor
    copy_tensors({name: total / len(paths) for name, total in sums.items()}, model)
    return model.to(device).eval()


def _config(model: nn.Module) -> dict[str, Any] | None:
    config: Any = getattr(model, "config", None)
    return asdict(config) if is_dataclass(config) and not isinstance(config, type) else None


def _read_about(path: Path) -> dict[str, Any]:
    """What state.json says, with everything of the right type but what the caller put in state."""
    file = path / _FILES[2]
    about = read_json(file, FORMAT, "a checkpoint of this package", step=int, state=dict)
    if not isinstance(about.get("config"), dict | None):
        raise ValueError(f"{file} is not a checkpoint of this package: its config is no object")
    if _NAME.fullmatch(path.name) and step_of(path) != about["step"]:
        wanted = f"{file} must be of step {step_of(path)}, as its folder"
        raise ValueError(f"{wanted}, got {about['step']}")
    return about


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _remove_leftovers(run: Path) -> None:
    """What processes that were killed have left half written or half removed."""
    for name in _names(run):
        if name.startswith((".writing-", ".removing-")):
            remove(run / name)


def _names(run: Path) -> list[str]:
    """What lies in ``run``, read at once: Ctrl-C leaves no folder open."""
    return os.listdir(run) if run.is_dir() else []


def _remove_old(run: Path, keep: int) -> None:
    best = best_checkpoint(run)
    for old in checkpoints(run)[:-keep]:
        if old != best:
            os.rename(old, run / f".removing-{old.name}")  # so that none is ever half there
            remove(run / f".removing-{old.name}")
