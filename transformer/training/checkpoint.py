"""Checkpoints that a killed process cannot spoil: one safetensors file each, renamed into place.

- ``model.…``: the parameters and saved buffers of the model, by name;
- ``optimizer.…``: what the optimizer remembers of each parameter, by its name;
- ``about``: all else, a JSON object as bytes; nothing is pickled;
- ``sha256``: the digest of all these, by which what has been damaged is known.
"""

import json
import math
import os
import re
from collections.abc import Iterable
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor, nn

from transformer.checks import check_positive
from transformer.config import TransformerConfig
from transformer.files import remove_leftovers, replace_file
from transformer.model import Transformer
from transformer.saved import make_model, parse_json
from transformer.tensors import (
    check_all_finite,
    check_digest,
    check_like,
    copy_tensors,
    difference,
    digest_of,
    named_tensors,
    open_tensors,
)
from transformer.training.optimizer_state import named_state, restore_state

FORMAT = "transformer.training.checkpoint 3"
_NAME = re.compile(r"step-\d{8,}\.safetensors")


def save_checkpoint(
    run: str | Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    *,
    step: int,
    state: dict[str, Any],
    keep: int = 2,
) -> Path:
    """Writes ``run``/step-00000000.safetensors whole or not at all, and returns its path.

    It holds the weights, what the optimizer remembers, ``step``, the model's config and ``state``,
    which must be JSON. Of the checkpoints in ``run``, the ``keep`` latest and the best stay. One
    process at a time may save in ``run``: ``fit`` holds its lock while it trains.

    Raises ValueError for a weight that is not finite; OSError, which names the checkpoint; those
    there are stay then.
    """
    check_positive(step=step, keep=keep)
    file, weights = Path(run) / f"step-{step:08d}.safetensors", named_tensors(model)
    check_all_finite(weights, "model")
    remembered, of_optimizer = named_state(model, optimizer)
    about = {"format": FORMAT, "step": step, "config": _config(model)}
    about |= {"optimizer": of_optimizer, "state": state}
    tensors = _prefixed("model.", weights) | _prefixed("optimizer.", remembered)
    # no header, which ends at 100 MB: the losses of a few million steps would fill it
    tensors["about"] = _as_tensor(json.dumps(about).encode())
    tensors["sha256"] = _as_tensor(bytes.fromhex(digest_of(tensors)))
    file.parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(run, _NAME.pattern)
    try:
        replace_file(file, save(tensors))
    except OSError as error:
        raise OSError(f"{file} was not saved: {error}") from error
    best = best_checkpoint(run)
    for old in checkpoints(run)[:-keep]:
        if old != best:
            old.unlink()
    return file


def checkpoints(run: str | Path) -> list[Path]:
    """The checkpoints in ``run``, oldest first."""
    run = Path(run)
    names = os.listdir(run) if run.is_dir() else []  # read at once: Ctrl-C leaves no folder open
    return sorted((run / name for name in names if _NAME.fullmatch(name)), key=step_of)


def step_of(path: Path) -> int:
    """How many steps had been done when the checkpoint was saved."""
    return int(path.name.removeprefix("step-").removesuffix(".safetensors"))


def label_of(path: Path) -> Any:
    """What ``fit`` was given as ``label``; the weights are not looked at."""
    return _open(path)[0]["state"].get("label")


def best_checkpoint(run: str | Path) -> Path:
    """Of the checkpoints in ``run``, the one that ``evaluate`` gave the lowest value.

    That is the first of several, and the latest checkpoint where none was evaluated. Raises
    ValueError if there is no checkpoint.
    """
    saved = checkpoints(run)
    if not saved:
        raise ValueError(f"run must hold a checkpoint, got {run}")
    evaluations = _open(saved[-1])[0]["state"].get("evaluations", {})
    values = {path: evaluations.get(str(step_of(path)), math.nan) for path in saved}
    measured = [path for path in saved if not math.isnan(values[path])]
    return min(measured, key=lambda path: values[path], default=saved[-1])


def load_checkpoint(
    path: str | Path, model: nn.Module, optimizer: torch.optim.Optimizer | None = None
) -> tuple[int, dict[str, Any]]:
    """Restores ``model``, and ``optimizer`` if given; returns the step and the state saved with it.

    Raises ValueError, which names the file, for one that is damaged, or is of another model or
    another optimizer, and OSError for a file that cannot be read; nothing is changed then.
    """
    path = Path(path)
    about, weights, remembered = _read(path, model)
    if optimizer is not None:
        try:
            restore_state(path, remembered, about["optimizer"], model, optimizer)
        except (KeyError, TypeError) as error:
            raise ValueError(f"{path} holds no state of an optimizer: {error!r}") from error
    copy_tensors(weights, model)
    return about["step"], about["state"]


def load_transformer(path: str | Path, *, device: torch.device | str = "cpu") -> Transformer:
    """The model of a checkpoint, in evaluation mode. Raises ValueError as load_checkpoint does."""
    path = Path(path)
    about, stored = _whole(path)
    if about.get("config") is None:
        raise ValueError(f"{path} holds no Transformer: it was saved without a config")
    try:
        config = TransformerConfig(**about["config"])
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path} holds no Transformer: {error}") from error
    weights = _of(stored, "model.")
    return make_model(Transformer, config, weights, path).to(device).eval()


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
        for name, tensor in _read(Path(path), model)[1].items():
            sums[name] += tensor
    copy_tensors({name: total / len(paths) for name, total in sums.items()}, model)
    return model.to(device).eval()


def _read(
    path: Path, model: nn.Module
) -> tuple[dict[str, Any], dict[str, Tensor], dict[str, Tensor]]:
    """What stands in about, the weights, held against ``model``, and what its optimizer keeps."""
    about, stored = _whole(path)
    _check_config(path, about, model)
    weights = _of(stored, "model.")
    check_like(weights, named_tensors(model), path)
    return about, weights, _of(stored, "optimizer.")


def _config(model: nn.Module) -> dict[str, Any] | None:
    config: Any = getattr(model, "config", None)
    return asdict(config) if is_dataclass(config) and not isinstance(config, type) else None


def _check_config(path: Path, about: dict[str, Any], model: nn.Module) -> None:
    stored, own = about.get("config"), _config(model)
    if stored is not None and own is not None:
        try:  # a field may be younger than the checkpoint, and is at its default then
            kind: Any = type(model.config)
            stored = asdict(kind(**stored))
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path} is of another model: {error}") from error
    if stored != own:
        raise ValueError(f"{path} is of another model: {difference(stored or {}, own or {})}")


def _whole(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """What stands in about, and all tensors, which are as they were saved."""
    about, stored = _open(path)
    check_digest(stored, _as_bytes(stored.pop("sha256")).hex(), path)
    return about, stored


def _open(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The same, but for damage that only a look at every number finds."""
    stored = open_tensors(path)
    what = "a checkpoint of this package"
    if not stored.keys() >= {"about", "sha256"}:
        raise ValueError(f"{path} is not {what}: it has no about and no sha256")
    kinds = {"step": int, "state": dict, "optimizer": dict}
    about = parse_json(_as_bytes(stored["about"]), path, FORMAT, what, **kinds)
    if _NAME.fullmatch(path.name) and step_of(path) != about["step"]:
        wanted = f"{path} must be of step {step_of(path)}, as it is called"
        raise ValueError(f"{wanted}, got {about['step']}")
    return about, stored


def _as_tensor(data: bytes) -> Tensor:
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)


def _as_bytes(tensor: Tensor) -> bytes:
    return tensor.flatten().view(torch.uint8).numpy().tobytes()


def _prefixed(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {prefix + name: tensor for name, tensor in tensors.items()}


def _of(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}
