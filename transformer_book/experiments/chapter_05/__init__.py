"""Chapter 5: neighbours on a circle, by one head, many heads and thin heads.

The loop is the page's own. Arms whose names end with "8,000 steps" have four times its budget, and
a best rate of their own.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from transformer.attention import attention_weights
from transformer_book.experiments.cells import chapter
from transformer_book.experiments.experiment import Arm, Experiment, Make, Plan
from transformer_book.experiments.runs import Measures

HERE, ME = Path(__file__).parent, "transformer_book.experiments.chapter_05"
CELLS = (
    *("circle-batch", "circle-model", "one-head", "train", "translator-model-heads"),
    *("split", "at-once-layer", "hidden"),
)
TWO, FOUR = (-1, 1), (-2, -1, 1, 2)  # the neighbours that are asked for
N_HEADS = (1, 2, 4, 8, 16, 32)
SHORT, LONG = (150, 2000), (8000,)
LONGER = ", 8,000 steps"
RATES = (0.0025, 0.005, 0.01, 0.02)
SEEDS = (0, 1, 2, 3, 4)
Makes = dict[str, Make]


def learn(
    make: Callable[[], nn.Module], plan: Plan, *, cell: SimpleNamespace, places: tuple[int, ...]
) -> Iterator[tuple[int, Measures]]:
    """The share of right answers, of all questions and of each: "right", "right -1", "right 1".

    "best" and "worst" are those of the best and the worst question. A training of each length
    begins with the same start and the same circles, so that the shorter is the longer's beginning.
    """
    for n_steps in plan.steps:
        torch.manual_seed(plan.seed)
        model = make()
        cell.train(model, places, lr=plan.lr, n_steps=n_steps, seed=plan.seed)
        with torch.no_grad():
            yield n_steps, measured(model, cell, places, 1000 + plan.seed)


def measured(
    model: nn.Module, cell: SimpleNamespace, places: tuple[int, ...], seed: int
) -> Measures:
    """On 300 new circles; with two neighbours also where the heads look."""
    exam, wanted = cell.circle_batch(torch.Generator().manual_seed(seed), places, 300)
    right = (model(exam).argmax(dim=-1) == wanted).float().mean(dim=(0, 1))
    by_place = {f"right {place}": x for place, x in zip(places, right.tolist(), strict=True)}
    ends = {"best": right.max().item(), "worst": right.min().item()}
    looks = looks_of(model, exam, right) if places == TWO else {}
    return {"right": right.mean().item()} | by_place | ends | looks


def looks_of(model: Any, exam: Tensor, right: Tensor) -> Measures:
    """Mean weights on neighbours, of a model of one or more heads.

    Of one head: "on named" and "on missed" are those on the neighbour that it names better and on
    the other, and "moves" is how much they change with the symbols. Of several: "own" is the least
    weight that a head has on the neighbour that it looks at most, "shared" is 1 where two heads
    have the same favourite.
    """
    layer = model.layer
    x, here = model.symbol(exam) + model.place.weight, torch.arange(12)
    n_heads = getattr(layer, "n_heads", 1)
    queries, keys = (W(x).chunk(n_heads, dim=-1) for W in (layer.W_q, layer.W_k))
    weights = torch.stack([attention_weights(q, k) for q, k in zip(queries, keys, strict=True)])
    on = torch.stack([weights[:, :, here, (here + place) % 12] for place in TWO])  # (2, h, B, 12)
    mean = on.mean(dim=(2, 3))  # (2, h)
    if n_heads == 1:
        named = int(right.argmax())
        moves = on[:, 0].std(dim=1).mean(dim=-1).max().item()
        return {
            "on named": mean[named, 0].item(),
            "on missed": mean[1 - named, 0].item(),
            "moves": moves,
        }
    favourites = mean.argmax(dim=0).tolist()
    shared = float(len(set(favourites)) < len(favourites))
    return {"own": mean.amax(dim=0).min().item(), "shared": shared}


def _arms(
    cells_of: Callable[[SimpleNamespace], Makes],
    places: tuple[int, ...],
    longer: tuple[str, ...],
) -> dict[str, Arm]:
    """``longer``: which of the models are trained for 8,000 steps, too."""
    cells = chapter(5, "imports*", definitions=CELLS)
    makes = cells_of(cells.names())
    budgets: dict[str, tuple[Make, tuple[int, ...]]] = {
        name: (make, SHORT) for name, make in makes.items()
    }
    budgets |= {name + LONGER: (makes[name], LONG) for name in longer}
    return {
        name: Arm(
            make=make,
            learn=partial(learn, cell=cells.names(), places=places),
            rates=RATES,
            steps=steps,
            code=cells.code(ME),
            chapter=5,
        )
        for name, (make, steps) in budgets.items()
    }


def _by_two(cell: SimpleNamespace) -> Makes:
    return {
        "one head": lambda: cell.Circle(cell.OneHead(32, 32), 2),
        "one head, three times as wide": lambda: cell.Circle(cell.OneHead(32, 96), 2),
        "one head, hidden layer": lambda: cell.WithHiddenLayer(cell.OneHead(32, 32), 2),
        "two heads": lambda: cell.Circle(cell.AtOnce(32, 2), 2),
    }


def _by_four(cell: SimpleNamespace) -> Makes:
    makes: Makes = {f"heads {h}": partial(_circle, cell, h) for h in N_HEADS}
    makes["four heads, split wrongly"] = lambda: cell.Circle(
        cell.AtOnce(32, 4, cell.split_wrong), 4
    )
    makes["four heads without W_O"] = lambda: cell.Circle(without_w_o(cell.AtOnce(32, 4)), 4)
    makes["one head, hidden layer"] = lambda: cell.WithHiddenLayer(cell.OneHead(32, 32), 4)
    for name, n in {"two": 2, "four": 4}.items():
        makes[f"{name} heads as wide as a word"] = partial(_full_width, cell, n)
    makes["four heads, places turned"] = lambda: turned(cell.Circle(cell.AtOnce(32, 4), 4))
    makes["four heads, split wrongly, places turned"] = lambda: turned(
        cell.Circle(cell.AtOnce(32, 4, cell.split_wrong), 4)
    )
    return makes


def one_head_arms() -> dict[str, Arm]:
    return _arms(_by_two, TWO, ())


def head_arms() -> dict[str, Arm]:
    return _arms(_by_four, FOUR, ("four heads, split wrongly",))


def _circle(cell: SimpleNamespace, n_heads: int) -> nn.Module:
    return cell.Circle(cell.AtOnce(32, n_heads), 4)


def _full_width(cell: SimpleNamespace, n_heads: int) -> nn.Module:
    return cell.Circle(FullWidth(cell, n_heads), 4)


def without_w_o(layer: nn.Module) -> nn.Module:
    layer.W_o = nn.Identity()
    return layer


class FullWidth(nn.Module):
    """Heads that are as wide as a word, added up as in Equation 5.4."""

    def __init__(self, cell: SimpleNamespace, n_heads: int):
        super().__init__()
        self.heads = nn.ModuleList(cell.OneHead(32, 32) for _ in range(n_heads))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.stack([head(x, y) for head in self.heads]).sum(dim=0)


def turned(model: Any) -> nn.Module:
    """Its places begin at another symbol each time; a neighbour is still a neighbour."""

    def vectors(symbols: Tensor) -> Tensor:
        return model.symbol(symbols) + model.place.weight.roll(int(torch.randint(12, ())), 0)

    model.vectors = vectors
    return model


one_head = Experiment(
    path=HERE / "one_head.json",
    question="Does one head ever learn to name both neighbours?",
    measure="worst",
    scale=1.0,
    judged_by=("right",),
    arms=one_head_arms,
    seeds=SEEDS,
    seconds=8.0,
)
heads = Experiment(
    path=HERE / "heads.json",
    question="How many heads answer four questions, given the steps that they need?",
    measure="right",
    scale=1.0,
    arms=head_arms,
    seeds=SEEDS,
    seconds=8.0,
)
