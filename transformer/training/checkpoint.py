"""Checkpoints, from which a killed training goes on to the same weights: a file for each step.

``torch.save`` writes it, and ``torch.load`` reads it with ``weights_only``, which makes tensors,
numbers, strings, lists and dicts and runs nothing:

- ``format``, ``step``, and ``state``, which is the caller's;
- ``config``, the fields of the model's, and ``model``, its parameters and saved buffers by name;
- ``optimizer``, its class, the names of the parameters in each group, and its ``state_dict``.

The file ends with the SHA-256 of all that, by which damage is known; ``torch.load`` passes it over.
"""

import io
import math
import pickle
from collections.abc import Iterable, Mapping
from dataclasses import asdict, is_dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from transformer.checks import check_positive
from transformer.config import TransformerConfig
from transformer.files import remove_leftovers, replace_file
from transformer.model import Transformer
from transformer.saved import make_config, make_model
from transformer.tensors import check_like, copy_tensors, difference, named_tensors

FORMAT = "transformer.training.checkpoint 4"
_DIGEST_SIZE = sha256().digest_size


def save_checkpoint(
    run: str | Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    *,
    step: int,
    state: dict[str, Any],
    keep: int = 2,
) -> Path:
    """Writes ``run``/step-00000000.pt whole or not at all, and returns its path.

    It holds the weights, what the optimizer remembers, ``step``, the model's config and ``state``:
    numbers, strings, tensors, lists and dicts. Of the checkpoints in ``run``, the ``keep`` latest
    stay, and the best by ``state["evaluations"]``, which has values by step. One process at a time
    may save in ``run``: ``fit`` holds its lock while it trains.

    Raises ValueError for a state that could not be loaded again, and OSError, which names the
    checkpoint, where it cannot be written; those that are there stay then.
    """
    check_positive(step=step, keep=keep)
    file = Path(run) / f"step-{step:08d}.pt"
    data = io.BytesIO()
    torch.save(
        {
            "format": FORMAT,
            "step": step,
            "state": state,
            "config": _config(model),
            "model": named_tensors(model),
            "optimizer": _described(model, optimizer) | {"state_dict": optimizer.state_dict()},
        },
        data,
    )
    try:  # what could not be loaded must not take the place of what can
        data.seek(0)
        torch.load(data, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        wanted = "tensors, numbers, strings, lists and dicts alone"
        raise ValueError(f"state and optimizer must hold {wanted}, got others") from error
    file.parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(run, "step-*")
    replace_file(file, data.getvalue() + sha256(data.getbuffer()).digest())
    saved = checkpoints(run)
    best = _best(saved, state)
    for old in saved[:-keep]:
        if old != best:
            old.unlink()
    return file


def checkpoints(run: str | Path) -> list[Path]:
    """The checkpoints in ``run``, oldest first.

    Raises ValueError, which names it, for one of the format that this package had before.
    """
    before = sorted(Path(run).glob("step-*.safetensors"))
    if before:
        raise ValueError(f"{before[-1]} is of an earlier version of this package, and is not read")
    return sorted(Path(run).glob("step-[0-9]*.pt"), key=step_of)


def step_of(path: Path) -> int:
    """How many steps had been done when the checkpoint was saved."""
    return int(path.stem.removeprefix("step-"))


def best_checkpoint(run: str | Path) -> Path:
    """The checkpoint in ``run`` that ``evaluate`` gave the lowest value.

    That is the first of several, and the latest checkpoint where none was evaluated. Raises
    ValueError if there is no checkpoint.
    """
    saved = checkpoints(run)
    if not saved:
        raise ValueError(f"run must hold a checkpoint, got {run}")
    return _best(saved, _read(saved[-1])["state"])


def load_checkpoint(
    path: str | Path, model: nn.Module, optimizer: torch.optim.Optimizer | None = None
) -> tuple[int, dict[str, Any]]:
    """Restores ``model``, and ``optimizer`` if given; returns the step and the state saved with it.

    The options of the optimizer's groups, such as the learning rate, are those that were saved.

    Raises ValueError, which names the file, for one that is damaged, or is of another model or
    another optimizer, and OSError for a file that cannot be read; nothing is changed then.
    """
    saved = _fitting(Path(path), model)
    if optimizer is not None:
        stored, own = saved["optimizer"], _described(model, optimizer)
        if stored["class"] != own["class"]:
            found = f"{stored['class']}, not {own['class']}"
            raise ValueError(f"{path} is of another optimizer: {found}")
        if stored["groups"] != own["groups"]:
            raise ValueError(
                f"{path} is of another {own['class']}: its groups are of other weights"
            )
        _restore(optimizer, stored["state_dict"])
    copy_tensors(saved["model"], model)
    return saved["step"], saved["state"]


def load_transformer(path: str | Path, *, device: torch.device | str = "cpu") -> Transformer:
    """The model of a checkpoint, in evaluation mode. Raises ValueError as load_checkpoint does."""
    path = Path(path)
    saved = _read(path)
    config = make_config(TransformerConfig, saved["config"], path)
    return make_model(Transformer, config, saved["model"], path).to(device).eval()


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
        for name, tensor in _fitting(Path(path), model)["model"].items():
            sums[name] += tensor
    copy_tensors({name: total / len(paths) for name, total in sums.items()}, model)
    return model.to(device).eval()


def _read(path: Path) -> dict[str, Any]:
    """What ``save_checkpoint`` wrote into a file, on the CPU."""
    data = path.read_bytes()
    if sha256(memoryview(data)[:-_DIGEST_SIZE]).digest() != data[-_DIGEST_SIZE:]:
        raise ValueError(f"{path} is damaged, or no checkpoint of this version")
    saved = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    if saved.get("format") != FORMAT:
        raise ValueError(f"{path} must have the format {FORMAT!r}, got {saved.get('format')!r}")
    return saved


def _fitting(path: Path, model: nn.Module) -> dict[str, Any]:
    """What stands in a file of this model's. Raises ValueError for one of another model."""
    saved = _read(path)
    if (own := _config(model)) is not None:
        # a field may be younger than the checkpoint, and is at its default then
        kind: Any = type(model.config)
        stored = asdict(make_config(kind, saved["config"], path))
        if stored != own:
            raise ValueError(f"{path} is of another model: {difference(stored, own)}")
    check_like(saved["model"], named_tensors(model), path)
    return saved


def _config(model: nn.Module) -> dict[str, Any] | None:
    """The fields of a model's config, if it has one."""
    config: Any = getattr(model, "config", None)
    return asdict(config) if is_dataclass(config) and not isinstance(config, type) else None


def _best(saved: list[Path], state: Mapping[str, Any]) -> Path:
    """The first checkpoint with the lowest evaluation, or the latest if none has one."""
    evaluations = state.get("evaluations", {})
    values = {path: evaluations.get(step_of(path), math.nan) for path in saved}
    measured = [path for path in saved if not math.isnan(values[path])]
    return min(measured, key=lambda path: values[path], default=saved[-1])


def _described(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """The class of an optimizer, and the names of the parameters in each of its groups."""
    names = {p: name for name, p in model.named_parameters()}
    groups = [[names.get(p) for p in group["params"]] for group in optimizer.param_groups]
    return {"class": type(optimizer).__name__, "groups": groups}


def _restore(optimizer: torch.optim.Optimizer, stored: dict[str, Any]) -> None:
    """Gives an optimizer the ``state_dict`` of another of its kind, to the bit."""
    optimizer.load_state_dict(stored)
    # which gave numbers the type of their parameter, and NAdam's product is of another
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    for i, p in enumerate(parameters):
        for key, value in stored["state"].get(i, {}).items():
            if isinstance(value, Tensor) and value.dim() == 0 and key != "step":
                optimizer.state[p][key] = value.to(optimizer.state[p][key].device)
