"""What the living figures are made from, beside their own scripts: numbers that chapters make."""

import json
import random
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import torch

from transformer_book.experiments.chapter_17 import served
from transformer_book.experiments.thermometer import N_DAYS, read_thermometer
from transformer_book.notebooks import cells_of, chapter_path

TIMES = chapter_path(13)
LIMITS = re.compile(r"peak (\d+) GFLOP/s, bandwidth ([\d.]+) GB/s")
MEASURED = re.compile(r"^ *(\d+) rows +([\d.]+) ms, ", re.MULTILINE)


def write_living_files(folder: Path) -> None:
    """Chapter 3's readings, chapter 13's times, and chapter 17's clock with sixty users."""
    write_module(folder / "readings.js", {"DAYS": readings()})
    write_module(folder / "thread.js", {"THREAD": thread()})
    write_module(folder / "server.js", server())


def write_module(path: Path, exports: Mapping[str, Any]) -> None:
    """Writes a module whose exports are the numbers in ``exports``."""
    lines = ["// Written by website/extensions/living_files.py."]
    for name, value in exports.items():
        lines.append(f"export const {name} = {json.dumps(value, separators=(',', ':'))};")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@cache
def readings() -> list[list[list[float]]]:
    """The ten days of chapter 3's thermometer, with seeds 0 to 9, to three digits.

    Each is a list of hours and one of degrees.
    """
    days = (torch.stack(read_thermometer(seed)) for seed in range(N_DAYS))
    return [day.double().round(decimals=3).tolist() for day in days]


@cache
def thread() -> dict[str, Any]:
    """The CPU thread that ran chapter 13, as the chapter has stored what it measured.

    Its peak in operations and its bandwidth in bytes a second, and the times of products with so
    many rows, in seconds.

    Raises ValueError where the chapter has printed no such lines.
    """
    cells = cells_of(TIMES)
    limits = LIMITS.search(cells["roof"].printed)
    measured = MEASURED.findall(cells["rows-run"].printed)
    if limits is None or not measured:
        raise ValueError(f"{TIMES.name} must print peak, bandwidth and the times of rows, got none")
    peak, bandwidth = (1e9 * float(each) for each in limits.groups())
    times = [[int(n), float(ms) / 1000] for n, ms in measured]
    return {"peak": peak, "bandwidth": bandwidth, "measured": times}


@cache
def server() -> dict[str, Any]:
    """Chapter 17's clock, and sixty users who come to its server.

    Of each: how long after the one before at one a second, and the words of the prompt and of the
    answer.
    """
    g = random.Random(0)
    users = [
        [
            round(g.expovariate(1.0), 4),
            g.randrange(16, 64),
            min(256, 1 + int(g.expovariate(1 / 66))),
        ]
        for _ in range(60)
    ]
    return {
        "CLOCK": served()["clocks"]["rooms"],
        "TOP": served()["loads"]["capacity"],
        "USERS": users,
    }
