"""What the exam says of a part: right, wrong and how, or not there yet."""

from dataclasses import dataclass
from typing import Any

from torch import Tensor

INDENT = "    "
FILE = "the file"  # what is asked before any part: whether it runs


class NotThereYet(Exception):
    """A part that cannot be judged, for something is not written; it says what."""


class Wrong(Exception):
    """What is wrong with a part: the symptom, then the smallest example that shows it."""

    def __init__(self, symptom: str, *look_at: str, **example: Any):
        shown = [f"{name}: {shown_as(value)}" for name, value in example.items()]
        super().__init__("\n".join([symptom, *(INDENT + line for line in (*shown, *look_at))]))


@dataclass(frozen=True)
class Result:
    """``mark``: ✓ right, ○ not there, ✗ wrong; ``spoilt_by``: the wrong part it comes from."""

    part: str
    mark: str
    text: str
    spoilt_by: str = ""

    def __str__(self) -> str:
        return f"{self.mark} {self.part}: {self.text}"

    @property
    def is_unwritten(self) -> bool:
        """Whether it says only that the part is not written yet."""
        return " has no " in self.text and self.text.endswith(" yet")


def shown_as(value: Any) -> str:
    """A value as it can be read at a glance."""
    if not isinstance(value, Tensor):
        return str(value)
    value = value.detach()
    if value.is_floating_point():
        value = value.double().round(decimals=2) + 0.0  # without a zero below zero
    return str(value.tolist()) if value.numel() <= 24 else f"of shape {tuple(value.shape)}"
