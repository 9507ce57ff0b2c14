"""Chapter 2: three scores at three widths, in a look-up of made-up pairs like chapter 4's."""

import math
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from transformer_book.experiments.cells import code_of
from transformer_book.experiments.experiment import Arm, Experiment, Make, Plan
from transformer_book.experiments.imports import Import
from transformer_book.experiments.learning import along
from transformer_book.experiments.runs import Measures

HERE, ME = Path(__file__).parent, "transformer_book.experiments.chapter_02.widths"
SYMBOLS, PAIRS, NUMBERS = 20, 8, 8
SCORES, WIDTHS = ("additive", "dot", "divided"), (16, 64, 256)


class LooksUp(nn.Module):
    """Says which number stands beside a symbol; queries and keys begin with variance 1."""

    def __init__(self, score: str, width: int):
        super().__init__()
        self.symbol, self.number = nn.Embedding(SYMBOLS, 64), nn.Embedding(NUMBERS, 16)
        self.W, self.U = (nn.Parameter(torch.randn(64, width) / 8) for _ in range(2))
        self.v = nn.Parameter(torch.randn(width) / math.sqrt(width))
        self.score = score
        self.output = nn.Linear(16, NUMBERS, bias=False)

    def forward(
        self, asked: Int[Tensor, "B 1"], symbols: Int[Tensor, "B S"], numbers: Int[Tensor, "B S"]
    ) -> Float[Tensor, "B numbers"]:
        s, h = self.symbol(asked) @ self.W, self.symbol(symbols) @ self.U
        if self.score == "additive":
            e = (s + h).tanh() @ self.v
        else:
            e = (s * h).sum(dim=-1) / (h.size(-1) ** 0.5 if self.score == "divided" else 1)
        return self.output((e.softmax(dim=-1)[:, None] @ self.number(numbers))[:, 0])


def pairs(g: torch.Generator, n: int) -> tuple[Tensor, ...]:
    """A symbol that is asked for, eight different ones, their numbers; and the answer."""
    symbols = torch.rand(n, SYMBOLS, generator=g).argsort(dim=-1)[:, :PAIRS]
    numbers = torch.randint(NUMBERS, (n, PAIRS), generator=g)
    place = torch.randint(PAIRS, (n, 1), generator=g)
    return symbols.gather(1, place), symbols, numbers, numbers.gather(1, place)[:, 0]


def learn(make: Make, plan: Plan) -> Iterable[tuple[int, Measures]]:
    """The share of 1,000 new questions that are answered rightly."""
    model = make()
    train = torch.Generator().manual_seed(plan.seed)
    *new, answers = pairs(torch.Generator().manual_seed(99 + plan.seed), 1000)

    def loss_of(step: int) -> Tensor:
        *given, right = pairs(train, 32)
        return cross_entropy(model(*given), right)

    def measure() -> Measures:
        return {"right": (model(*new).argmax(dim=-1) == answers).float().mean().item()}

    return along(loss_of, model.parameters(), measure, plan).items()


def arms() -> dict[str, Arm]:
    return {
        f"{score}, {width} numbers": Arm(
            make=partial(LooksUp, score, width),
            learn=learn,
            rates=(0.002, 0.005, 0.01),
            steps=(0, 200, 400, 800),
            code=code_of([], [Import(ME)]),
            chapter=2,
        )
        for score in SCORES
        for width in WIDTHS
    }


widths = Experiment(
    path=HERE / "widths.json",
    question="Which score learns a look-up, of narrow vectors and of wide ones?",
    measure="right",
    scale=1.0,
    arms=arms,
    seconds=5.0,
)
