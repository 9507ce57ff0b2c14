"""Chapter 6: copying beyond the training length, and the translator, both trained for longer."""

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from transformer.positional import LearnedPositions, RotaryPositions, SinusoidalPositions
from transformer_book.experiments.cells import chapter
from transformer_book.experiments.experiment import Arm, Experiment, Make, Plan
from transformer_book.experiments.learning import along, one_for_each
from transformer_book.experiments.runs import Measures
from transformer_book.experiments.translator.teaching import taught

HERE, ME = Path(__file__).parent, "transformer_book.experiments.chapter_06"
CELLS = ("copy-task", "copier", "copier-training", "window")
TRANSLATORS = ("imports*", "translator-model*")
STEPS = (160, 320, 640, 1280, 2000)
LATE = (24, 48, 96)  # where sequences begin that begin late


def learn_to_translate(make: Make, plan: Plan) -> Iterable[tuple[int, Measures]]:
    """The share of sentences that are translated without a fault."""
    yield from one_for_each(make, plan, lambda model, n_steps: taught(model, plan, n_steps))


def learn(make: Make, plan: Plan, *, cell: SimpleNamespace) -> Iterable[tuple[int, Measures]]:
    """Shares of right copies: "right" at the training length, "beyond" it in longer sequences.

    "late": 24 symbols that begin at a later position; "window": 192 of which each sees 23 both
    ways.
    """
    model, train = make().to(cell.device), torch.Generator().manual_seed(plan.seed)

    def loss_of(step: int) -> Tensor:
        symbols, wanted = (each.to(cell.device) for each in cell.sequences(train, 32))
        return cross_entropy(model(symbols)[:, 3:].flatten(0, 1), wanted.flatten())

    def right(*given, **options) -> float:
        return cell.accuracy(model, *given, **options).mean().item()

    def measure() -> Measures:
        return {
            "right": right(),
            "beyond": cell.accuracy(model, 96)[21:].mean().item(),
            "late": sum(right(start=start) for start in LATE) / len(LATE),
            "window": right(192, cell.window(192)),
        }

    return along(loss_of, model.parameters(), measure, plan).items()


def length_arms() -> dict[str, Arm]:
    cells = chapter(6, "imports*", definitions=CELLS)
    cell = cells.names()
    positions: dict[str, Callable[[], nn.Module]] = {
        "sinusoids": lambda: SinusoidalPositions(256, 32),
        "learned": lambda: LearnedPositions(256, 32),
        "rotary": lambda: RotaryPositions(256, d_k=16),
    }
    return {
        name: Arm(
            make=partial(_copier, cell, kind),
            learn=partial(learn, cell=cell),
            rates=(0.0025, 0.005, 0.01, 0.02),
            steps=STEPS,
            code=cells.code(ME),
            chapter=6,
        )
        for name, kind in positions.items()
    }


def _copier(cell: SimpleNamespace, kind: Callable[[], nn.Module]) -> nn.Module:
    return cell.Copier(kind())


def translator_arms() -> dict[str, Arm]:
    arms = {}
    for name, number in (("chapter 5's", 5), ("with positions", 6)):
        cells = chapter(number, *TRANSLATORS)
        arms[name] = Arm(
            make=next(iter(cells.names().translators.values())),
            learn=learn_to_translate,
            rates=(0.002, 0.004, 0.008, 0.016),
            steps=(1000, 2000),
            code=cells.code(ME),
            chapter=6,
        )
    return arms


lengths = Experiment(
    path=HERE / "lengths.json",
    question="Does copying beyond the training length come with more training?",
    measure="beyond",
    scale=1.0,
    judged_by=("right",),
    arms=length_arms,
    seconds=8.0,
)
longer = Experiment(
    path=HERE / "longer.json",
    question="What do positions bring to one layer that is trained for longer?",
    measure="exact",
    scale=1.0,
    judged_by=("exact", "bleu"),
    arms=translator_arms,
    seconds=60.0,
)
