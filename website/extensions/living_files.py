"""What the living figures are made from, beside their own scripts: numbers that chapters make."""

import json
import math
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import torch

from website import ROOT

CHAPTERS = ROOT / "chapters"
QUERIES = CHAPTERS / "03_queries_keys_values.ipynb"
TIMES = CHAPTERS / "13_where_the_time_goes.ipynb"
N_DAYS = 10
LIMITS = re.compile(r"peak ≈ (\d+) GFLOP/s, bandwidth ≈ (\d+) GB/s")
MEASURED = re.compile(r"^ *(\d+) rows ≈ +([\d.]+) ms, ", re.MULTILINE)


def write_living_files(folder: Path) -> None:
    """Writes chapter 3's readings into ``readings.js``, chapter 13's times into ``thread.js``."""
    write_module(folder / "readings.js", {"DAYS": readings()})
    write_module(folder / "thread.js", {"THREAD": thread()})


def write_module(path: Path, exports: Mapping[str, Any]) -> None:
    """A module whose exports are the numbers in ``exports``."""
    lines = ["// Written by website/extensions/living_files.py."]
    for name, value in exports.items():
        lines.append(f"export const {name} = {json.dumps(value, separators=(',', ':'))};")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def cell_of(chapter: Path, name: str) -> dict[str, Any]:
    """The chapter's cell of this id."""
    cells = json.loads(chapter.read_text(encoding="utf-8"))["cells"]
    (cell,) = (cell for cell in cells if cell.get("id") == name)
    return cell


def printed_by(chapter: Path, name: str) -> str:
    """What a cell has printed, as it is stored in the chapter."""
    outputs = cell_of(chapter, name)["outputs"]
    return "".join("".join(each["text"]) for each in outputs if each["output_type"] == "stream")


@cache
def readings() -> list[list[list[float]]]:
    """The ten days that chapter 3's own cell draws, with seeds 0 to 9, to three digits.

    Each is a list of hours and one of degrees.
    """
    source = "".join(cell_of(QUERIES, "day-numbers")["source"])
    names: dict[str, Any] = {"math": math, "torch": torch}
    exec(compile(source, f"{QUERIES.name}, day-numbers", "exec"), names)
    days = (torch.stack(names["read_thermometer"](seed)) for seed in range(N_DAYS))
    return [day.double().round(decimals=3).tolist() for day in days]


@cache
def thread() -> dict[str, Any]:
    """The CPU thread that ran chapter 13, as the chapter has stored what it measured.

    Its peak in operations and its bandwidth in bytes a second, and the times of products with so
    many rows, in seconds.

    Raises ValueError where the chapter has printed no such lines.
    """
    limits = LIMITS.search(printed_by(TIMES, "roof"))
    measured = MEASURED.findall(printed_by(TIMES, "rows-run"))
    if limits is None or not measured:
        raise ValueError(f"{TIMES.name} must print peak, bandwidth and the times of rows, got none")
    peak, bandwidth = (1e9 * float(each) for each in limits.groups())
    times = [[int(n), float(ms) / 1000] for n, ms in measured]
    return {"peak": peak, "bandwidth": bandwidth, "measured": times}
