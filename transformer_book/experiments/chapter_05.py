"""Chapter 5: neighbours on a circle, by one head, many heads and thin heads.

The loop is the page's own. Arms whose names end with "8,000 steps" have four times its budget, and
a best rate of their own.
"""

from functools import partial
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from transformer.attention import attention_weights
from transformer_book.experiments import Arm, Make, Measures, Plan, chapter, experiment

CELLS = (
    *("circle-batch", "circle-model", "one-head", "train", "translator-model-heads"),
    *("split", "at-once-layer", "hidden"),
)
TWO, FOUR = (-1, 1), (-2, -1, 1, 2)  # the neighbours that are asked for
COMMON: dict[str, Any] = {
    "scale": 1.0,
    "rates": (0.0025, 0.005, 0.01, 0.02),
    "steps": (150, 2000),
    "seeds": (0, 1, 2, 3, 4),
}


def page() -> SimpleNamespace:
    """The chapter's circles, heads and loop."""
    return chapter(5, "imports*", definitions=CELLS).names()


def learn(model: nn.Module, plan: Plan, n_steps: int, *, places: tuple[int, ...]) -> Measures:
    """The share of right answers, of all questions and of each: "right", "right -1", "right 1".

    "best" and "worst" are those of the best and the worst question. A training of each length
    begins with the same start and the same circles, so that the shorter is the longer's beginning.
    """
    page().train(model, places, lr=plan.lr, n_steps=n_steps, seed=plan.seed)
    with torch.no_grad():
        return measured(model, places, 1000 + plan.seed)


def measured(model: nn.Module, places: tuple[int, ...], seed: int) -> Measures:
    """Measures on 300 new circles; with two neighbours also where the heads look."""
    exam, wanted = page().circle_batch(torch.Generator().manual_seed(seed), places, 300)
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


def circle(layer: nn.Module, n_places: int = 4) -> nn.Module:
    """The chapter's model around a layer."""
    return page().Circle(layer, n_places)


def heads_at_once(*options: Any) -> nn.Module:
    """The chapter's model with the heads of :class:`AtOnce`, which are asked for four places."""
    return circle(page().AtOnce(32, *options))


def without_w_o() -> nn.Module:
    layer = page().AtOnce(32, 4)
    layer.W_o = nn.Identity()
    return circle(layer)


class FullWidth(nn.Module):
    """Heads that are as wide as a word, added up as in Equation 5.4."""

    def __init__(self, n_heads: int):
        super().__init__()
        self.heads = nn.ModuleList(page().OneHead(32, 32) for _ in range(n_heads))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.stack([head(x, y) for head in self.heads]).sum(dim=0)


def turned(model: Any) -> nn.Module:
    """Its places begin at another symbol each time; a neighbour is still a neighbour."""

    def vectors(symbols: Tensor) -> Tensor:
        return model.symbol(symbols) + model.place.weight.roll(int(torch.randint(12, ())), 0)

    model.vectors = vectors
    return model


@experiment(
    "Does one head ever learn to name both neighbours?",
    measure="worst",
    judged_by=("right",),
    learn=partial(learn, places=TWO),
    **COMMON,
)
def one_head() -> dict[str, Make]:
    cell = page()
    return {
        "one head": lambda: circle(cell.OneHead(32, 32), 2),
        "one head, three times as wide": lambda: circle(cell.OneHead(32, 96), 2),
        "one head, hidden layer": lambda: cell.WithHiddenLayer(cell.OneHead(32, 32), 2),
        "two heads": lambda: circle(cell.AtOnce(32, 2), 2),
    }


@experiment(
    "How many heads answer four questions, given the steps that they need?",
    measure="right",
    learn=partial(learn, places=FOUR),
    **COMMON,
)
def heads() -> dict[str, Arm | Make]:
    cell = page()
    wrongly = partial(heads_at_once, 4, cell.split_wrong)
    return {
        **{f"heads {h}": partial(heads_at_once, h) for h in (1, 2, 4, 8, 16, 32)},
        "four heads, split wrongly": wrongly,
        "four heads without W_O": without_w_o,
        "one head, hidden layer": lambda: cell.WithHiddenLayer(cell.OneHead(32, 32), 4),
        "two heads as wide as a word": lambda: circle(FullWidth(2)),
        "four heads as wide as a word": lambda: circle(FullWidth(4)),
        "four heads, places turned": lambda: turned(heads_at_once(4)),
        "four heads, split wrongly, places turned": lambda: turned(wrongly()),
        "four heads, split wrongly, 8,000 steps": Arm(wrongly, steps=(8000,)),
    }
