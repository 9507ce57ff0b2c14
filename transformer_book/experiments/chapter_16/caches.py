"""Chapter 16: ten kinds of attention in one model, what each keeps and what it finds again."""

from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from transformer.runtime import default_device
from transformer_book.experiments.cells import Cells, chapter
from transformer_book.experiments.chapter_16 import HERE
from transformer_book.experiments.chapter_16.lines import DISTANCES, Lines, lines
from transformer_book.experiments.chapter_16.together import BATCH, Together
from transformer_book.experiments.experiment import Arm, Experiment, Make, Plan
from transformer_book.experiments.runs import Measures

ME = "transformer_book.experiments.chapter_16.caches"
N_PAIRS, FEW_AND_MANY = (8, 24, 48), (8, 48)  # in texts that are read; in those of the test
RATES, SEEDS, TUNING = (0.002, 0.004, 0.008), (0, 1, 2), 100
RATE = 0.004  # of the arms that are not swept, near the best of those that are
WHOLE = "all heads", "1 key head", "pairs share", "latent", "2 key heads"  # see every word
SWEPT = "all heads", "latent", "window", "three windows, one full", "delta", "three delta, one full"
STEPS = (0, 100, 200, 300, 400, 600, 800, 1200, 1600)
SHORT = (200, 400, 600)  # on a CPU, for kinds that have found all by then
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


def page() -> Cells:
    return chapter(
        16, "imports", "kept", "window", "latent", "shared", "mix", "delta*", "model", "kinds"
    )


def reader(kind: str, *, mixes: bool = True, **options: Any) -> nn.Module:
    """The page's model, new."""
    names = page().names()
    return names.Reader(names.attentions(kind, **options), mixes)


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


Plans = tuple[tuple[float, int], ...]  # each a rate and a seed


@cache
def trained(
    name: str, plans: Plans, steps: tuple[int, ...], keep: Path
) -> dict[tuple[float, int], dict[int, Measures]]:
    """The curve of each plan; that of the tuning seed is judged on texts of its own."""
    options = KINDS[name]

    def make(seed: int) -> nn.Module:
        torch.manual_seed(seed)
        return reader(**options)

    models = Together(make, *zip(*plans, strict=True))
    curves: dict[tuple[float, int], dict[int, Measures]] = {plan: {} for plan in plans}
    for step in models.run(training_texts(max(steps)), steps):
        for tuning in {seed == TUNING for _, seed in plans}:
            found = [models.judged(test_texts(n, seed=int(tuning))) for n in FEW_AND_MANY]
            for plan, few, many in zip(plans, *found, strict=True):
                if (plan[1] == TUNING) == tuning:
                    curves[plan][step] = told(few, many)
    if keep.exists():
        torch.save(
            {plan: models.weights_of(i) for i, plan in enumerate(plans)},
            keep / f"{name} {plans[0]}.pt",
        )
    return curves


def told(few: Measures, many: Measures) -> Measures:
    """Of texts with few pairs and with many; "missed" is the mean of the five distances of many."""
    missed = 1 - sum(many[str(low)] or 0.0 for low in DISTANCES[:-1]) / (len(DISTANCES) - 1)
    each = {
        f"{n} {k}": x
        for n, found in zip(FEW_AND_MANY, (few, many), strict=True)
        for k, x in found.items()
    }
    return each | {"missed": round(missed, 3), "excess": few["excess"]}


def learn(
    make: Make, plan: Plan, *, name: str, steps: tuple[int, ...]
) -> Iterator[tuple[int, Measures]]:
    """On a GPU with all other rates and seeds of this kind, which wait for their turn."""
    plans: Plans = ((plan.lr, plan.seed),)
    if default_device().type == "cuda" and plan.lr in RATES:
        plans = tuple((lr, seed) for lr in RATES for seed in (*SEEDS, TUNING))
    curve = trained(name, plans, steps, plan.keep)[plan.lr, plan.seed]
    yield from ((step, curve[step]) for step in plan.steps)


def arm(name: str, *, rates: tuple[float, ...], steps: tuple[int, ...]) -> Arm:
    return Arm(
        make=partial(reader, **KINDS[name]),
        learn=partial(learn, name=name, steps=steps),
        rates=rates,
        steps=steps,
        code=page().code(ME),
        chapter=16,
    )


def arms() -> dict[str, Arm]:
    return {name: arm(name, rates=RATES, steps=STEPS) for name in SWEPT}


def short_arms() -> dict[str, Arm]:
    return {name: arm(name, rates=(RATE,), steps=SHORT) for name in WHOLE}


caches, caches_short = (
    Experiment(
        path=HERE / f"{file}.json",
        question=question,
        measure="missed",
        judged_by=("missed", "excess"),
        lower_is_better=True,
        scale=1.0,
        arms=of,
        seeds=SEEDS,
        tuning_seeds=(TUNING,),
        widens=False,
        seconds=300.0,
    )
    for file, question, of in (
        ("caches", "What does a smaller cache cost, in text and in what is found again?", arms),
        (
            "caches_short",
            "Do fewer keys lose anything, after as many steps as all heads need?",
            short_arms,
        ),
    )
)
