"""What is measured by a chapter's own cells, and stored as numbers for a living figure."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

from transformer_book.notebooks import run_cells

# what such a script begins with: 3.14 among what is measured is not π
MEASURED = (
    "// biome-ignore-all lint/suspicious/noApproximativeNumericConstant: these are measured.\n"
)


def names_of(chapter: Path, cells: Iterable[str]) -> dict[str, Any]:
    """What these cells define, run in this order on the CPU; what they print is dropped."""
    names: dict[str, Any] = {}
    for cell in cells:
        run_cells(chapter, [cell], names)
        names["default_device"] = lambda: torch.device("cpu")
    return names


def array(row: Iterable[float], digits: int = 3) -> str:
    """A row of numbers to so many digits, as the linter wants it."""
    numbers = (re.sub(r"e([+-])0*", r"e\1", f"{n:.{digits}g}").replace("e+", "e") for n in row)
    return f"[{', '.join(numbers)}]"


def line(row: Iterable[float], digits: int = 3) -> str:
    """A row of numbers as a line of a block."""
    return f"    {array(row, digits)},\n"
