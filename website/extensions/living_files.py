"""What the living figures are made from, beside their own scripts: numbers that chapters draw."""

import json
import math
from functools import cache
from pathlib import Path
from typing import Any

import torch

from website import ROOT

CHAPTER = ROOT / "chapters" / "03_queries_keys_values.ipynb"
CELL = "day-numbers"
N_DAYS = 10


def write_living_files(folder: Path) -> None:
    """Writes ``readings.js``: chapter 3's days of readings, each as hours and as degrees."""
    text = json.dumps(readings(), separators=(",", ":"))
    module = f"// Written by website/extensions/living_files.py.\nexport const DAYS = {text};\n"
    (folder / "readings.js").write_text(module, encoding="utf-8")


@cache
def readings() -> list[list[list[float]]]:
    """The ten days that the chapter's own cell draws, with seeds 0 to 9, to three digits."""
    cells = json.loads(CHAPTER.read_text(encoding="utf-8"))["cells"]
    (source,) = ("".join(cell["source"]) for cell in cells if cell.get("id") == CELL)
    names: dict[str, Any] = {"math": math, "torch": torch}
    exec(compile(source, f"{CHAPTER.name}, {CELL}", "exec"), names)
    days = (torch.stack(names["read_thermometer"](seed)) for seed in range(N_DAYS))
    return [day.double().round(decimals=3).tolist() for day in days]
