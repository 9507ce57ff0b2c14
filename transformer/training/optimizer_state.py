"""What an optimizer remembers, by the names of the parameters (chapter 9).

All of ``torch.optim`` keep tensors and numbers for each parameter, as Adam two means and a count,
and options for each group of parameters, as the learning rate.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

_HOW = ("params", "foreach", "fused", "capturable", "differentiable")  # how this process computes


def named_state(
    model: nn.Module, optimizer: torch.optim.Optimizer
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors, each called "parameter:key", and a JSON object of all else.

    Raises ValueError, which names the optimizer, for one that keeps other things than these.
    """
    kind = type(optimizer).__name__
    tensors: dict[str, Tensor] = {}
    numbers: dict[str, int | float | None] = {}
    names: dict[Any, str] = {p: name for name, p in model.named_parameters()}
    for p, entries in optimizer.state.items():
        for key, value in entries.items() if p in names else [(p, entries)]:
            if p in names and isinstance(value, Tensor):
                tensors[f"{names[p]}:{key}"] = value.detach().contiguous()
            elif p in names and isinstance(value, int | float | None):
                numbers[f"{names[p]}:{key}"] = value
            else:
                got = f"{kind} with {key!r:.40} of type {type(value).__name__}"
                raise ValueError(f"optimizer must keep tensors and numbers by parameter, got {got}")
    groups = [
        {"parameters": [names[p] for p in group["params"]], "options": _options(group)}
        for group in optimizer.param_groups
    ]
    return tensors, {"kind": kind, "numbers": numbers, "groups": groups}


def restore_state(
    file: Path,
    tensors: Mapping[str, Tensor],
    about: Mapping[str, Any],
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
) -> None:
    """Gives ``optimizer`` what ``named_state`` gave of the one that ``file`` was saved with.

    Raises ValueError, which names ``file``, where that was another; nothing is changed then.
    """
    own = named_state(model, optimizer)[1]
    kind = about["kind"]
    if kind != own["kind"]:
        raise ValueError(f"{file} is of another optimizer: {kind}, not {own['kind']}")
    if _arrangement(about["groups"]) != _arrangement(own["groups"]):
        raise ValueError(f"{file} is of another {kind}: its groups or their options differ")
    entries: dict[str, dict[str, Any]] = {}
    copied = {name: tensor.clone() for name, tensor in tensors.items()}  # it may lie in a file
    for name, value in {**copied, **about["numbers"]}.items():
        parameter, _, key = name.rpartition(":")
        entries.setdefault(parameter, {})[key] = value
    names = {p: name for name, p in model.named_parameters()}
    ordered = [p for group in optimizer.param_groups for p in group["params"]]
    packed = optimizer.state_dict()  # in which parameters are numbers, in their order
    packed["state"] = {i: entries[names[p]] for i, p in enumerate(ordered) if names[p] in entries}
    for group, stored in zip(packed["param_groups"], about["groups"], strict=True):
        group |= {key: stored["options"][key] for key in _options(group)}
    optimizer.load_state_dict(packed)
    # which gives a number the type of its parameter: NAdam's product is of another
    for group in optimizer.param_groups:
        for p in group["params"] if not group.get("fused") else ():
            for key, value in entries.get(names[p], {}).items():
                if isinstance(value, Tensor) and value.dim() == 0:
                    optimizer.state[p][key] = value.to(optimizer.state[p][key].device)


def _options(group: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a group that are JSON."""
    plain = {
        key: list(value) if isinstance(value, tuple) else value for key, value in group.items()
    }
    kinds = str | int | float | list | None
    return {k: v for k, v in plain.items() if k not in _HOW and isinstance(v, kinds)}


def _arrangement(groups: list[dict[str, Any]]) -> list[Any]:
    """Groups without their numbers, which a run that goes on has from its checkpoint."""
    kinds = bool | str | None
    return [
        (
            group["parameters"],
            {k: v if isinstance(v, kinds) else "…" for k, v in group["options"].items()},
        )
        for group in groups
    ]
