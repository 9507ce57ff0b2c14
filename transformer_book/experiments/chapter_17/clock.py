"""Seconds of a call by its texts: measured once, then a clock that nobody else's work disturbs.

A call reads n new words of each of some texts, and a text then has S words. A server that is tried
on a busy machine measures the machine; so each kind of call is measured by the processor's time of
this process alone, by turns, and the best time of each counts, for other work only adds to it. To
these a sum is fitted: what so many rows cost in products with weights, and what each text costs for
its attention. That's the clock.
"""

import random
import statistics
import time
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

from transformer.family import DecoderOnly, FamilyConfig

Text = tuple[int, int]  # n new words of a text that has S words then
Texts = Sequence[Text]
Seconds = Callable[[Texts], float]
Costs = dict[str, list[float]]  # a name of texts -> the best, median, upper quartile
Fit = dict[str, Any]
BATCHES, LENGTHS = (1, 2, 4, 8, 16, 32), (32, 96, 192, 320)
LONG = 576  # a text with a shared beginning, in batches of up to 16
PROMPTS = (2, 8, 16, 32, 64, 128, 256, 512)
PIECES = ((32, 256), (32, 512), (64, 256), (64, 512), (128, 512))  # of one text
SEVERAL = ((4, 32), (8, 32), (4, 64), (8, 64), (8, 128))  # prompts that are read together
CHECKED = tuple((B, n, 96) for B in (1, 8, 32) for n in (2, 5))  # one guess or four are checked
MIXED = (  # steps of so many texts of so many words, with a piece of another text
    (4, 96, (32, 32)),
    (8, 192, (16, 256)),
    (8, 192, (64, 256)),
    (8, 192, (128, 512)),
    (32, 96, (64, 64)),
)
KNOTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)  # rows of a call
PARTS = "text", "piece", "word", "pair"  # what else a call pays for
KINDS: dict[str, dict[str, Any]] = {  # of models
    "base": {"d_model": 512, "n_layers": 6, "d_ff": 1408},
    "bfloat16": {"d_model": 512, "n_layers": 6, "d_ff": 1408, "dtype": torch.bfloat16},
    "small": {"d_model": 128, "n_layers": 4, "d_ff": 352},
}
ROOM = 640  # words of the longest text, where each has its keys and values in one piece


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


def name_of(texts: Texts) -> str:
    """Such as ``8x1,192+1x64,256``: eight texts read a word, and one 64."""
    counted = {text: texts.count(text) for text in dict.fromkeys(texts)}
    return "+".join(f"{B}x{n},{S}" for (n, S), B in counted.items())


def texts_of(name: str) -> Texts:
    """What ``name_of`` made a name of."""
    parts = [part.split("x") for part in name.split("+")]
    pairs = [(int(B), *map(int, text.split(","))) for B, text in parts]
    return [(n, S) for B, n, S in pairs for _ in range(B)]


def calls(*, long: bool) -> list[Texts]:
    """The calls that the clock is made of."""
    found = [[(1, S)] * B for B in BATCHES for S in LENGTHS]
    found += [[(1, LONG)] * B for B in BATCHES if long and B <= 16]
    found += [[(n, n)] for n in PROMPTS] + [[piece] for piece in PIECES]
    found += [[(n, n)] * B for B, n in SEVERAL] + [[(n, S)] * B for B, n, S in CHECKED]
    return [*found, *([(1, S)] * B + [piece] for B, S, piece in MIXED)]


def measured(
    server: SimpleNamespace,
    models: Mapping[str, tuple[DecoderOnly, int]],
    *,
    rounds: int,
) -> dict[str, Costs]:
    """Each call of each model, in pages of so many words, once a round; one round warms up.

    In another order each round, so that other work on the machine hits all of them.
    """
    found: dict[tuple[str, str], list[float]] = {}
    engines, g = {}, random.Random(0)
    for kind, (model, size) in models.items():
        wanted = calls(long=kind in ("rooms", "pages"))
        found |= {(kind, name_of(texts)): [] for texts in wanted}
        rows = max(map(len, wanted))
        words = max(sum(S + size for _, S in texts) for texts in wanted)
        n_pages = rows if size == ROOM else words // size
        engines[kind] = server.Engine(model, server.Pages(n_pages, size))
    order = list(found)
    for i in range(rounds + 1):
        g.shuffle(order)
        for kind, name in order:
            seconds = _call(server, engines[kind], texts_of(name), g)
            if i:
                found[kind, name].append(seconds)
    return {kind: {name: told(found[k, name]) for k, name in found if k == kind} for kind in models}


def _call(server: SimpleNamespace, engine: Any, texts: Texts, g: random.Random) -> float:
    n_words = engine.model.config.vocab_size
    batch = []
    for n, S in texts:
        text = server.Request([g.randrange(3, n_words) for _ in range(S)])
        engine.pages.grow(text, S)
        text.n_kept = S - n
        batch.append((text, n))
    seconds: float = engine.step(batch)[1]
    for text, _ in batch:
        engine.pages.release(text)
    return seconds


def told(values: Sequence[float]) -> list[float]:
    """The best, the median and the upper quartile."""
    if len(values) == 1:
        return list(values) * 3
    return [min(values), *statistics.quantiles(values, n=4)[1:]]


def fitted(costs: Costs) -> Fit:
    """Seconds by the rows of a call, and for each text, word that is kept, and pair of words.

    The squares of errors *in percent* are least.
    """
    best = [(texts_of(name), each[0]) for name, each in costs.items()]
    rows = [[*_hats(sum(n for n, _ in texts)), *_attention(texts)] for texts, _ in best]
    A = torch.tensor(rows, dtype=torch.float64) / torch.tensor([[s] for _, s in best])
    # each rise from knot to knot, and each cost of a text, is nought or more
    n = len(KNOTS)
    rises = torch.eye(A.size(1), dtype=torch.float64)
    rises[:n, :n] = torch.ones(n, n).tril()
    x = rises @ _at_least_nought(A @ rises, torch.ones(len(best), dtype=torch.float64))
    numbers = [float(f"{number:.4g}") for number in x.tolist()]
    products = [[knot, seconds] for knot, seconds in zip(KNOTS, numbers, strict=False)]
    return {"products": products} | dict(zip(PARTS, numbers[n:], strict=True))


def _at_least_nought(A: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The least squares without a negative number: what comes out negative is left out."""
    kept = list(range(A.size(1)))
    while True:
        x = torch.linalg.lstsq(A[:, kept], b[:, None]).solution[:, 0]
        if (x >= 0).all():
            found = torch.zeros(A.size(1), dtype=A.dtype)
            found[kept] = x
            return found
        kept.pop(int(x.argmin()))


def _hats(N: int) -> list[float]:
    """How much each knot counts for N rows: the line through the two beside it, or the last two."""
    i = min(max(bisect_left(KNOTS, N), 1), len(KNOTS) - 1)
    share = (N - KNOTS[i - 1]) / (KNOTS[i] - KNOTS[i - 1])
    hats = [0.0] * len(KNOTS)
    hats[i - 1], hats[i] = 1 - share, share
    return hats


def _attention(texts: Texts) -> tuple[int, ...]:
    """Counts of a call: texts, those with a mask, words whose keys are fetched, pairs of words."""
    pieces = sum(1 < n < S for n, S in texts)
    pairs = sum(n * S - n * (n - 1) // 2 for n, S in texts)
    return len(texts), pieces, sum(S for _, S in texts), pairs


def clock(fit: Fit) -> Seconds:
    """The seconds of any call."""
    products: Callable[[int], float] = cache(lambda N: _between(N, fit["products"]))

    def seconds(texts: Texts) -> float:
        parts = zip(PARTS, _attention(texts), strict=True)
        more = sum(float(fit[name]) * n for name, n in parts)
        return products(sum(n for n, _ in texts)) + more

    return seconds


def _between(x: int, points: Sequence[Sequence[int | float]]) -> float:
    """The line through the two points beside ``x``, or through the last two."""
    i = min(max(bisect_left([p[0] for p in points], x), 1), len(points) - 1)
    (x0, y0), (x1, y1) = points[i - 1], points[i]
    return y0 + (y1 - y0) * (x - x0) / (x1 - x0)


def machine(rounds: int = 9) -> dict[str, float]:
    """Two yardsticks of one core: bytes that it reads in a second, and multiplications."""
    numbers, w = torch.rand(64 * 2**20), torch.rand(1024, 1024)
    times: dict[str, list[float]] = {"read": [], "multiply": []}
    for _ in range(rounds):
        for name, run in (("read", lambda: numbers.sum()), ("multiply", lambda: w @ w)):
            began = time.process_time()
            run()
            times[name].append(time.process_time() - began)
    read, multiply = (min(times[name]) for name in ("read", "multiply"))
    return {"bytes_per_s": numbers.nbytes / read, "multiplications_per_s": 1024**3 / multiply}


def products(model: DecoderOnly, rounds: int = 12) -> dict[str, float]:
    """The best time of the products with weights alone, of so many rows and words to be chosen."""
    layers = [layer for layer in model.modules() if isinstance(layer, nn.Linear)]
    best: dict[str, float] = {}
    for _ in range(rounds):
        for rows, chosen in ((1, 1), (8, 8), (32, 32), (64, 1)):
            given = [
                torch.rand(chosen if layer is model.output else rows, layer.in_features)
                for layer in layers
            ]
            began = time.process_time()
            with torch.inference_mode():
                for layer, x in zip(layers, given, strict=True):
                    layer(x)
            took, name = time.process_time() - began, f"{rows},{chosen}"
            best[name] = min(took, best.get(name, took))
    return best
