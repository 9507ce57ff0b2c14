"""Chapter 6: which new distances a rotary head takes for its own, foretold by its clocks alone."""

from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import torch
from torch import Tensor, nn

from transformer.positional import RotaryPositions
from transformer_book.experiments.cells import chapter
from transformer_book.experiments.experiment import Arm, Experiment, Make, Plan
from transformer_book.experiments.runs import Measures

HERE, ME = Path(__file__).parent, "transformer_book.experiments.chapter_06.aliases"
CELLS = ("imports*", "train")
DEFINITIONS = ("copy-task", "copier", "accuracy", "window", "alike")
WIDTH, LENGTH, TRAINED = 32, 96, 24  # of a word, of a long sequence, of one in training
TRIED = [  # how far back, numbers of a head, base
    *product((3,), (8, 16, 32), (500, 10_000, 500_000)),
    *product((5, 8), (8, 16, 32), (10_000,)),
]


def predicted(cell: SimpleNamespace, back: int, d_k: int, base: int) -> Tensor:
    """The new distances, those first at which a head's clocks are most like ``back`` words back."""
    new = torch.tensor([d for d in range(1 - LENGTH, LENGTH) if abs(d) >= TRAINED])
    order = cell.alike(new + back, d_k, base).argsort(descending=True, stable=True)
    return new[order]


def learn(
    make: Make, plan: Plan, *, cell: SimpleNamespace, setting: tuple[int, int, int]
) -> Iterator[tuple[int, Measures]]:
    """Shares of right copies in sequences of 96, by what is hidden from the trained copier.

    "four", "eight" and "sixteen": the first of the predicted distances. "others": eight of the
    rest, the mean of three draws. "all others": all new ones but the eight. "near": all new ones.
    """
    back, ahead = setting[0], cell.ahead(LENGTH)
    order, is_near = predicted(cell, *setting), ahead.abs() < TRAINED
    drawn = torch.Generator().manual_seed(plan.seed)
    rest = order[8:]
    draws = [rest[torch.randperm(len(rest), generator=drawn)[:8]] for _ in range(3)]
    for n_steps in plan.steps:
        model = make()
        cell.train(model, lambda: cell.sequences(back=back), plan.lr, n_steps)

        def right(length: int = LENGTH, mask: Tensor | None = None, model=model) -> float:
            return cell.accuracy(model, length, mask, back).mean().item()

        def without(distances: Tensor, right=right) -> float:
            return right(mask=~torch.isin(ahead, distances))

        yield (
            n_steps,
            {
                "right": right(TRAINED),
                "nothing": right(),
                "four": without(order[:4]),
                "eight": without(order[:8]),
                "sixteen": without(order[:16]),
                "others": sum(map(without, draws)) / len(draws),
                "all others": right(mask=is_near | torch.isin(ahead, order[:8])),
                "near": right(mask=is_near),
            },
        )


def arm_of(back: int, d_k: int, base: int) -> str:
    """The name of a setting."""
    return f"{back} back, d_k = {d_k}, base {base:,}"


SETTINGS = {arm_of(*setting): setting for setting in TRIED}


def arms() -> dict[str, Arm]:
    cells = chapter(6, *CELLS, definitions=DEFINITIONS)
    cell = cells.names()
    return {
        name: Arm(
            make=partial(_copier, cell, d_k, base),
            learn=partial(learn, cell=cell, setting=(back, d_k, base)),
            rates=(0.01,),
            steps=(1000,),
            code=cells.code(ME),
            chapter=6,
            about={"back": back, "d_k": d_k, "base": base},
        )
        for name, (back, d_k, base) in SETTINGS.items()
    }


def _copier(cell: SimpleNamespace, d_k: int, base: int) -> nn.Module:
    return cell.Copier(RotaryPositions(LENGTH, d_k, theta=float(base)), n_heads=WIDTH // d_k)


aliases = Experiment(
    path=HERE / "aliases.json",
    question="Do a rotary head's clocks foretell which new distances lead it astray?",
    measure="eight",
    scale=1.0,
    arms=arms,
    widens=False,
    seconds=5.0,
)
