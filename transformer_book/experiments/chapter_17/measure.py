"""Measures what chapter 17 tells, on one core, in ten minutes; ``--small`` rehearses it.

    OMP_NUM_THREADS=1 python -m transformer_book.experiments.chapter_17.measure

It writes ``stored/served.json``, or the file that ``--out`` names. With ``--again budgets
prefix`` it makes only these tables anew, with the stored clock, and says so under ``made again``.
"""

import argparse
import json
import math
import random
import re
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from transformer_book.experiments.chapter_17 import PATH, of_the_server, served
from transformer_book.experiments.chapter_17.clock import (
    KINDS,
    ROOM,
    Fit,
    Seconds,
    clock,
    fitted,
    machine,
    measured,
    model_of,
    products,
)
from transformer_book.experiments.chapter_17.drafts import drafts
from transformer_book.experiments.provenance import made

Figures = dict[str, float]
Spread = dict[str, list[float]]  # median, least, greatest over the seeds
Lengths = Callable[[random.Random], int]
LONGEST = 320  # words of a text: 64 of prompt and 256 of answer
POLICIES = ("static", "continuous")
LOADS = {"light": 0.3, "busy": 0.8, "overloaded": 1.3}  # of what the continuous server can do
ALL_AT_ONCE = 1e9  # users a second
PROMISED = {"first": 1.0, "gap": 0.2}  # seconds to the first word, and from a word to the next
N_PREFIX = 256
SOMEBODY = 7  # a word that no prompt has
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
    """The page's server on a clock: users come, and what they wait is counted."""

    def __init__(self, server: SimpleNamespace, clocks: dict[str, Fit], *, small: bool):
        self.server, self.small = server, small
        self.clocks = {kind: clock(found) for kind, found in clocks.items()}
        self.seeds = range(2 if small else 5)
        self.few_seeds = range(2 if small else 3)

    def n(self, wanted: int) -> int:
        return 20 if self.small else wanted

    def users(
        self,
        n: int,
        rate: float,
        seed: int,
        lengths: str = "unequal",
        prefix: Sequence[int] = (),
    ) -> list[Any]:
        """The same seed gives the same prompts, answers and order at every rate."""
        g, gaps = random.Random(seed), random.Random(seed + 1000)
        now, users = 0.0, []
        for _ in range(n):
            now += gaps.expovariate(1.0) / rate
            prompt = [*prefix, *(g.randrange(3, 8000) for _ in range(g.randrange(16, 64)))]
            how_long = LENGTHS[lengths](g)
            users.append(self.server.Request(prompt, arrival=now, max_len=how_long))
        return users

    def rooms(self, slots: int) -> Any:
        return self.server.Pages(slots, LONGEST)

    def run(self, users: list[Any], engine: Any, **how: Any) -> Figures:
        log: list[Any] = []
        self.server.serve(users, engine, log=log, **how)
        return figures(users, log)

    def spread(self, seeds: range, run: Callable[..., Figures], *given: Any) -> Spread:
        """The median, least and greatest figures of ``run(*given, seed)`` over the seeds."""
        rows = [run(*given, seed) for seed in seeds]
        values = {name: [row[name] for row in rows] for name in rows[0]}
        return {name: [statistics.median(x), min(x), max(x)] for name, x in values.items()}

    def policy(
        self, name: str, rate: float, seconds: Seconds, slots: int, lengths: str, n: int, seed: int
    ) -> Figures:
        engine = self.server.Clockwork(self.rooms(slots), seconds)
        return self.run(self.users(n, rate, seed, lengths), engine, slots=slots, policy=name)

    def policies(self, seeds: range, *given: Any) -> dict[str, Spread]:
        """The spread of both policies, with the same users."""
        return {name: self.spread(seeds, self.policy, name, *given) for name in POLICIES}

    def capacity(self, seconds: Seconds, slots: int = 8, lengths: str = "unequal") -> float:
        """Users a second that the continuous server answers when all come at once."""
        given = "continuous", ALL_AT_ONCE, seconds, slots, lengths, self.n(300)
        return self.spread(self.few_seeds, self.policy, *given)["users_per_s"][0]

    # the page's tables, one after another

    def loads(self) -> dict[str, Any]:
        """Both policies at three loads, the same arrivals for each."""
        seconds = self.clocks["rooms"]
        top = self.capacity(seconds)
        by_load = {
            load: self.policies(self.seeds, top * share, seconds, 8, "unequal", self.n(400))
            for load, share in LOADS.items()
        }
        return {"capacity": top, "shares": LOADS, "by_load": by_load, "draws": len(self.seeds)}

    def neighbours(self) -> dict[str, Any]:
        """Does the gain hold? Other slots, lengths, weights; all at once, and busy."""
        kinds: dict[str, dict[str, Any]] = {
            "unequal answers": {},
            "answers of 32 to 96": {"lengths": "32 to 96"},
            "all answers of 64": {"lengths": "all 64"},
            "few long answers": {"lengths": "few long"},
            "4 slots": {"slots": 4},
            "32 slots": {"slots": 32},
            "bfloat16": {"kind": "bfloat16"},
            "small model": {"kind": "small"},
        }
        found: dict[str, Any] = {}
        for told, how in kinds.items():
            seconds = self.clocks[how.get("kind", "rooms")]
            slots, lengths = how.get("slots", 8), how.get("lengths", "unequal")
            top = self.capacity(seconds, slots, lengths)
            found[told] = {
                load: self.policies(self.few_seeds, rate, seconds, slots, lengths, self.n(300))
                for load, rate in (("at once", ALL_AT_ONCE), ("busy", 0.8 * top))
            }
        return found

    def budgets(self, rate: float) -> dict[str, Any]:
        """One user in ten brings 512 words; a call reads so many words at most."""
        sizes = (math.inf, 512, 256, 128, 64, 32, 16)
        return {str(size): self.spread(self.seeds, self._budget, rate, size) for size in sizes}

    def _budget(self, rate: float, size: int | float, seed: int) -> Figures:
        users, g = self.users(self.n(200), rate, seed), random.Random(seed + 50)
        far = [r for i, r in enumerate(users) if g.random() < 0.1 or i == 3]
        for r in far:
            r.prompt = [g.randrange(3, 8000) for _ in range(512)]
            r.words = list(r.prompt)
        engine = self.server.Clockwork(self.server.Pages(8, 1024), self.clocks["rooms"])
        told = self.run(users, engine, slots=8, budget=size)
        near = [r for r in users if r not in far]
        for name, share, some in (("long", 0.5, far), ("short", 0.95, near)):
            told[f"first_{name}"] = percentile([r.times[0] - r.arrival for r in some], share)
        return told

    def pages(self, top: float) -> dict[str, Any]:
        """The same bytes as rooms, and in pages: who gets in, what is held, what is used."""
        kinds = {
            "8 rooms": ("rooms", LONGEST, 8),
            "pages, 8 slots": ("pages", 16, 8),
            "pages, 16 slots": ("pages", 16, 16),
            "pages, 32 slots": ("pages", 16, 32),
        }
        return {
            load: {
                told: self.spread(self.few_seeds, self._pages, *how, rate)
                for told, how in kinds.items()
            }
            for load, rate in (("busy", 0.8 * top), ("at once", ALL_AT_ONCE))
        }

    def _pages(self, kind: str, size: int, slots: int, rate: float, seed: int) -> Figures:
        pages = self.server.Pages(8 * LONGEST // size, size)
        engine = self.server.Clockwork(pages, self.clocks[kind])
        return self.run(self.users(self.n(400), rate, seed), engine, slots=slots)

    def prefix(self) -> dict[str, Any]:
        """256 words before every question: each reads them, or the first, or one word is before."""
        kinds = {
            "each reads its own": ("Pages", False),
            "a name first": ("SharedPages", True),
            "instructions first": ("SharedPages", False),
        }
        at_once = {
            told: self.spread(self.few_seeds, self._prefix, *how, ALL_AT_ONCE)
            for told, how in kinds.items()
        }
        rate = 0.8 * at_once["each reads its own"]["users_per_s"][0]
        return {
            told: {
                "at once": at_once[told],
                "busy": self.spread(self.few_seeds, self._prefix, *how, rate),
            }
            for told, how in kinds.items()
        }

    def _prefix(self, kind: str, named: bool, rate: float, seed: int) -> Figures:
        g = random.Random(5)
        beginning = [g.randrange(3, 8000) for _ in range(N_PREFIX)]
        pages = getattr(self.server, kind)(8 * (LONGEST + N_PREFIX + 16) // 16, 16)
        users = self.users(self.n(200), rate, seed, prefix=beginning)
        for i, r in enumerate(users):  # as many words, and another first one for each
            name = 8000 + i if named else SOMEBODY
            r.prompt = [name, *r.prompt]
            r.words = list(r.prompt)
        told = self.run(users, self.server.Clockwork(pages, self.clocks["pages"]), slots=8)
        return told | {"found": -told["read_twice"] / sum(len(r.prompt) for r in users)}

    def real(self, model: Any, rate: float) -> dict[str, Any]:
        """The clock against the model itself: the same users, and the same calls."""
        found = {}
        for name, kind, pages, how in (
            ("static", "rooms", (8, LONGEST), {"policy": "static"}),
            ("continuous", "rooms", (8, LONGEST), {}),
            ("pages, 64 words a call", "pages", (160, 16), {"budget": 64}),
        ):
            runs = []  # what is called hangs on the time, so each run is told by its own calls
            for _ in range(1 if self.small else 3):
                engine = self.server.Engine(model, self.server.Pages(*pages))
                watched = Watched(engine, self.clocks[kind])
                self.run(self.users(self.n(24), rate, 7), watched, slots=8, **how)
                runs.append(watched.shares())
            found[name] = {key: min(each[key] for each in runs) for key in runs[0]}
        return found


class Watched:
    """An engine that notes what each call took, and what the clock would have said."""

    def __init__(self, engine: Any, seconds: Seconds):
        self.engine, self.pages, self.seconds = engine, engine.pages, seconds
        self.calls: list[tuple[str, float, float]] = []

    def step(self, batch: list[tuple[Any, int]]) -> tuple[list[int], float]:
        told = self.seconds([(n, r.n_kept + n) for r, n in batch])
        words, took = self.engine.step(batch)
        kind = "step" if all(n == 1 for _, n in batch) else "prompt"
        self.calls.append((kind, took, told))
        return words, took

    def shares(self) -> Figures:
        """What steps took, and calls that read of a prompt, by what the clock said."""
        return {
            kind: sum(a for k, a, _ in self.calls if k == kind)
            / sum(b for k, _, b in self.calls if k == kind)
            for kind in ("step", "prompt")
        }


def keeps_promise(user: Any) -> bool:
    """Whether the first word came soon enough, and each word soon after the one before."""
    gaps = [b - a for a, b in zip(user.times, user.times[1:], strict=False)]
    waited: float = user.times[0] - user.arrival
    return waited <= PROMISED["first"] and max(gaps, default=0.0) <= PROMISED["gap"]


def figures(users: list[Any], log: list[Any]) -> Figures:
    """What users waited, in seconds, and what was held meanwhile, in words."""
    begin, end = min(r.arrival for r in users), max(r.times[-1] for r in users)
    first, whole = ([r.times[i] - r.arrival for r in users] for i in (0, -1))
    gaps = [b - a for r in users for a, b in zip(r.times, r.times[1:], strict=False)] or [0.0]
    n_words = sum(len(r.times) for r in users)
    spans = [b - a for a, b, *_ in log]
    read = sum(n for _, _, batch, *_ in log for _, n in batch)
    busy = sum(spans)
    return {
        "tokens_per_s": n_words / (end - begin),
        "users_per_s": len(users) / (end - begin),
        "kept": statistics.mean(map(keeps_promise, users)),
        "first_p50": percentile(first, 0.5),
        "first_p95": percentile(first, 0.95),
        "whole_p50": percentile(whole, 0.5),
        "whole_p95": percentile(whole, 0.95),
        "gap_p99": percentile(gaps, 0.99),
        "gap_max": max(gaps),
        "held": sum(s * held for s, (*_, held, _) in zip(spans, log, strict=True)) / busy,
        "used": sum(s * used for s, (*_, used) in zip(spans, log, strict=True)) / busy,
        "read_twice": float(read - sum(len(r.words) - 1 for r in users)),
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
    kept = {"rooms": (models["base"], ROOM), "pages": (models["base"], 16)}
    kept |= {name: (models[name], ROOM) for name in ("bfloat16", "small")}
    costs = measured(server, kept, rounds=2 if small else 12)
    note("costs")
    clocks = {kind: fitted(each) for kind, each in costs.items()}
    found: dict[str, Any] = {
        "made": made(),
        "machine": machine(),
        "models": {name: sizes(model) for name, model in models.items()},
        "costs": costs,
        "clocks": clocks,
    }
    bench = Bench(server, clocks, small=small)
    found["loads"] = bench.loads()
    note("loads")
    top = found["loads"]["capacity"]
    for name, run in runs(bench, server, top).items():
        found[name] = run()
        note(name)
    found["real"] = bench.real(models["base"], 0.8 * top)
    note("the clock against the model")
    return found


def runs(bench: Bench, server: SimpleNamespace, top: float) -> dict[str, Callable[[], Any]]:
    """The tables that need no server of the large model; most need only its clock."""
    return {
        "budgets": lambda: bench.budgets(0.6 * top),
        "pages": lambda: bench.pages(top),
        "prefix": bench.prefix,
        "neighbours": bench.neighbours,
        "products": lambda: products(model_of(**KINDS["base"])),
        "drafts": lambda: drafts(server, small=bench.small),
    }


def again(names: Sequence[str]) -> dict[str, Any]:
    """What is stored, with the tables of these names anew."""
    torch.set_num_threads(1)
    found, server = dict(served()), of_the_server().names()
    bench = Bench(server, found["clocks"], small=False)
    table_of = runs(bench, server, found["loads"]["capacity"])
    for name in names:
        if name not in table_of:
            raise ValueError(f"names must be some of {', '.join(table_of)}, got {name}")
        found[name] = table_of[name]()
        found["made again"] = found.get("made again", {}) | {name: made()}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="few users, few rounds")
    parser.add_argument("--out", type=Path, default=PATH)
    parser.add_argument("--again", nargs="+", default=[], help="only these tables")
    asked = parser.parse_args()
    found = rounded(again(asked.again) if asked.again else measure(small=asked.small))
    text = json.dumps(found, indent=1)
    text = re.sub(r"\[[^\[\]{}]*\]", lambda row: " ".join(row[0].split()), text)  # a row, a line
    asked.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
