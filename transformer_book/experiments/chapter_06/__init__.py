"""Chapter 6: copying beyond the training length, and why it fails; a translator trained longer."""

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import torch
from torch import nn

from transformer.positional import (
    LearnedPositions,
    Positions,
    RotaryPositions,
    SinusoidalPositions,
)
from transformer_book.experiments.cells import chapter
from transformer_book.experiments.experiment import Arm, Experiment, Make, Plan
from transformer_book.experiments.learning import one_for_each
from transformer_book.experiments.runs import Measures
from transformer_book.experiments.translator.teaching import taught

HERE, ME = Path(__file__).parent, "transformer_book.experiments.chapter_06"
CELLS = ("copy-task", "copier", "accuracy", "window")
TURNS = ("turn-part", "only-turns", "solution-6-5")
TRANSLATORS = ("imports*", "translator-model*")
STEPS = (160, 1280, 2000)
LATE = (24, 48, 72)  # where sequences begin that begin late: all positions up to 95
UNLUCKY = (54, 60, -60, -66)  # how far ahead a key is; negative: back


def learn_to_translate(make: Make, plan: Plan) -> Iterable[tuple[int, Measures]]:
    """The share of sentences that are translated without a fault."""
    yield from one_for_each(make, plan, lambda model, n_steps: taught(model, plan, n_steps))


def learn(make: Make, plan: Plan, *, cell: SimpleNamespace) -> Iterable[tuple[int, Measures]]:
    """Shares of right copies: "right" at the training length, "beyond" it in longer sequences.

    "window": in sequences of 192 symbols of which each sees 23 both ways.
    """
    for n_steps in plan.steps:
        model = make()
        cell.train(model, cell.sequences, plan.lr, n_steps)
        yield (
            n_steps,
            {
                "right": cell.accuracy(model).mean().item(),
                "beyond": cell.accuracy(model, 96)[21:].mean().item(),
                "window": cell.in_window(model, 192).item(),
            },
        )


def learn_and_hide(
    make: Make, plan: Plan, *, cell: SimpleNamespace
) -> Iterable[tuple[int, Measures]]:
    """The same in sequences of 96, and what hidden distances change.

    "late": of 24 symbols that begin at a later position, without keys before them.
    "flat top": from position 42 to 59. "no four", "only four": without the unlucky ones, and with
    these as the only new distances; "no others": without as many others; "to 50": without those
    over 50.
    """
    ahead, unlucky = cell.ahead(96), torch.tensor(UNLUCKY)
    for n_steps in plan.steps:
        model = make()
        cell.train(model, cell.sequences, plan.lr, n_steps)

        def right(*given: object, model: nn.Module = model) -> float:
            return cell.accuracy(model, *given).mean().item()

        yield (
            n_steps,
            {
                "right": right(),
                "late": late(cell, model),
                "beyond": cell.accuracy(model, 96)[21:].mean().item(),
                "at 96": right(96),
                "flat top": cell.accuracy(model, 96)[39:57].mean().item(),
                "no four": right(96, ~torch.isin(ahead, unlucky)),
                "only four": right(96, (ahead.abs() < 24) | torch.isin(ahead, unlucky)),
                "no others": right(96, ~torch.isin(ahead.abs(), torch.tensor([45, 75]))),
                "to 50": right(96, ahead.abs() <= 50),
            },
        )


def learn_and_turn(
    make: Make, plan: Plan, *, cell: SimpleNamespace
) -> Iterable[tuple[int, Measures]]:
    """What of the map between places is turns, and what sinusoids do with these alone.

    "share": of its squared numbers. "points", "turns point": the share of rows from 24 on that fit
    the key three back best, by the map and by its turns. "late" and "beyond" as above; "turned":
    with the turns alone. "eight": late, with rows cut to the first eight directions of training.
    """
    for n_steps in plan.steps:
        model = make()
        cell.train(model, cell.sequences, plan.lr, n_steps)
        model.eval()
        maps, turned = cell.place_maps(model), cell.only_turns(model)
        turns = cell.turn_part(maps)
        found = {
            "share": (turns.square().sum() / maps.square().sum()).item(),
            "points": cell.points_back(maps)[24:].mean().item(),
            "turns point": cell.points_back(turns)[24:].mean().item(),
            "late": late(cell, model),
            "turned late": late(cell, turned),
            "beyond": cell.accuracy(model, 96)[21:].mean().item(),
            "turned beyond": cell.accuracy(turned, 96)[21:].mean().item(),
        }
        table = model.get_buffer("positions.table")
        known = torch.linalg.svd(table[:24]).Vh[:8]
        table.copy_(table @ known.T @ known)
        yield n_steps, found | {"eight": late(cell, model)}


def late(cell: SimpleNamespace, model: nn.Module) -> float:
    """The share that is right of 24 symbols that begin late, the mean over all starts."""
    return sum(cell.begun_late(model, start).item() for start in LATE) / len(LATE)


def arms_of(
    *kinds: str,
    learn: Callable[..., Iterable[tuple[int, Measures]]],
    steps: tuple[int, ...],
    rates: tuple[float, ...] = (0.01,),
    definitions: tuple[str, ...] = CELLS,
) -> dict[str, Arm]:
    """The page's copier with each of these kinds of positions."""
    cells = chapter(6, "imports*", "train", definitions=definitions)
    cell = cells.names()
    makes: dict[str, Callable[[], nn.Module]] = {
        "no positions": Positions,
        "sinusoids": lambda: SinusoidalPositions(256, 32),
        "sinusoids, random starts": lambda: cell.Somewhere(256, 32),
        "learned": lambda: LearnedPositions(256, 32),
        "rotary": lambda: RotaryPositions(256, d_k=16),
    }
    return {
        kind: Arm(
            make=partial(_copier, cell, makes[kind]),
            learn=partial(learn, cell=cell),
            rates=rates,
            steps=steps,
            code=cells.code(ME),
            chapter=6,
        )
        for kind in kinds
    }


def length_arms() -> dict[str, Arm]:
    rates = (0.0025, 0.005, 0.01, 0.02)
    return arms_of("sinusoids", "learned", "rotary", learn=learn, steps=STEPS, rates=rates)


def short_arms() -> dict[str, Arm]:
    kinds = ("no positions", "sinusoids", "learned", "rotary")
    return arms_of(*kinds, learn=learn_and_hide, steps=(160,))


def turn_arms() -> dict[str, Arm]:
    kinds, cells = ("sinusoids", "sinusoids, random starts"), (*CELLS, *TURNS)
    return arms_of(*kinds, learn=learn_and_turn, steps=(160, 2000), definitions=cells)


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
    seconds=12.0,
)
short = Experiment(
    path=HERE / "short.json",
    question="Which new distances lead rotary copiers astray that are trained as on the page?",
    measure="at 96",
    scale=1.0,
    arms=short_arms,
    seeds=(0, 1, 2, 3, 4),
    widens=False,
    seconds=4.0,
)
by_turns = Experiment(
    path=HERE / "by_turns.json",
    question="Do trained sinusoids step by Equation 6.3, and what is in their way beyond training?",
    measure="late",
    scale=1.0,
    arms=turn_arms,
    seeds=(0, 1, 2, 3, 4),
    widens=False,
    seconds=6.0,
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
