"""Measures what chapter 17 tells, on one core, in a few minutes; ``--small`` rehearses it.

    OMP_NUM_THREADS=1 python -m transformer_book.experiments.chapter_17.measure

It writes ``served.json`` beside itself, or the file that ``--out`` names. ``--again pieces prefix``
makes only these tables anew, with the costs that are stored, and notes it under ``made again``.
"""

import argparse
import json
import random
import re
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from transformer_book.experiments.chapter_17 import HERE, of_the_server, served
from transformer_book.experiments.chapter_17.clock import (
    KINDS,
    Seconds,
    clock,
    machine,
    measured,
    model_of,
    shapes,
)
from transformer_book.experiments.chapter_17.drafts import drafts
from transformer_book.experiments.provenance import made

Figures = dict[str, float]
Spread = dict[str, list[float]]  # median, least, greatest over the seeds
Lengths = Callable[[random.Random], int]
ROOM = 320  # words of the longest text: 64 of prompt and 256 of answer
POLICIES = ("static", "shrinking", "continuous")
LOADS = {"light": 0.3, "busy": 0.8, "overloaded": 1.3}  # of what the continuous server can do
ALL_AT_ONCE = 1e9  # readers a second
N_PREFIX = 256
LENGTHS: dict[str, Lengths] = {  # of answers, with a mean near 64
    "unequal": lambda g: min(256, 1 + int(g.expovariate(1 / 66))),  # each word may be the last
    "32 to 96": lambda g: g.randrange(32, 97),
    "all 64": lambda g: 64,
    "few long": lambda g: 256 if g.random() < 0.14 else 33,
}


def percentile(values: Sequence[float], share: float) -> float:
    """The value that this share of them does not pass."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


class Bench:
    """The page's server on a clock: readers come, and what they wait is counted."""

    def __init__(self, server: SimpleNamespace, costs: dict[str, Any], *, small: bool):
        self.server, self.costs, self.small = server, costs, small
        self.clocks = {kind: clock(found) for kind, found in costs.items()}
        self.seeds = range(2 if small else 5)
        self.few_seeds = range(2 if small else 3)

    def n(self, wanted: int) -> int:
        return 20 if self.small else wanted

    def readers(
        self,
        n: int,
        rate: float,
        seed: int,
        lengths: str = "unequal",
        prefix: Sequence[int] = (),
    ) -> list[Any]:
        """The same seed gives the same prompts, answers and order at every rate."""
        g, gaps = random.Random(seed), random.Random(seed + 1000)
        now, readers = 0.0, []
        for _ in range(n):
            now += gaps.expovariate(1.0) / rate
            prompt = [*prefix, *(g.randrange(3, 8000) for _ in range(g.randrange(16, 64)))]
            how_long = LENGTHS[lengths](g)
            readers.append(self.server.Request(prompt, arrival=now, max_len=how_long))
        return readers

    def rooms(self, slots: int) -> Any:
        return self.server.Pages(slots, ROOM)

    def run(self, readers: list[Any], engine: Any, **how: Any) -> Figures:
        log: list[Any] = []
        self.server.serve(readers, engine, log=log, **how)
        return figures(readers, log)

    def spread(self, seeds: range, run: Callable[..., Figures], *given: Any) -> Spread:
        """Of ``run(*given, seed)``, for each seed."""
        rows = [run(*given, seed) for seed in seeds]
        values = {name: [row[name] for row in rows] for name in rows[0]}
        return {name: [statistics.median(x), min(x), max(x)] for name, x in values.items()}

    def policy(
        self, name: str, rate: float, seconds: Seconds, slots: int, lengths: str, n: int, seed: int
    ) -> Figures:
        engine = self.server.Clockwork(self.rooms(slots), seconds)
        readers = self.readers(n, rate, seed, lengths)
        return self.run(readers, engine, slots=slots, policy=name)

    def policies(self, seeds: range, *given: Any) -> dict[str, Spread]:
        """All three, with the same readers."""
        return {name: self.spread(seeds, self.policy, name, *given) for name in POLICIES}

    def capacity(self, seconds: Seconds, slots: int = 8, lengths: str = "unequal") -> float:
        """Readers a second that the continuous server answers when all come at once."""
        given = "continuous", ALL_AT_ONCE, seconds, slots, lengths, self.n(300)
        return self.spread(self.few_seeds, self.policy, *given)["readers_per_s"][0]

    # the page's tables, one after another

    def loads(self) -> dict[str, Any]:
        """Three policies at three loads and between them, the same arrivals for each."""
        seconds = self.clocks["base"]
        top = self.capacity(seconds)
        shares = LOADS | {f"{x:g}": x for x in (0.1, 0.5, 0.65, 0.9, 1.0, 1.15)}
        by_load, longer = {}, {}
        for load, share in shares.items():
            seeds = self.seeds if load in LOADS else self.few_seeds
            given = top * share, seconds, 8, "unequal", self.n(400)
            by_load[load] = self.policies(seeds, *given)
        for n in (self.n(100), self.n(400), self.n(1200)):
            how = "continuous", 1.3 * top, seconds, 8, "unequal", n
            longer[str(n)] = self.spread(self.few_seeds, self.policy, *how)["whole_p95"]
        return {"capacity": top, "shares": shares, "by_load": by_load, "p95_by_readers": longer}

    def neighbours(self) -> dict[str, Any]:
        """Does the gain hold? Other slots, lengths, weights; all at once, and busy."""
        kinds: dict[str, dict[str, Any]] = {
            "as above": {},
            "4 slots": {"slots": 4},
            "16 slots": {"slots": 16},
            "32 slots": {"slots": 32},
            "answers of 32 to 96": {"lengths": "32 to 96"},
            "all answers of 64": {"lengths": "all 64"},
            "few long answers": {"lengths": "few long"},
            "few long, 16 slots": {"lengths": "few long", "slots": 16},
            "bfloat16": {"kind": "bfloat16"},
            "small model": {"kind": "small"},
        }
        found: dict[str, Any] = {}
        for told, how in kinds.items():
            seconds = self.clocks[how.get("kind", "base")]
            slots, lengths = how.get("slots", 8), how.get("lengths", "unequal")
            top = self.capacity(seconds, slots, lengths)
            found[told] = {
                load: self.policies(self.few_seeds, rate, seconds, slots, lengths, self.n(300))
                for load, rate in (("at once", ALL_AT_ONCE), ("busy", 0.8 * top))
            }
        return found

    def quartile_clocks(self) -> dict[str, Any]:
        """The gain, all at once, with the lower and the upper quartile of every cost."""
        found = {}
        for q in (0, 2):
            given = ALL_AT_ONCE, clock(self.costs["base"], q), 8, "unequal", self.n(300)
            told = self.policies(self.few_seeds, *given)
            found[str(q)] = {name: each["tokens_per_s"] for name, each in told.items()}
        return found

    def pieces(self, rate: float) -> dict[str, Any]:
        """One reader in ten brings 512 words; prompts are read whole, or in pieces."""
        sizes = (None, 512, 128, 64, 16)  # 512: one prompt at a time, but whole
        return {str(size): self.spread(self.seeds, self._pieces, rate, size) for size in sizes}

    def _pieces(self, rate: float, size: int | None, seed: int) -> Figures:
        readers, g = self.readers(self.n(200), rate, seed), random.Random(seed + 50)
        far = [r for i, r in enumerate(readers) if g.random() < 0.1 or i == 3]
        for r in far:
            r.prompt = [g.randrange(3, 8000) for _ in range(512)]
            r.words = list(r.prompt)
        engine = self.server.Clockwork(self.server.Pages(8, 1024), self.clocks["base"])
        told = self.run(readers, engine, slots=8, chunk=size)
        near = [r for r in readers if r not in far]
        for name, share, some in (("long", 0.5, far), ("short", 0.95, near)):
            told[f"first_{name}"] = percentile([r.times[0] - r.arrival for r in some], share)
        return told

    def pages(self, top: float) -> dict[str, Any]:
        """The same bytes as rooms, and in pages: who gets in, what is held, what is used."""
        kinds = {
            "8 rooms": (ROOM, 8),
            "pages of 16": (16, 8),
            "pages of 16, 16 slots": (16, 16),
            "pages of 16, 32 slots": (16, 32),
            "pages of 64, 16 slots": (64, 16),
            "pages of 4, 16 slots": (4, 16),
        }
        return {
            load: {
                told: self.spread(self.few_seeds, self._pages, size, slots, rate)
                for told, (size, slots) in kinds.items()
            }
            for load, rate in (("busy", 0.8 * top), ("at once", ALL_AT_ONCE))
        }

    def _pages(self, size: int, slots: int, rate: float, seed: int) -> Figures:
        pages = self.server.Pages(8 * ROOM // size, size)
        engine = self.server.Clockwork(pages, self.clocks["base"])
        return self.run(self.readers(self.n(400), rate, seed), engine, slots=slots)

    def prefix(self) -> dict[str, Any]:
        """A beginning of 256 words before every question: read by each, or by the first."""
        kinds = "Pages", "SharedPages"
        at_once = {
            kind: self.spread(self.few_seeds, self._prefix, kind, ALL_AT_ONCE) for kind in kinds
        }
        rate = 0.8 * at_once["Pages"]["readers_per_s"][0]
        return {
            kind: {
                "at once": at_once[kind],
                "busy": self.spread(self.few_seeds, self._prefix, kind, rate),
            }
            for kind in kinds
        }

    def _prefix(self, kind: str, rate: float, seed: int) -> Figures:
        beginning = [random.Random(5).randrange(3, 8000) for _ in range(N_PREFIX)]
        pages = getattr(self.server, kind)(8 * (ROOM + N_PREFIX) // 16, 16)
        readers = self.readers(self.n(200), rate, seed, prefix=beginning)
        return self.run(readers, self.server.Clockwork(pages, self.clocks["base"]), slots=8)

    def real(self, model: Any, rate: float) -> dict[str, Any]:
        """The clock against the model itself: the same readers, and the same calls."""
        seconds, found = self.clocks["base"], {}
        for name in POLICIES:
            engine = Watched(self.server.Engine(model, self.rooms(8)), seconds)
            how: dict[str, Any] = {"slots": 8, "policy": name}
            readers = [self.readers(self.n(24), rate, 7) for _ in range(2)]
            real = self.run(readers[0], engine, **how)
            told = self.run(readers[1], self.server.Clockwork(self.rooms(8), seconds), **how)
            found[name] = {
                "real": real["tokens_per_s"],
                "clock": told["tokens_per_s"],
                "same calls": {
                    kind: sum(a for k, a, _ in engine.calls if k == kind)
                    / sum(b for k, _, b in engine.calls if k == kind)
                    for kind in ("step", "prompt")
                },
            }
        return found


class Watched:
    """An engine that notes what each call took, and what the clock would have said."""

    def __init__(self, engine: Any, seconds: Seconds):
        self.engine, self.pages, self.seconds = engine, engine.pages, seconds
        self.calls: list[tuple[str, float, float]] = []

    def step(self, batch: list[tuple[Any, int]]) -> tuple[list[int], float]:
        T = max(n for _, n in batch)
        told = self.seconds(len(batch), T, max(r.n_kept + n for r, n in batch))
        words, took = self.engine.step(batch)
        self.calls.append(("step" if T == 1 else "prompt", took, told))
        return words, took


def figures(readers: list[Any], log: list[Any]) -> Figures:
    """What readers waited, in seconds, and what was held meanwhile, in words."""
    begin, end = min(r.arrival for r in readers), max(r.times[-1] for r in readers)
    first, whole = ([r.times[i] - r.arrival for r in readers] for i in (0, -1))
    gaps = [b - a for r in readers for a, b in zip(r.times, r.times[1:], strict=False)] or [0.0]
    n_words = sum(len(r.times) for r in readers)
    spans = [b - a for a, b, *_ in log]
    steps = [batch for _, _, batch, *_ in log if all(n == 1 for _, n in batch)]
    read = sum(n for _, _, batch, *_ in log for _, n in batch)
    busy = sum(spans)
    return {
        "tokens_per_s": n_words / (end - begin),
        "readers_per_s": len(readers) / (end - begin),
        "first_p50": percentile(first, 0.5),
        "first_p95": percentile(first, 0.95),
        "whole_p50": percentile(whole, 0.5),
        "whole_p95": percentile(whole, 0.95),
        "gap_p99": percentile(gaps, 0.99),
        "gap_max": max(gaps),
        "texts_per_step": sum(map(len, steps)) / max(1, len(steps)),
        "held": sum(s * held for s, (*_, held, _) in zip(spans, log, strict=True)) / busy,
        "used": sum(s * used for s, (*_, used) in zip(spans, log, strict=True)) / busy,
        "read_twice": float(read - sum(len(r.words) - 1 for r in readers)),
    }


def sizes(model: Any) -> dict[str, float]:
    c, n = model.config, sum(w.numel() for w in model.parameters())
    n_bytes = model.output.weight.element_size()
    kept = 2 * c.n_layers * c.n_key_heads * c.d_k
    return {"weights": n, "bytes": n * n_bytes, "bytes_per_word": kept * n_bytes}


def rounded(found: Any) -> Any:
    """Four digits are enough."""
    if isinstance(found, dict):
        return {key: rounded(value) for key, value in found.items()}
    if isinstance(found, list):
        return [rounded(value) for value in found]
    return float(f"{found:.4g}") if isinstance(found, float) else found


def measure(*, small: bool) -> dict[str, Any]:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    began = time.process_time()

    def note(what: str) -> None:
        print(f"{time.process_time() - began:6.1f} s  {what}", flush=True)

    server = of_the_server().names()
    models = {name: model_of(**kind) for name, kind in KINDS.items()}
    costs = {}
    for name, model in models.items():
        wanted = shapes(long=name == "base")
        costs[name] = measured(server, model, wanted, rounds=2 if small else 9)
        note(f"costs of {name}")
    found: dict[str, Any] = {
        "made": made(),
        "machine": machine(),
        "models": {name: sizes(model) for name, model in models.items()},
        "costs": costs,
    }
    bench = Bench(server, costs, small=small)
    found["loads"] = bench.loads()
    note("loads")
    top = found["loads"]["capacity"]
    found["real"] = bench.real(models["base"], 0.8 * top)
    note("the clock against the model")
    for name, run in runs(bench, server, top).items():
        found[name] = run()
        note(name)
    return found


def runs(bench: Bench, server: SimpleNamespace, top: float) -> dict[str, Callable[[], Any]]:
    """The tables that need no call of the large model; all but the drafts need only its costs."""
    return {
        "pieces": lambda: bench.pieces(0.6 * top),
        "pages": lambda: bench.pages(top),
        "prefix": bench.prefix,
        "neighbours": bench.neighbours,
        "quartiles": bench.quartile_clocks,
        "drafts": lambda: drafts(server, small=bench.small),
    }


def again(names: Sequence[str]) -> dict[str, Any]:
    """What is stored, with the tables of these names anew."""
    torch.set_num_threads(1)
    found, server = dict(served()), of_the_server().names()
    table_of = runs(Bench(server, found["costs"], small=False), server, found["loads"]["capacity"])
    for name in names:
        if name not in table_of:
            raise ValueError(f"names must be some of {', '.join(table_of)}, got {name}")
        found[name] = table_of[name]()
        found["made again"] = found.get("made again", {}) | {name: made()}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="few readers, few rounds")
    parser.add_argument("--out", type=Path, default=HERE / "served.json")
    parser.add_argument("--again", nargs="+", default=[], help="only these tables")
    asked = parser.parse_args()
    found = rounded(again(asked.again) if asked.again else measure(small=asked.small))
    text = json.dumps(found, indent=1)
    text = re.sub(r"\[[^\[\]{}]*\]", lambda row: " ".join(row[0].split()), text)  # a row, a line
    asked.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
