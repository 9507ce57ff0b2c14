"""Chapter 16: ten kinds of attention in one model, what each keeps and what it finds again."""

from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import torch
from torch import nn

from transformer.runtime import default_device
from transformer_book.experiments.cells import Cells, chapter
from transformer_book.experiments.chapter_16 import HERE
from transformer_book.experiments.chapter_16.lines import Lines, lines
from transformer_book.experiments.chapter_16.together import BATCH, Together
from transformer_book.experiments.experiment import Arm, Experiment, Make, Plan
from transformer_book.experiments.runs import Measures

ME = "transformer_book.experiments.chapter_16.caches"
N_PAIRS = (8, 24, 48)  # of the texts that are read; the first and the last are asked for
RATES, SEEDS, TUNING = (0.002, 0.004, 0.008), (0, 1, 2), 100
STEPS = (0, 100, 200, 300, 400, 600, 800, 1200, 1600)
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
    "all heads, not mixed": {"kind": "ffff", "mixes": False},
    "one full, three windows": {"kind": "fwww"},
    "three windows of 16, one full": {"kind": "wwwf", "window": 16},
    "window of 64": {"kind": "wwww", "window": 64},
    "one full, three delta": {"kind": "fddd"},
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


Curves = dict[tuple[float, int], dict[int, Measures]]  # of a rate and a seed


@cache
def trained(name: str, rates: tuple[float, ...], steps: tuple[int, ...], keep: Any) -> Curves:
    """All rates and seeds of a kind; the tuning seed is judged on texts of its own."""
    options = (KINDS | NEIGHBOURS)[name]

    def make(seed: int) -> nn.Module:
        torch.manual_seed(seed)
        return reader(**options)

    plans = [(lr, seed) for lr in rates for seed in (*SEEDS, TUNING)]
    models = Together(make, *zip(*plans, strict=True))
    curves: Curves = {plan: {} for plan in plans}
    for step in models.run(training_texts(max(steps)), steps):
        judged = [
            [
                x
                for n in (N_PAIRS[0], N_PAIRS[-1])
                for x in [models.judged(test_texts(n, seed=s), name=str(n))]
            ]
            for s in (0, 1)
        ]
        for i, plan in enumerate(plans):
            own = judged[plan[1] == TUNING]
            curves[plan][step] = {k: x for measures in own for k, x in measures[i].items()}
            values = [
                x
                for k, x in curves[plan][step].items()
                if k.startswith(f"{N_PAIRS[-1]} ") and "excess" not in k
            ]
            curves[plan][step]["found"] = round(sum(values) / len(values), 4)
            curves[plan][step]["excess"] = curves[plan][step][f"{N_PAIRS[0]} excess"]
    if keep.exists():
        kept = {
            plan: models.weights_of(i)
            for i, plan in enumerate(plans)
            if plan[1] in (0, TUNING) or name == "all heads"
        }
        torch.save(
            {plan: {k: x.half() for k, x in w.items()} for plan, w in kept.items()},
            keep / f"{name}.pt",
        )
    return curves


def learn(
    make: Make, plan: Plan, *, name: str, rates: tuple[float, ...]
) -> Iterator[tuple[int, Measures]]:
    rates = rates if plan.lr in rates else (plan.lr,)
    curve = trained(name, rates, plan.steps if max(plan.steps) != max(STEPS) else STEPS, plan.keep)[
        plan.lr, plan.seed
    ]
    yield from ((step, curve[step]) for step in plan.steps)


def arms() -> dict[str, Arm]:
    def arm(name: str, options: dict[str, Any], rates: tuple[float, ...]) -> Arm:
        return Arm(
            make=partial(reader, **options),
            learn=partial(learn, name=name, rates=rates),
            rates=rates,
            steps=STEPS,
            code=page().code(ME),
            chapter=16,
        )

    return {n: arm(n, o, RATES) for n, o in KINDS.items()} | {
        n: arm(n, o, (0.004,)) for n, o in NEIGHBOURS.items()
    }


caches = Experiment(
    path=HERE / "caches.json",
    question="What does a smaller cache cost, in text and in what is found again?",
    measure="found",
    judged_by=("found", "excess"),
    scale=1.0,
    arms=arms,
    seeds=SEEDS,
    tuning_seeds=(TUNING,),
    widens=False,
    seconds=300.0,
)
