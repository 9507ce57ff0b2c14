"""This tree beside another commit of it: a step of ``fit``, greedy and beam search, in turns.

Each tree has a process of its own, which waits while the other works.
Run: python -m benchmarks.against COMMIT
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks import measure

KINDS = ("training", "decoding", "beams")
CASES = tuple(f"{kind}, {size}" for size in ("small", "base") for kind in KINDS)
STEPS = {"small": 5, "base": 1}


def make(case: str) -> Callable[[], object]:
    """What is timed, by the names that the package has had since its first edition."""
    from benchmarks import settings
    from transformer.config import TransformerConfig
    from transformer.decoding import beam_search, greedy_decode
    from transformer.model import Transformer
    from transformer.training import fit, warmup_schedule

    what, name = case.split(", ")
    s = settings.SETTINGS[name]
    torch.manual_seed(0)
    model = Transformer(getattr(TransformerConfig, name)(s.vocab_size, s.vocab_size))
    if what != "training":
        src, _ = settings.batch(s, 16)
        # a logit of 0 is never the largest, so that every sentence has its full length
        torch.nn.init.zeros_(model.output.weight[settings.EOS_ID])
        search: Callable = greedy_decode if what == "decoding" else beam_search
        bos, eos = settings.BOS_ID, settings.EOS_ID
        return partial(search, model, src, bos_id=bos, eos_id=eos, max_len=s.new_tokens)
    batch: Any = OneBatch(*settings.batch(s))
    schedule = warmup_schedule(1e-4, warmup=10)
    return partial(
        fit, model, lambda i: batch, n_steps=STEPS[name], schedule=schedule, progress=False
    )


class OneBatch:
    """A batch as ``fit`` asks for it, in this edition and in the first."""

    def __init__(self, src, tgt):
        self.src, self.tgt = src, tgt
        self.inputs, self.labels = (src, tgt[:, :-1]), tgt[:, 1:]

    def to(self, device, *, non_blocking=False):
        return self


class Tree:
    """A process that imports the package from ``folder`` and times one case when asked."""

    def __init__(self, folder: Path, case: str, *, threads: int, cpu_time: bool):
        arguments = ["--worker", case, "--threads", str(threads)]
        arguments += ["--cpu-time"] if cpu_time else []
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.against", "-", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": f"{folder}{os.pathsep}{measure.ROOT}"},
            cwd=folder,
        )
        self.seconds()  # to be warm

    def seconds(self) -> float:
        print("go", file=self.process.stdin, flush=True)
        assert self.process.stdout  # for it is piped
        return json.loads(self.process.stdout.readline())


def worker(case: str, *, threads: int, cpu_time: bool) -> None:
    torch.set_num_threads(threads)
    clock, run = (time.process_time if cpu_time else time.perf_counter), make(case)
    for _ in sys.stdin:
        begin = clock()
        run()
        print(clock() - begin, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("commit", help="such as 9c61899")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=CASES)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--cpu-time", action="store_true", help="for a busy machine: no wall clock")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return worker(options.worker, threads=options.threads, cpu_time=options.cpu_time)
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(
            ["git", "archive", options.commit, "transformer"],
            cwd=measure.ROOT,
            stdout=subprocess.PIPE,
            check=True,
        )
        subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
        for case in options.cases:
            trees = [
                Tree(Path(place), case, threads=options.threads, cpu_time=options.cpu_time)
                for place in (measure.ROOT, folder)
            ]
            times = np.empty((options.rounds, 2))
            for r in range(options.rounds):
                for i in (0, 1) if r % 2 else (1, 0):  # each round starts with the other
                    times[r, i] = trees[i].seconds()
            for tree in trees:
                tree.process.communicate()
            low, middle, high = np.quantile(times[:, 0] / times[:, 1], [0.25, 0.5, 0.75])
            ours, theirs = np.median(times, axis=0) * 1e3
            print(
                f"{case:16} this tree {ours:8.1f} ms, {options.commit} {theirs:8.1f} ms, "
                f"ratio {ours / theirs:.3f}, by rounds {middle:.3f} ({low:.3f} to {high:.3f})",
                flush=True,
            )
    return None


if __name__ == "__main__":
    main()
