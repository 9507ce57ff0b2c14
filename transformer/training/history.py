"""What a training saw, as it is kept in a checkpoint and believed when one goes on (chapter 9)."""

import math
from dataclasses import asdict, dataclass, field
from typing import Any

from transformer.training.checkpoint import Checkpoint

_SCALER = {"scale", "growth_factor", "backoff_factor", "growth_interval", "_growth_tracker"}


@dataclass
class History:
    """What ``fit`` saw: the training loss of each step, and what ``evaluate`` returned, by step."""

    losses: list[float] = field(default_factory=list)  # nats per token, smoothing included
    evaluations: dict[int, float] = field(default_factory=dict)

    def state(self, scaler: dict[str, Any]) -> dict[str, Any]:
        """What a checkpoint keeps of it, with the scale of half precision, if there is one."""
        return {"scaler": scaler, **asdict(self)}


def read_history(saved: Checkpoint) -> tuple[History, dict[str, Any]]:
    """The history that ``History.state`` gave, and the scale.

    Raises ValueError, which names the file and the key, for what no training of ``saved.step``
    steps could have left.
    """
    losses, evaluations, scaler = (
        _value(saved, key, kind)
        for key, kind in (("losses", list), ("evaluations", dict), ("scaler", dict))
    )
    if len(losses) != saved.step or not all(_is_number(x) and math.isfinite(x) for x in losses):
        raise _refusal(saved, "losses", f"{saved.step} finite numbers, one a step", len(losses))
    for step, value in evaluations.items():
        if not (step.isdecimal() and 1 <= int(step) <= saved.step and _is_number(value)):
            wanted = f"numbers, by steps from 1 to {saved.step}"
            raise _refusal(saved, "evaluations", wanted, {step: value})
    if scaler and not (
        scaler.keys() == _SCALER
        and all(_is_number(x) and math.isfinite(x) and x >= 0 for x in scaler.values())
        and scaler["scale"] > 0
    ):
        raise _refusal(saved, "scaler", "the numbers of a GradScaler, or none", scaler)
    return History(losses, {int(step): value for step, value in evaluations.items()}), scaler


def _value(saved: Checkpoint, key: str, kind: type) -> Any:
    value = saved.state.get(key)
    if not isinstance(value, kind):
        raise _refusal(saved, key, f"a {kind.__name__}", value)
    return value


def _refusal(saved: Checkpoint, key: str, wanted: str, got: Any) -> ValueError:
    return ValueError(f"{saved.file} must hold {wanted} in state.{key}, got {got!r:.80}")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
