"""Chapter 3: the phrase book and rock, scissors, paper, from several random starts."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import torch
from torch import nn

from transformer_book.experiments.cells import chapter
from transformer_book.experiments.experiment import Arm, Experiment, Make, Plan
from transformer_book.experiments.runs import Measures

HERE, ME = Path(__file__).parent, "transformer_book.experiments.chapter_03.small"
LOOP = ("imports", "attention", "train")
TEST, TUNING = 1000, 2000  # the seeds of the pages that a model is judged on


def translate(
    make: Make, plan: Plan, *, cell: SimpleNamespace, guess: Callable[..., torch.Tensor]
) -> Iterator[tuple[int, Measures]]:
    """The share of right answers on 500 new pages, after the chapter's 300 steps."""
    matrices = cell.learn(guess, plan.lr, plan.seed)
    right = cell.accuracy(matrices, guess, TUNING if plan.sweep else TEST)
    yield from ((at, {"right": right}) for at in plan.steps)


def play(
    make: Make, plan: Plan, *, cell: SimpleNamespace, n_matrices: int
) -> Iterator[tuple[int, Measures]]:
    """The least weight on what is beaten, and the largest of all weights, after 200 steps."""
    weights = cell.play(n_matrices, plan.seed)
    beaten = weights[range(3), cell.beaten].min().item()
    yield from ((at, {"beaten": beaten, "largest": weights.max().item()}) for at in plan.steps)


def models() -> dict[str, Arm]:
    cells = chapter(
        3,
        *LOOP,
        "phrase-book",
        "guess-run",
        "learn-run",
        "accuracy",
        "controls",
        definitions=("solution-3-6",),
    )
    cell = cells.names()
    guesses = {
        "learned attention": cell.guess,
        "equal weights": cell.guess_equal,
        "no W_Q, no W_K": cell.guess_raw,
        "keys are values": cell.guess_tied,
    }
    return {
        name: Arm(
            make=lambda: nn.ParameterList(cell.new_matrices()),
            learn=partial(translate, cell=cell, guess=guess),
            rates=(0.01, 0.03),
            steps=(300,),
            code=cells.code(ME),
            chapter=3,
        )
        for name, guess in guesses.items()
    }


def _matrices(n: int) -> nn.Module:
    return nn.ParameterList(torch.zeros(n, 8, 8).unbind())


def games() -> dict[str, Arm]:
    cells = chapter(3, *LOOP, "rps")
    return {
        name: Arm(
            make=partial(_matrices, n),
            learn=partial(play, cell=cells.names(), n_matrices=n),
            rates=(0.05,),
            steps=(200,),
            code=cells.code(ME),
            chapter=3,
        )
        for n, name in enumerate(("one matrix", "two matrices"), start=1)
    }


phrase_book = Experiment(
    path=HERE / "phrase_book.json",
    question="What does a model need to translate by phrase books that it has never seen?",
    measure="right",
    scale=1.0,
    arms=models,
    widens=False,
    seconds=1.0,
)
circle = Experiment(
    path=HERE / "circle.json",
    question="Do rock, scissors and paper need two matrices for queries and keys?",
    measure="beaten",
    scale=1.0,
    arms=games,
    seeds=tuple(range(5)),
    widens=False,
    seconds=1.0,
)
