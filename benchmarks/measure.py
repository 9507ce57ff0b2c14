"""Timing in interleaved rounds, and the file that holds the result.

On a machine that others use too, absolute times drift; cases that take turns drift together, so
ratios are what is compared.
"""

import argparse
import gc
import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import torch

from benchmarks.settings import SETTINGS

PEERS = ("x-transformers", "transformers", "ctranslate2", "joeynmt")
RESULTS = Path(__file__).parent / "results"
ROOT = RESULTS.parent.parent


def parser(description: str, **defaults: int) -> argparse.ArgumentParser:
    """``defaults``: the number of rounds for each setting."""
    p = argparse.ArgumentParser(description=description.splitlines()[0])
    p.add_argument("--threads", type=int, nargs="+", default=[1], help="one process for each")
    p.add_argument("--settings", nargs="+", choices=list(defaults), default=list(defaults))
    p.add_argument("--rounds", type=int, help=f"default: {defaults}")
    p.add_argument("--only", nargs="+", default=(), help="these models only; writes no result")
    p.add_argument(
        "--cpu-time", action="store_true", help="for a busy machine and one thread: not wall clock"
    )
    p.set_defaults(default_rounds=defaults)
    return p


def start(p: argparse.ArgumentParser) -> argparse.Namespace | None:
    """The options for one number of threads; None in the parent of several such processes."""
    options = p.parse_args()
    if len(options.threads) > 1:
        spec = sys.modules["__main__"].__spec__
        if spec is None:  # started as a file, which has no siblings to import
            raise ValueError("a benchmark must be started as python -m benchmarks.NAME")
        module = spec.name
        for n in options.threads:  # of two --threads the last one holds
            arguments = [*sys.argv[1:], "--threads", str(n)]
            subprocess.run([sys.executable, "-m", module, *arguments], check=True)
        return None
    torch.set_num_threads(options.threads[0])
    return options


def each_setting(name: str, doc: str, compare: Callable[..., dict], **rounds: int) -> None:
    """The main program of a benchmark: ``compare(setting, rounds, options)`` for each that is asked
    for, and all results in one file, unless ``--only`` some models were compared."""
    options = start(parser(doc, **rounds))
    if options is None:
        return
    results = {}
    for setting in options.settings:
        n_rounds = options.rounds or options.default_rounds[setting]
        results[setting] = compare(SETTINGS[setting], n_rounds, options)
    if not options.only:
        save(name, options.threads[0], results)


def interleave(
    cases: Mapping[str, Callable[[], object]], rounds: int, *, cpu_time: bool = False
) -> dict[str, np.ndarray]:
    """Seconds of each case in each round; each round starts with another case."""
    clock = time.process_time if cpu_time else time.perf_counter
    names = list(cases)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for run in cases.values():
        run()  # warms caches and allocators up
    gc.collect()
    gc.disable()
    for r in range(rounds):
        for i in range(len(names)):
            name = names[(r + i) % len(names)]
            begin = clock()
            cases[name]()
            seconds[name].append(clock() - begin)
        gc.collect()
    gc.enable()
    return {name: np.array(times) for name, times in seconds.items()}


def summary(seconds: dict[str, np.ndarray], *, of: str) -> dict[str, dict]:
    """For each case its median and quartiles, and how many times ``of`` it takes."""
    result = {}
    for name, times in seconds.items():
        ratios = times / seconds[of]
        result[name] = {
            "seconds": _quartiles(times),
            "ratio_of_medians": _short(np.median(times) / np.median(seconds[of])),
            "ratio": _quartiles(ratios),
        }
    return result


def show(title: str, cases: dict[str, dict]) -> None:
    """Prints median times and ratios; of the ratios by rounds, also the quartiles."""
    print(title)
    for name, case in cases.items():
        low, middle, high = case["ratio"]
        print(
            f"  {name:34}{case['seconds'][1] * 1e3:10.1f} ms"
            f"  x {case['ratio_of_medians']:.3f}  by rounds {middle:.3f} ({low:.3f} to {high:.3f})"
        )
    print(flush=True)


def compared(
    title: str, cases: Mapping[str, Callable[[], object]], rounds: int, *, of: str, cpu_time: bool
) -> dict[str, dict]:
    """Times the cases in turns; prints and returns how many times ``of`` each takes."""
    result = summary(interleave(cases, rounds, cpu_time=cpu_time), of=of)
    show(title, result)
    return result


def save(name: str, threads: int, results: dict) -> None:
    """Adds to what the file holds of other settings; each says where and when it was measured.

    That is what the book's experiments say, with the peers' versions; ``threads`` are PyTorch's.
    """
    # here, since against.py times older editions of the package, which the book need not fit
    from transformer_book.experiments.provenance import made

    RESULTS.mkdir(exist_ok=True)
    file = RESULTS / f"{name}-{threads}.json"
    stored = json.loads(file.read_text()) if file.exists() else {}
    for setting, result in results.items():
        stored[setting] = {"environment": made(*PEERS), **result}
    file.write_text(json.dumps(stored, indent=1) + "\n")


def _quartiles(x: np.ndarray) -> list[float]:
    return [_short(q) for q in np.percentile(x, [25, 50, 75])]


def _short(x: float | np.floating) -> float:
    return float(f"{x:.4g}")
