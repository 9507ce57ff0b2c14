"""Timing in interleaved rounds, and the files that hold the results.

On a machine that others use too, absolute times drift; cases that take turns drift together, so
ratios are what is compared.
"""

import gc
import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from transformer_book.experiments.provenance import made

Cases = dict[str, Callable[[], object]]
PEERS = ("x-transformers", "transformers", "ctranslate2", "joeynmt")
RESULTS = Path(__file__).parent / "results"


def interleave(
    cases: Cases, rounds: int, device: torch.device, *, cpu_time: bool = False
) -> dict[str, np.ndarray]:
    """Seconds of each case in each round; each round starts with another case."""
    clock = time.process_time if cpu_time else time.perf_counter
    wait = (lambda: None) if device.type == "cpu" else torch.accelerator.synchronize
    names = list(cases)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for run in cases.values():
        run()  # warms caches and allocators up
    gc.collect()
    gc.disable()
    for r in range(rounds):
        for i in range(len(names)):
            name = names[(r + i) % len(names)]
            wait()
            begin = clock()
            cases[name]()
            wait()
            seconds[name].append(clock() - begin)
        gc.collect()
    gc.enable()
    return {name: np.array(times) for name, times in seconds.items()}


def summary(seconds: dict[str, np.ndarray]) -> dict[str, dict]:
    """The median and quartiles of each case, and how many times the first case it takes."""
    first = next(iter(seconds.values()))
    return {
        name: {
            "seconds": _quartiles(times),
            "ratio_of_medians": _short(np.median(times) / np.median(first)),
            "ratio": _quartiles(times / first),
        }
        for name, times in seconds.items()
    }


def show(title: str, cases: dict[str, dict], facts: dict[str, dict]) -> None:
    """Prints median times, ratios, those of the rounds with quartiles, and what else is known."""
    print(title)
    for name, case in cases.items():
        low, middle, high = case["ratio"]
        line = f"  {name:34}{case['seconds'][1] * 1e3:10.1f} ms  x {case['ratio_of_medians']:.3f}"
        line += f"  by rounds {middle:.3f} ({low:.3f} to {high:.3f})"
        print(line, *(f"{of[name]:,} {fact}" for fact, of in facts.items() if name in of), sep="  ")
    print(flush=True)


def save(name: str, setting: str, result: dict) -> None:
    """Adds to what the file holds of other settings; each says where and when it was measured."""
    RESULTS.mkdir(exist_ok=True)
    file = RESULTS / f"{name}.json"
    stored = json.loads(file.read_text()) if file.exists() else {}
    stored[setting] = {"environment": made(*PEERS), **result}
    file.write_text(json.dumps(stored, indent=1) + "\n")


def _quartiles(x: np.ndarray) -> list[float]:
    return [_short(q) for q in np.percentile(x, [25, 50, 75])]


def _short(x: float | np.floating) -> float:
    return float(f"{x:.4g}")
