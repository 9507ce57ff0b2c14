"""How a curve is measured: along one training, or at the ends of trainings of several lengths."""

from collections.abc import Callable, Iterable, Iterator

import torch
from torch import Tensor, nn

from transformer_book.descent import minimise
from transformer_book.experiments.experiment import Make, Plan
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


def one_for_each(
    make: Make, plan: Plan, train: Callable[[nn.Module, int], Measures]
) -> Iterator[tuple[int, Measures]]:
    """A new training for each of the plan's numbers of steps: ``train(model, n_steps)``.

    For a rate that falls to zero at the end, as it does in most chapters: halfway through such a
    training, a model is worse than one that was to stop there, and at its end every curve is flat.
    """
    for n_steps in plan.steps:
        yield n_steps, train(make(), n_steps)
