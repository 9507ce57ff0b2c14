"""What the models of chapter 15 reached: three stored experiments, for the chapter."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import mean

from transformer_book.experiments.family.language import BATCH_TOKENS, language
from transformer_book.experiments.results import Results

BLOCKS = Path(__file__).with_name("blocks.json")
SCALING = {  # for each order of the language
    order: BLOCKS.with_name(f"{name}.json") for order, name in ((1, "scaling"), (2, "scaling_back"))
}


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
    ``order``: that of the language.
    """

    d_model: int
    n_parameters: int
    n_embedding: int
    n_tokens: int
    seed: int
    lr: float
    excess: float
    excess_on_the_way: float
    order: int = 1

    @property
    def loss(self) -> float:
        return language(self.order).entropy + self.excess

    @property
    def loss_on_the_way(self) -> float:
        return language(self.order).entropy + self.excess_on_the_way

    @property
    def n_non_embedding(self) -> int:
        return self.n_parameters - self.n_embedding


@cache
def block_results() -> tuple[BlockResult, ...]:
    """The base, each change alone, and all of them, as far as they are trained."""
    results = Results(path=BLOCKS, measure="excess", lower_is_better=True)
    return tuple(_block(results, name) for name in results.stored().arms if results.finals(name))


@cache
def scaling_runs(order: int = 1) -> tuple[ScalingRun, ...]:
    """Each size with each number of tokens and each seed, the smaller ones first.

    Of the language of this ``order``: 1 or 2.
    """
    results = Results(path=SCALING[order], measure="excess", lower_is_better=True)
    sizes = sorted(results.stored().arms, key=int)
    return tuple(run for size in sizes for run in _size(results, size, order))


def _block(results: Results, name: str) -> BlockResult:
    runs = results.finals(name)
    return BlockResult(
        name=name,
        n_parameters=results.n_parameters(name),
        d_ff=results.stored().arms[name]["d_ff"],
        n_steps=results.n_steps(name),
        lr=results.rate(name),
        tried=results.tried(name),
        excess=results.values(name),
        seconds=mean(run.seconds for run in runs if run.seconds is not None),
    )


def _size(results: Results, arm: str, order: int) -> list[ScalingRun]:
    runs, facts = results.runs(arm), results.stored().arms[arm]
    judged = {(run.lr, run.seed): run for run in runs if not run.sweep}
    steps = sorted({n for run in judged.values() for n in run.curve})
    best = {n: results.best(runs, n) for n in steps}
    longest = best[max(best)]
    return [
        ScalingRun(
            d_model=facts["d_model"],
            n_parameters=results.n_parameters(arm),
            n_embedding=facts["n_embedding"],
            n_tokens=n * BATCH_TOKENS,
            seed=seed,
            lr=lr,
            excess=judged[lr, seed].measured("excess", n),
            excess_on_the_way=judged[longest, seed].measured("on_the_way", n),
            order=order,
        )
        for n, lr in best.items()
        for seed in sorted({seed for _, seed in judged if seed is not None})
    ]
