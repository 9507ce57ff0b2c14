"""How a curve is measured along one training, at a constant rate."""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from transformer_book.descent import minimise
from transformer_book.experiments.arms import Plan
from transformer_book.experiments.runs import Measures


def along(
    loss_of: Callable[[int], Tensor],
    parameters: Iterable[Tensor],
    measure: Callable[[], Measures],
    plan: Plan,
) -> dict[int, Measures]:
    """The chapters' :func:`~transformer_book.minimise` at the plan's constant rate, looked into.

    Each of the plan's steps is measured before the next one is made.
    """
    points: dict[int, Measures] = {}

    def look(step: int) -> None:
        if step in plan.steps:
            with torch.no_grad():
                points[step] = measure()

    def watched(step: int) -> Tensor:
        look(step)
        return loss_of(step)

    longest = max(plan.steps)
    minimise(watched, parameters, n_steps=longest, lr=plan.lr)
    look(longest)
    return points
