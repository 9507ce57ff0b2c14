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


def check_state(
    file: Path,
    tensors: Mapping[str, Tensor],
    about: Mapping[str, Any],
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
) -> None:
    """Raises ValueError, which names ``file``, for what such an optimizer cannot have left there.

    ``tensors`` and ``about`` are as ``named_state`` gives them.
    """
    wanted = named_state(model, optimizer)[1]
    kind, numbers, groups = (about.get(key) for key in ("kind", "numbers", "groups"))
    if kind != wanted["kind"]:
        raise ValueError(f"{file} is of another optimizer: {kind}, not {wanted['kind']}")
    if not _is_like(groups, wanted["groups"]):
        raise ValueError(f"{file} is of another {kind}: its groups or their options differ")
    if not isinstance(numbers, dict) or not all(
        n is None or is_number(n) for n in numbers.values()
    ):
        raise ValueError(f"{file} must hold the numbers of {kind}, got {numbers!r:.80}")
    parameters = dict(model.named_parameters())
    fused = {p for group in optimizer.param_groups if group.get("fused") for p in group["params"]}
    for name in (*tensors, *numbers):
        p = parameters.get(name.rpartition(":")[0])
        if p is None:
            raise ValueError(f"{file} is of another model: {kind} has moved {name}")
        # a fused kernel looks at no shape, and would read the memory beside
        if p in fused and name in tensors and tensors[name].dim() > 0:
            got, own = ((tuple(t.shape), t.dtype) for t in (tensors[name], p))
            if got != own:
                raise ValueError(f"{file} is of another model: {name} is {got}, not {own}")


def restore_state(
    tensors: Mapping[str, Tensor],
    about: Mapping[str, Any],
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
) -> None:
    """Gives ``optimizer`` what ``check_state`` has let through."""
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


def _is_like(value: Any, own: Any) -> bool:
    """Whether a value of JSON is as ``own`` but for its numbers."""
    if isinstance(own, dict):
        return isinstance(value, dict) and all(_is_like(value.get(k), own[k]) for k in own)
    if isinstance(own, list):
        alike = isinstance(value, list) and len(value) == len(own)
        return alike and all(map(_is_like, value, own))
    return is_number(value) if is_number(own) else value == own


def is_number(value: Any) -> bool:
    """Of a value from JSON; NaN is none."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value
