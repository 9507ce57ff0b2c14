"""Chapter 14: what two layers of attention copy by, when a look is forbidden or a note is moved."""

import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import torch
from torch import Tensor, nn

from transformer_book.experiments.chapter_14 import of_the_copiers
from transformer_book.experiments.experiment import Arm, Experiment, Make, Plan
from transformer_book.experiments.learning import one_for_each
from transformer_book.experiments.runs import Measures

HERE, ME = Path(__file__).parent, "transformer_book.experiments.chapter_14.looks"
N, ROWS = 8, 300  # words that are different in a text, and texts


def _closed(length: int, *looks: tuple[int, int]) -> Tensor:
    closed = torch.zeros(length, length, dtype=torch.bool)
    for row, column in looks:
        closed[row, column] = True
    return closed


def looks_closed(cell: SimpleNamespace, model: nn.Module) -> Measures:
    """The share of words that are copied, with a look closed for all words, or that beside it."""
    text = cell.twice(N, ROWS)
    back = torch.arange(2 * N - 1)[:, None] - torch.arange(2 * N - 1)
    free = torch.zeros_like(back, dtype=torch.bool)
    masks = {
        "free": (free, free),
        "no note": (back == 1, free),
        "no note, beside": (back == 2, free),
        "no look": (free, back == N - 1),
        "no look, beside": (free, back == N - 2),
    }
    found = {}
    for name, closed in masks.items():
        right = model(text[:, :-1], closed)[:, N:].argmax(dim=-1) == text[:, N + 1 :]
        found[name] = right.float().mean().item()
    return found


def one_again(cell: SimpleNamespace, model: nn.Module) -> Measures:
    """Of N different words one comes again, and what followed it is 1 to N - 1 places back.

    "near" and "far": the share that is right up to 3 places back, and beyond. "moved": the share
    that copies another word instead, since that one has got the note. ``N // 2`` pairs are asked,
    as in the chapter's prompt, and both places of the note are among them.
    """
    words = cell.twice(N, ROWS)[:, :N]
    right: dict[int, list[bool]] = {}
    for row, place in zip(words, torch.arange(ROWS) % (N - 1), strict=True):
        told = model(torch.cat([row, row[place : place + 1]])[None])[0, -1].argmax()
        right.setdefault(N - 1 - int(place), []).append(bool(told == row[place + 1]))
    moved, free = [], _closed(N + 1)
    pairs = [(i, j) for i in range(0, N, 2) for j in range(i + 2, N, 2)]
    for number, row in enumerate(words):
        i, j = pairs[number % len(pairs)]  # the words that come first in two pairs
        others = [(j + 1, column) for column in range(j + 2) if column != i]
        closed = _closed(N + 1, (i + 1, i), *others), free
        told = model(torch.cat([row, row[i : i + 1]])[None], closed)[0, -1].argmax()
        moved.append(bool(told == row[j + 1]))
    near, far = (
        [hit for back, hits in right.items() if (back <= 3) == is_near for hit in hits]
        for is_near in (True, False)
    )
    shares = {"near": near, "far": far, "moved": moved}
    return {name: sum(hits) / len(hits) for name, hits in shares.items()}


def learn(make: Make, plan: Plan, *, cell: SimpleNamespace) -> Iterator[tuple[int, Measures]]:
    """What the page's copier does with its looks."""

    def train(model: nn.Module, n_steps: int) -> Measures:
        cell.train(model, cell.copying, lr=plan.lr, n_steps=n_steps, warm_up=30)
        torch.manual_seed(1000 + plan.seed)
        with torch.no_grad():
            return looks_closed(cell, model) | one_again(cell, model)

    yield from one_for_each(make, plan, train)


def arms() -> dict[str, Arm]:
    cells = of_the_copiers()
    cell = cells.names()
    return {
        "two layers": Arm(
            make=partial(cell.Copier, 2),
            learn=partial(learn, cell=cell),
            rates=(0.02,),
            steps=(375,),
            code=cells.code(ME),
            chapter=14,
        )
    }


looks_forbidden = Experiment(
    path=HERE / "looks_forbidden.json",
    question="By which looks do two layers of attention copy what followed a word last time?",
    measure="free",
    scale=math.log(24),
    arms=arms,
    seeds=tuple(range(5)),
    widens=False,
    seconds=5.0,
)
