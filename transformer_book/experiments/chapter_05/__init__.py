"""Chapter 5: neighbours on a circle, by one head, many heads and thin heads, for 2,000 steps."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from transformer_book.experiments.cells import chapter
from transformer_book.experiments.experiment import Arm, Experiment, Make, Plan
from transformer_book.experiments.learning import along
from transformer_book.experiments.runs import Measures

HERE, ME = Path(__file__).parent, "transformer_book.experiments.chapter_05"
CELLS = (
    *("circle-batch", "circle-model", "one-head", "translator-model-heads"),
    *("split", "leak", "at-once-layer", "sliced", "hidden"),
)
TWO, FOUR = (-1, 1), (-2, -1, 1, 2)  # the neighbours that are asked for
N_HEADS = (1, 2, 4, 8, 16, 32)
STEPS = (0, 150, 300, 600, 1000, 1300, 2000)
RATES = (0.0025, 0.005, 0.01, 0.02)


def learn(
    make: Make, plan: Plan, *, cell: SimpleNamespace, places: tuple[int, ...]
) -> Iterable[tuple[int, Measures]]:
    """The share of right answers, of all questions and of each: "right", "right -1", "right 1".

    "best" and "worst" are those of the best and the worst question.
    """
    model, train = make(), torch.Generator().manual_seed(plan.seed)
    exam, wanted = cell.circle_batch(torch.Generator().manual_seed(1000 + plan.seed), places, 300)

    def loss_of(step: int) -> Tensor:
        symbols, asked = cell.circle_batch(train, places)
        return cross_entropy(model(symbols).flatten(0, -2), asked.flatten())

    def measure() -> Measures:
        right = (model(exam).argmax(dim=-1) == wanted).float().mean(dim=(0, 1))
        by_place = {f"right {place}": x for place, x in zip(places, right.tolist(), strict=True)}
        ends = {"best": right.max().item(), "worst": right.min().item()}
        return {"right": right.mean().item()} | by_place | ends

    return along(loss_of, model.parameters(), measure, plan).items()


def _arms(places: tuple[int, ...], makes: Mapping[str, Callable[[], nn.Module]]) -> dict[str, Arm]:
    cells = chapter(5, "imports*", definitions=CELLS)
    return {
        name: Arm(
            make=make,
            learn=partial(learn, cell=cells.names(), places=places),
            rates=RATES,
            steps=STEPS,
            code=cells.code(ME),
            chapter=5,
        )
        for name, make in makes.items()
    }


def one_head_arms() -> dict[str, Arm]:
    cell = chapter(5, "imports*", definitions=CELLS).names()
    return _arms(
        TWO,
        {
            "one head": lambda: cell.Circle(cell.OneHead(32, 32), 2),
            "one head, three times as wide": lambda: cell.Circle(cell.OneHead(32, 96), 2),
            "one head, hidden layer": lambda: cell.WithHiddenLayer(cell.OneHead(32, 32), 2),
            "two heads": lambda: cell.Circle(cell.AtOnce(2), 2),
        },
    )


def head_arms() -> dict[str, Arm]:
    cell = chapter(5, "imports*", definitions=CELLS).names()
    makes: dict[str, Make] = {f"heads {h}": partial(_circle, cell, h) for h in N_HEADS}
    makes["four heads, split wrongly"] = lambda: cell.Circle(cell.AtOnce(4, cell.split_wrong), 4)
    makes["heads 32, two numbers to look with"] = lambda: cell.Circle(Uneven(cell, look=2), 4)
    makes["heads 32, two numbers to bring"] = lambda: cell.Circle(Uneven(cell, bring=2), 4)
    makes["one head, hidden layer"] = lambda: cell.WithHiddenLayer(cell.OneHead(32, 32), 4)
    makes["four heads of a slice each"] = lambda: cell.Circle(cell.Sliced(), 4)
    makes["four heads of a slice, a quarter of the weights"] = lambda: cell.Circle(Thin(cell), 4)
    return _arms(FOUR, makes)


def _circle(cell: SimpleNamespace, n_heads: int) -> nn.Module:
    return cell.Circle(cell.AtOnce(n_heads), 4)


class Thin(nn.Module):
    """Four heads that read 8 of 32 numbers each, and are 8 wide: a quarter of the weights."""

    def __init__(self, cell: SimpleNamespace):
        super().__init__()
        self.parts = nn.ModuleList(cell.OneHead(8, 8) for _ in range(4))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        slices = x.chunk(4, dim=-1)
        heads = [part(s, s) for part, s in zip(self.parts, slices, strict=True)]
        return torch.cat(heads, dim=-1)


class Uneven(nn.Module):
    """32 heads of one number each, but for queries and keys of ``look``, or values of ``bring``."""

    def __init__(self, cell: SimpleNamespace, look: int = 1, bring: int = 1):
        super().__init__()
        self.cell = cell
        self.W_q, self.W_k = (nn.Linear(32, 32 * look) for _ in range(2))
        self.W_v, self.W_o = nn.Linear(32, 32 * bring), nn.Linear(32 * bring, 32)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        q, k, v = (self.cell.split(z, 32) for z in (self.W_q(x), self.W_k(y), self.W_v(y)))
        heads = self.cell.attention(q, k, v)
        return self.W_o(heads.transpose(1, 2).flatten(-2))


one_head = Experiment(
    path=HERE / "one_head.json",
    question="Does one head ever learn to name both neighbours?",
    measure="worst",
    scale=1.0,
    judged_by=("right",),
    arms=one_head_arms,
    seconds=8.0,
)
heads = Experiment(
    path=HERE / "heads.json",
    question="How many heads answer four questions, given the steps that they need?",
    measure="right",
    scale=1.0,
    arms=head_arms,
    seconds=8.0,
)
