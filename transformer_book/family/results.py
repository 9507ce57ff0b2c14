"""What the models of chapter 14 reached, as ``make family`` has measured it."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import mean

from transformer_book.family.language import BATCH_TOKENS, language

BLOCKS, SCALING = (Path(__file__).with_name(f"{name}.json") for name in ("blocks", "scaling"))
TUNING_SEED = 100  # from here on, seeds choose the rate


@dataclass(frozen=True)
class BlockResult:
    """The base or a change of it, at its best learning rate; ``excess`` holds a loss for each seed.

    Losses are in nats per symbol above the language's entropy. ``tried`` holds each rate with the
    mean loss that other seeds reach with it. ``seconds`` are the CPU's on one thread, the mean.
    """

    name: str
    n_parameters: int
    d_ff: int
    n_steps: int
    lr: float
    tried: dict[float, float]
    excess: tuple[float, ...]
    seconds: float

    @property
    def mean(self) -> float:
        return mean(self.excess)

    @property
    def spread(self) -> tuple[float, float]:
        """The lowest and the highest over the seeds."""
        return min(self.excess), max(self.excess)


@dataclass(frozen=True)
class ScalingRun:
    """A model of one size after so many tokens, at the rate that is best for both.

    ``excess``: nats per symbol above the entropy. ``excess_on_the_way``: of the same size and
    seed after as many tokens, at the rate that is best for the longest run, which has not fallen.
    """

    d_model: int
    n_parameters: int
    n_embedding: int
    n_tokens: int
    seed: int
    lr: float
    excess: float
    excess_on_the_way: float

    @property
    def loss(self) -> float:
        return language(order=1).entropy + self.excess

    @property
    def loss_on_the_way(self) -> float:
        return language(order=1).entropy + self.excess_on_the_way

    @property
    def n_non_embedding(self) -> int:
        return self.n_parameters - self.n_embedding


@cache
def block_results() -> tuple[BlockResult, ...]:
    """The base, each change alone, and all of them, as far as they are trained."""
    runs = read_runs(BLOCKS)
    names = dict.fromkeys(run["name"] for run in runs if run["seed"] < TUNING_SEED)
    return tuple(_block(name, [run for run in runs if run["name"] == name]) for name in names)


@cache
def scaling_runs() -> tuple[ScalingRun, ...]:
    """Each size with each number of tokens and each seed, the smaller ones first."""
    runs = read_runs(SCALING)
    sizes = sorted({run["d_model"] for run in runs})
    return tuple(each for d in sizes for each in _size([r for r in runs if r["d_model"] == d]))


def read_runs(path: Path) -> list[dict]:
    """What is stored of each run; none where there is no file."""
    return json.loads(path.read_text(encoding="utf-8"))["runs"] if path.exists() else []


def tried(runs: list[dict]) -> dict[int, dict[float, float]]:
    """For each number of steps each rate with the mean loss that the tuning seeds reach with it."""
    losses: dict[int, dict[float, list[float]]] = {}
    for run in runs:
        if run["seed"] >= TUNING_SEED:
            for steps, excess in run["excess"].items():
                losses.setdefault(int(steps), {}).setdefault(run["lr"], []).append(excess)
    return {
        steps: {lr: mean(found) for lr, found in sorted(rates.items())}
        for steps, rates in sorted(losses.items())
    }


def best_rates(runs: list[dict]) -> dict[int, float]:
    """For each number of steps the rate with the lowest loss."""
    return {steps: min(rates, key=rates.__getitem__) for steps, rates in tried(runs).items()}


def _block(name: str, runs: list[dict]) -> BlockResult:
    ((n_steps, lr),) = best_rates(runs).items()
    judged = [run for run in runs if run["seed"] < TUNING_SEED and run["lr"] == lr]
    return BlockResult(
        name=name,
        n_parameters=runs[0]["n_parameters"],
        d_ff=runs[0]["d_ff"],
        n_steps=n_steps,
        lr=lr,
        tried=tried(runs)[n_steps],
        excess=tuple(run["excess"][str(n_steps)] for run in judged),
        seconds=mean(run["seconds"] for run in judged),
    )


def _size(runs: list[dict]) -> list[ScalingRun]:
    best = best_rates(runs)
    longest, judged = best[max(best)], {}
    for run in runs:
        if run["seed"] < TUNING_SEED:
            judged[run["lr"], run["seed"]] = run
    seeds = sorted({seed for _, seed in judged})
    return [
        ScalingRun(
            **{name: runs[0][name] for name in ("d_model", "n_parameters", "n_embedding")},
            n_tokens=steps * BATCH_TOKENS,
            seed=seed,
            lr=lr,
            excess=judged[lr, seed]["excess"][str(steps)],
            excess_on_the_way=judged[longest, seed]["on_the_way"][str(steps)],
        )
        for steps, lr in best.items()
        for seed in seeds
    ]
