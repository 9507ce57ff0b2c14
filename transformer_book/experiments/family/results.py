"""What the models of chapter 15 reached: three stored experiments, for the chapter."""

from dataclasses import dataclass
from functools import cache
from statistics import mean

from transformer_book.experiments import STORED, Results
from transformer_book.experiments.family.language import BATCH_TOKENS, language
from transformer_book.experiments.results import Row

BLOCKS = STORED / "blocks.json"
SCALING = {1: STORED / "scaling.json", 2: STORED / "scaling_back.json"}  # by the language's order


class Block(Row):
    """The base or a change of it, at its best learning rate, which another seed chose."""

    @property
    def excess(self) -> tuple[float, ...]:
        """The loss of each seed above the language's entropy, in nats per symbol."""
        return self.values("excess")

    @property
    def mean(self) -> float:
        return mean(self.excess)


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
def block_results() -> tuple[Block, ...]:
    """The base, each change alone, and all of them, as far as they are trained."""
    return Results(path=BLOCKS, measure="excess", lower_is_better=True).rows(Block)


@cache
def scaling_runs(order: int = 1) -> tuple[ScalingRun, ...]:
    """Each size with each number of tokens and each seed, the smaller ones first.

    Of the language of this ``order``: 1 or 2.
    """
    results = Results(path=SCALING[order], measure="excess", lower_is_better=True)
    sizes = sorted(results.stored().arms, key=int)
    return tuple(run for size in sizes for run in _size(results, size, order))


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
