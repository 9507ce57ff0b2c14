"""Chapter 16: ten kinds of attention in one model, what each keeps and what it finds again.

``python -m transformer_book.experiments.chapter_16.caches FOLDER`` trains all kinds on a GPU, at
all rates and with all seeds, stores what they find, and puts the weights of "all heads" in FOLDER;
then some of them with one rate and more steps.
"""

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import nn

from transformer.runtime import default_device
from transformer_book.experiments import Arm, Cells, Experiment, Measures, Plan, chapter, experiment
from transformer_book.experiments.chapter_16.lines import DISTANCES, Lines, lines
from transformer_book.experiments.chapter_16.together import BATCH, Together
from transformer_book.experiments.running import forget, run_one, store
from transformer_book.experiments.runs import Run

N_PAIRS, FEW_AND_MANY = (8, 24, 48), (8, 48)  # in texts that are read; in those of the test
RATES, SEEDS, TUNING = (0.002, 0.004, 0.008), (0, 1, 2), 100
STEPS = (0, 100, 200, 300, 400, 600, 800, 1200, 1600)
MORE_STEPS, RATE = (0, 400, 800, 1200, 1600, 2400, 3200, 4000, 4800), 0.004
LATE = "three windows, one full", "all heads, not mixed", "delta"  # have more to learn at the end
FAR = "48 128"  # found, of 48 pairs a text, 128 to 256 words back
AT_ONCE = 5  # kinds on a GPU; each may take 10 GB of it
KINDS: dict[str, dict[str, Any]] = {
    "all heads": {"kind": "ffff"},
    "2 key heads": {"kind": "ffff", "n_key_heads": 2},
    "1 key head": {"kind": "ffff", "n_key_heads": 1},
    "latent": {"kind": "llll"},
    "window": {"kind": "wwww"},
    "window and sinks": {"kind": "wwww", "sinks": 4},
    "three windows, one full": {"kind": "wwwf"},
    "pairs share": {"kind": "shared"},
    "delta": {"kind": "dddd"},
    "three delta, one full": {"kind": "dddf"},
}
NEIGHBOURS: dict[str, dict[str, Any]] = {
    "one full, three windows": {"kind": "fwww"},
    "three windows of 16, one full": {"kind": "wwwf", "window": 16},
    "three windows of 64, one full": {"kind": "wwwf", "window": 64},
    "latent of 8": {"kind": "llll", "rank": 8},
    "all heads, not mixed": {"kind": "ffff", "mixes": False},
}
Plans = Sequence[tuple[float, int]]  # each a rate and a seed
Curves = dict[tuple[float, int], dict[int, Measures]]


def page() -> Cells:
    return chapter(16, "imports", "kept", "window", "latent", "shared", "delta*", "model")


def recall_model(kind: str, *, mixes: bool = True, **options: Any) -> nn.Module:
    """The page's model, new."""
    names = page().names()
    return names.RecallModel(names.attentions(kind, **options), mixes)


@cache
def training_texts(n_steps: int) -> Lines:
    """All models read these, each in an order of its own."""
    g, n = torch.Generator().manual_seed(1), n_steps * BATCH
    n_pairs = torch.tensor(N_PAIRS)[torch.randint(len(N_PAIRS), (n,), generator=g)]
    return _moved(lines(g, n, n_pairs))


@cache
def test_texts(n_pairs: int, *, seed: int) -> Lines:
    return _moved(lines(torch.Generator().manual_seed(10 + seed), 128, n_pairs))


def _moved(texts: Lines) -> Lines:
    return Lines(*(x.to(default_device()) for x in (texts.tokens, texts.back, texts.floor)))


def training(
    name: str, plans: Plans, steps: tuple[int, ...], keep: Path | None = None
) -> Iterator[Curves]:
    """One kind, step by step, and what was found so far, which is measured after ``steps``.

    A model of the tuning seed is judged on texts of its own. ``keep``: for the weights.
    """
    options = (KINDS | NEIGHBOURS)[name]

    def make(seed: int) -> nn.Module:
        torch.manual_seed(seed)
        return recall_model(**options)

    models, n_steps = Together(make, *zip(*plans, strict=True)), steps[-1]
    curves: Curves = {plan: {} for plan in plans}
    for step in models.run(training_texts(n_steps), range(n_steps + 1)):
        for tuning in {seed == TUNING for _, seed in plans if step in steps}:
            found = [models.judged(test_texts(n, seed=int(tuning))) for n in FEW_AND_MANY]
            for plan, few, many in zip(plans, *found, strict=True):
                if (plan[1] == TUNING) == tuning:
                    curves[plan][step] = told(few, many)
        if keep is not None and step == n_steps:
            weights = {plan: models.weights_of(i) for i, plan in enumerate(plans)}
            torch.save(weights, keep / f"{name}.pt")
        yield curves


def told(few: Measures, many: Measures) -> Measures:
    """Measures of texts with few pairs and many; "missed" is the mean of many's five distances."""
    missed = 1 - sum(many[str(low)] or 0.0 for low in DISTANCES[:-1]) / (len(DISTANCES) - 1)
    each = {
        f"{n} {k}": x
        for n, found in zip(FEW_AND_MANY, (few, many), strict=True)
        for k, x in found.items()
    }
    return each | {"missed": round(missed, 3), "excess": few["excess"]}


def curve(
    model: nn.Module, plan: Plan, *, name: str, steps: tuple[int, ...]
) -> dict[int, Measures]:
    """One model alone, which :func:`training` makes."""
    mine = plan.lr, plan.seed
    *_, curves = training(name, [mine], steps)
    return curves[mine]


def arm(name: str, steps: tuple[int, ...]) -> Arm:
    """One kind, measured after each of ``steps``."""
    make = partial(recall_model, **(KINDS | NEIGHBOURS)[name])
    return Arm(make, curve=partial(curve, name=name, steps=steps), steps=steps)


JUDGING: dict[str, Any] = {
    "measure": "missed",
    "judged_by": ("missed", "excess"),
    "lower_is_better": True,
    "scale": 1.0,
    "tuning_seeds": (TUNING,),
    "widens": False,
}


@experiment(
    "What does a smaller cache cost, in text and in what is found again?",
    rates=RATES,
    seeds=SEEDS,
    **JUDGING,
)
def caches() -> dict[str, Arm]:
    return {name: arm(name, STEPS) for name in KINDS | NEIGHBOURS}


@experiment(
    "Is what is not found after 1,600 steps found after 4,800?",
    rates=(RATE,),
    seeds=(*SEEDS, TUNING),
    **JUDGING,
)
def caches_longer() -> dict[str, Arm]:
    return {name: arm(name, MORE_STEPS) for name in LATE}


def best_by_median(runs: Iterable[Run]) -> float:
    """The rate whose median model finds most far pairs, in whole percent; then has least excess.

    One seed can be the odd one, and a mean says little of models that find all or nothing.
    """
    of: dict[float, list[Run]] = {}
    for run in runs:
        of.setdefault(run.lr, []).append(run)

    def mark(lr: float) -> tuple[float, float]:
        found, excess = (median(r.measured(m) for r in of[lr]) for m in (FAR, "excess"))
        return round(found, 2), -excess

    return max(of, key=mark)


def side_by_side(
    names: Sequence[str], plans: Plans, steps: tuple[int, ...], keep: Path
) -> dict[str, Curves]:
    """Curves of several kinds, whose steps overlap on a GPU: each has a stream of its own."""
    folders = [keep if name == "all heads" else None for name in names]
    each = (training(n, plans, steps, to) for n, to in zip(names, folders, strict=True))
    # the first that has ended ends it, and all are as long
    *_, curves = zip(*map(_on_a_stream, each), strict=False)
    return dict(zip(names, curves, strict=True))


def _on_a_stream(steps: Iterator[Curves]) -> Iterator[Curves]:
    stream = torch.cuda.Stream() if default_device().type == "cuda" else None
    while True:
        with torch.cuda.stream(stream):
            curves = next(steps, None)
        if curves is None:
            return
        yield curves


def main() -> None:
    for of, rates, steps in ((caches, RATES, STEPS), (caches_longer, (RATE,), MORE_STEPS)):
        known, plans = of.arms(), [(lr, seed) for lr in rates for seed in (*SEEDS, TUNING)]
        training_texts(steps[-1])  # on the stream that all others wait for
        for n in FEW_AND_MANY:
            test_texts(n, seed=0), test_texts(n, seed=1)
        for first in range(0, len(known), AT_ONCE):
            names, start = list(known)[first : first + AT_ONCE], time.perf_counter()
            found = side_by_side(names, plans, steps, Path(sys.argv[1]))
            seconds = (time.perf_counter() - start) / len(names) / len(plans)
            for name in names:
                _store(of, name, known, found[name], seconds)


def _store(
    of: Experiment, name: str, known: dict[str, Arm], curves: Curves, seconds: float
) -> None:
    """What the experiment asks for; then, after the last step, the models at the other rates."""

    def looked_up(_: nn.Module, plan: Plan) -> dict[int, Measures]:
        found, last = curves[plan.lr, plan.seed], plan.steps[-1]
        return found | {last: found[last] | {"seconds": seconds}}

    def run(plan: Plan) -> Run:
        run = run_one(name, replace(known[name], curve=looked_up), plan)
        store(of, known, run)
        return run

    forget(of, [name])
    runs: list[Run] = []
    while plans := of.wanted(known[name], runs):
        runs += [run(plan) for plan in plans]
    for lr, seed in curves.keys() - {(run.lr, run.seed) for run in runs}:
        run(Plan(lr, seed, known[name].steps[-1:], sweep=False))


if __name__ == "__main__":
    main()
