"""Seconds of a call by its shape: measured once, then a clock that nobody else's work disturbs.

A shape is (B, T, S): T new words of each of B texts, whose longest has S words then. A server that
is tried on a busy machine measures the machine; so each shape is measured by the processor's time
of this process alone, by turns, and its median stands for every call of that shape.
"""

import random
import statistics
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from types import SimpleNamespace
from typing import Any

import torch

from transformer.family import DecoderOnly, FamilyConfig

Shape = tuple[int, int, int]  # B, T, S
Seconds = Callable[[int, int, int], float]
Costs = dict[str, list[float]]  # "B,T,S" -> lower quartile, median, upper quartile
BATCHES, LENGTHS = (1, 2, 4, 8, 16, 32), (32, 96, 192, 320)
LONG = 576  # a text with a shared beginning, in batches of up to 16
PROMPTS = (2, 8, 16, 32, 64, 128, 256, 512)
PIECES = ((32, 256), (32, 512), (64, 256), (64, 512), (128, 512))  # (T, S) of one text
SEVERAL = ((4, 32, 32), (8, 32, 32), (4, 64, 64), (8, 64, 64))  # prompts that are read together
CHECKED = tuple((B, T, 96) for B in (1, 8, 32) for T in (2, 5))  # one guess or four are checked
KINDS: dict[str, dict[str, Any]] = {
    "base": {"d_model": 512, "n_layers": 6, "d_ff": 1408},
    "bfloat16": {"d_model": 512, "n_layers": 6, "d_ff": 1408, "dtype": torch.bfloat16},
    "small": {"d_model": 128, "n_layers": 4, "d_ff": 352},
}


def model_of(
    *,
    d_model: int,
    n_layers: int,
    d_ff: int,
    vocab: int = 8192,
    dtype: torch.dtype = torch.float32,
) -> DecoderOnly:
    """Chapter 15's: rotary positions, RMSNorm, SwiGLU, four heads of queries to one of keys."""
    heads = {"n_heads": d_model // 32, "n_key_heads": d_model // 128}
    sizes = {"d_model": d_model, "n_layers": n_layers, "d_ff": d_ff, "max_len": 1024}
    return DecoderOnly(FamilyConfig.modern(vocab, **sizes, **heads)).to(dtype).eval()


def shapes(*, long: bool) -> list[Shape]:
    """All that the clock is made of."""
    steps = [(B, 1, S) for B in BATCHES for S in LENGTHS]
    steps += [(B, 1, LONG) for B in BATCHES if long and B <= 16]
    prompts = [(1, T, T) for T in PROMPTS] + [(1, T, S) for T, S in PIECES]
    return [*steps, *prompts, *SEVERAL, *CHECKED]


def measured(
    server: SimpleNamespace, model: DecoderOnly, wanted: Iterable[Shape], *, rounds: int
) -> Costs:
    """Each shape once a round, in another order each time; one round more warms up."""
    order, g = list(wanted), random.Random(0)
    rows, words = max(B for B, _, _ in order), max(B * S for B, _, S in order)
    engine = server.Engine(model, server.Pages(words // 16 + rows, 16))
    found: dict[Shape, list[float]] = {shape: [] for shape in order}
    for i in range(rounds + 1):
        g.shuffle(order)
        for shape in order:
            seconds = _call(server, engine, shape, g)
            if i:
                found[shape].append(seconds)
    return {f"{B},{T},{S}": quartiles(found[B, T, S]) for B, T, S in found}


def _call(server: SimpleNamespace, engine: Any, shape: Shape, g: random.Random) -> float:
    B, T, S = shape
    n_words = engine.model.config.vocab_size
    texts = [server.Request([g.randrange(3, n_words) for _ in range(S)]) for _ in range(B)]
    for text in texts:
        engine.pages.grow(text, S)
        text.n_kept = S - T
    seconds: float = engine.step([(text, T) for text in texts])[1]
    for text in texts:
        engine.pages.release(text)
    return seconds


def quartiles(values: Sequence[float]) -> list[float]:
    return statistics.quantiles(values, n=4) if len(values) > 1 else [values[0]] * 3


@dataclass(frozen=True)
class Points:
    """What was measured, and between which a clock goes straight on."""

    steps: dict[int, list[tuple[int, float]]]  # by the length: texts, seconds
    prompts: list[tuple[int, float]]  # words of one prompt, seconds
    past: float  # what a new word pays for each word that was read before its piece

    @classmethod
    def of(cls, costs: Costs, quartile: int = 1) -> "Points":
        """``quartile`` 1 is the median."""
        cost = {tuple(map(int, key.split(","))): each[quartile] for key, each in costs.items()}
        lengths = sorted({S for _, T, S in cost if T == 1})
        more = [(cost[1, T, S] - cost[1, T, T]) / (T * (S - T)) for T, S in PIECES]
        return cls(
            {S: [(B, cost[B, 1, S]) for B in BATCHES if (B, 1, S) in cost] for S in lengths},
            [(1, cost[1, 1, 32]), *((T, cost[1, T, T]) for T in PROMPTS)],
            max(statistics.median(more), 0.0),
        )


def clock(costs: Costs, quartile: int = 1) -> Seconds:
    """The seconds of a call of any shape."""
    points = Points.of(costs, quartile)

    @cache
    def seconds(B: int, T: int, S: int) -> float:
        if T == 1:
            return _between(S, [(s, _between(B, row)) for s, row in points.steps.items()])
        # several prompts cost about what one of as many words does
        return _between(B * T, points.prompts) + points.past * B * T * (S - T)

    return seconds


def _between(x: int, points: Sequence[tuple[int, float]]) -> float:
    """The line through the two points beside ``x``, or through the last two."""
    i = min(max(bisect_left([p[0] for p in points], x), 1), len(points) - 1)
    (x0, y0), (x1, y1) = points[i - 1], points[i]
    return max(y0 + (y1 - y0) * (x - x0) / (x1 - x0), 0.0)


def machine(rounds: int = 9) -> dict[str, float]:
    """Two yardsticks of one core: bytes that it reads in a second, and multiplications."""
    numbers, w = torch.rand(64 * 2**20), torch.rand(1024, 1024)
    times: dict[str, list[float]] = {"read": [], "multiply": []}
    for _ in range(rounds):
        for name, run in (("read", lambda: numbers.sum()), ("multiply", lambda: w @ w)):
            began = time.process_time()
            run()
            times[name].append(time.process_time() - began)
    read, multiply = (statistics.median(times[name]) for name in ("read", "multiply"))
    return {"bytes_per_s": numbers.nbytes / read, "multiplications_per_s": 1024**3 / multiply}
