"""Chapter 6: copying beyond the training length, and why it fails; who sees whom; masks.

Which new distances a rotary head takes for its own is foretold by its clocks alone. A translator
with positions is trained for longer, and without its causal mask.
"""

from collections.abc import Callable
from functools import partial
from itertools import product
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from transformer.masks import causal_mask
from transformer.positional import (
    LearnedPositions,
    Positions,
    RotaryPositions,
    SinusoidalPositions,
)
from transformer_book.experiments import Arm, Make, Measures, Plan, chapter, experiment
from transformer_book.experiments.translator import judge, stored, train_translator
from transformer_book.experiments.translator.teaching import taught

COPYING = ("copy-task", "copier", "accuracy", "window", "alike")
TURNS = ("turn-part", "only-turns", "solution-6-5")
TRANSLATORS = ("imports*", "translator-model*")
LATE = (24, 48, 72)  # where sequences begin that begin late: all positions up to 95
UNLUCKY = (54, 60, -60, -66)  # how far ahead a key is; negative: back


def page() -> SimpleNamespace:
    """The chapter's copier, its task and its training."""
    return chapter(6, "imports*", "train", definitions=COPYING + TURNS).names()


# Who sees whom, without positions


def reading_page() -> SimpleNamespace:
    """The chapter's reader and its 56 sentences."""
    return chapter(6, "imports*", "reader", "train", "who-sees").names()


def learn_who_sees(model: Any, plan: Plan, n_steps: int) -> Measures:
    """The share of the 56 sentences of which the model says who sees."""
    cell = reading_page()
    seen_by = cell.animals[:, :1]
    cell.train(model, lambda: (cell.sentences, seen_by), plan.lr, n_steps)
    answers = model(cell.sentences).argmax(dim=-1)
    return {"right": (answers == seen_by).float().mean().item()}


@experiment(
    "Who sees whom, without positions?",
    measure="right",
    scale=1.0,
    learn=learn_who_sees,
    rates=(0.01,),
    steps=(120,),
    widens=False,
)
def who_sees() -> dict[str, Make]:
    Reader, mask = reading_page().Reader, causal_mask(4)
    return {  # layers, the mask, and which word answers
        "no mask": partial(Reader, 1, None, 1),
        "causal mask": partial(Reader, 1, mask, 1),
        "the full stop": partial(Reader, 1, mask, 3),
        "the full stop, two layers": partial(Reader, 2, mask, 3),
        "two layers, no mask": partial(Reader, 2, None, 3),
    }


# Copying what stands three places back


def copiers(*kinds: str) -> dict[str, Make]:
    """The page's copier with each of these kinds of positions."""
    cell = page()
    makes: dict[str, Callable[[], nn.Module]] = {
        "no positions": Positions,
        "sinusoids": lambda: SinusoidalPositions(256, 32),
        "sinusoids, random starts": lambda: cell.Somewhere(256, 32),
        "learned": lambda: LearnedPositions(256, 32),
        "rotary": lambda: RotaryPositions(256, d_k=16),
    }
    return {kind: partial(_copier, makes[kind]) for kind in kinds}


def _copier(positions: Callable[[], nn.Module]) -> nn.Module:
    return page().Copier(positions())


def beyond(model: Any) -> float:
    """The share of right copies beyond the training length, in longer sequences."""
    return page().accuracy(model, 96)[21:].mean().item()


def late(model: Any) -> float:
    """The share that is right of 24 symbols that begin late, the mean over all starts."""
    return sum(page().begun_late(model, start).item() for start in LATE) / len(LATE)


def learn_to_copy(model: Any, plan: Plan, n_steps: int) -> Measures:
    """Shares of right copies: "right" at the training length, "beyond" it in longer sequences.

    "window": in sequences of 192 symbols of which each sees 23 both ways.
    """
    cell = page()
    cell.train(model, cell.sequences, plan.lr, n_steps)
    return {
        "right": cell.accuracy(model).mean().item(),
        "beyond": beyond(model),
        "window": cell.in_window(model, 192).item(),
    }


@experiment(
    "Does copying beyond the training length come with more training?",
    measure="beyond",
    scale=1.0,
    judged_by=("right",),
    learn=learn_to_copy,
    rates=(0.0025, 0.005, 0.01, 0.02),
    steps=(160, 1280, 2000),
)
def lengths() -> dict[str, Make]:
    return copiers("sinusoids", "learned", "rotary")


def learn_and_hide(model: Any, plan: Plan, n_steps: int) -> Measures:
    """Shares of right copies in sequences of 96, and what hidden distances change.

    "late": of 24 symbols that begin at a later position, without keys before them.
    "flat top": from position 42 to 59. "no four", "only four": without the unlucky ones, and with
    these as the only new distances; "no others": without as many others; "to 50": without those
    over 50.
    """
    cell = page()
    ahead, unlucky = cell.ahead(96), torch.tensor(UNLUCKY)
    cell.train(model, cell.sequences, plan.lr, n_steps)

    def right(*given: object) -> float:
        return cell.accuracy(model, *given).mean().item()

    return {
        "right": right(),
        "late": late(model),
        "beyond": beyond(model),
        "at 96": right(96),
        "flat top": cell.accuracy(model, 96)[39:57].mean().item(),
        "no four": right(96, ~torch.isin(ahead, unlucky)),
        "only four": right(96, (ahead.abs() < 24) | torch.isin(ahead, unlucky)),
        "no others": right(96, ~torch.isin(ahead.abs(), torch.tensor([45, 75]))),
        "to 50": right(96, ahead.abs() <= 50),
    }


@experiment(
    "Which new distances lead rotary copiers astray that are trained as on the page?",
    measure="at 96",
    scale=1.0,
    learn=learn_and_hide,
    rates=(0.01,),
    steps=(160,),
    seeds=(0, 1, 2, 3, 4),
    widens=False,
)
def short() -> dict[str, Make]:
    return copiers("no positions", "sinusoids", "learned", "rotary")


def learn_and_turn(model: Any, plan: Plan, n_steps: int) -> Measures:
    """What of the map between places is turns, and what sinusoids do with these alone.

    "share": of its squared numbers. "points", "turns point": the share of rows from 24 on that fit
    the key three back best, by the map and by its turns. "late" and "beyond" as above; "turned":
    with the turns alone. "eight": late, with rows cut to the first eight directions of training.
    """
    cell = page()
    cell.train(model, cell.sequences, plan.lr, n_steps)
    model.eval()
    maps, turned = cell.place_maps(model), cell.only_turns(model)
    turns = cell.turn_part(maps)
    found = {
        "share": (turns.square().sum() / maps.square().sum()).item(),
        "points": cell.points_back(maps)[24:].mean().item(),
        "turns point": cell.points_back(turns)[24:].mean().item(),
        "late": late(model),
        "turned late": late(turned),
        "beyond": beyond(model),
        "turned beyond": beyond(turned),
    }
    table = model.get_buffer("positions.table")
    known = torch.linalg.svd(table[:24]).Vh[:8]
    table.copy_(table @ known.T @ known)
    return found | {"eight": late(model)}


@experiment(
    "Do trained sinusoids step by Equation 6.3, and what is in their way beyond training?",
    measure="late",
    scale=1.0,
    learn=learn_and_turn,
    rates=(0.01,),
    steps=(160, 2000),
    seeds=(0, 1, 2, 3, 4),
    widens=False,
)
def by_turns() -> dict[str, Make]:
    return copiers("sinusoids", "sinusoids, random starts")


# The distances that a rotary head's clocks foretell

WIDTH, LENGTH, TRAINED = 32, 96, 24  # of a word, of a long sequence, of one in training
TRIED = [  # how far back, numbers of a head, base
    *product((3,), (8, 16, 32), (500, 10_000, 500_000)),
    *product((5, 8), (8, 16, 32), (10_000,)),
]
SETTINGS = {
    f"{back} back, d_k = {d_k}, base {base:,}": (back, d_k, base) for back, d_k, base in TRIED
}


def predicted(back: int, d_k: int, base: int) -> Tensor:
    """The new distances, those first at which a head's clocks are most like ``back`` words back."""
    new = torch.tensor([d for d in range(1 - LENGTH, LENGTH) if abs(d) >= TRAINED])
    order = page().alike(new + back, d_k, base).argsort(descending=True, stable=True)
    return new[order]


def learn_and_mistake(
    model: Any, plan: Plan, n_steps: int, *, setting: tuple[int, int, int]
) -> Measures:
    """Shares of right copies in sequences of 96, by what is hidden from the trained copier.

    "four", "eight" and "sixteen": the first of the predicted distances. "others": eight of the
    rest, the mean of three draws. "all others": all new ones but the eight. "near": all new ones.
    """
    cell, back = page(), setting[0]
    ahead, order = cell.ahead(LENGTH), predicted(*setting)
    is_near = ahead.abs() < TRAINED
    drawn = torch.Generator().manual_seed(plan.seed)
    rest = order[8:]
    draws = [rest[torch.randperm(len(rest), generator=drawn)[:8]] for _ in range(3)]
    cell.train(model, lambda: cell.sequences(back=back), plan.lr, n_steps)

    def right(length: int = LENGTH, mask: Tensor | None = None) -> float:
        return cell.accuracy(model, length, mask, back).mean().item()

    def without(distances: Tensor) -> float:
        return right(mask=~torch.isin(ahead, distances))

    return {
        "right": right(TRAINED),
        "nothing": right(),
        "four": without(order[:4]),
        "eight": without(order[:8]),
        "sixteen": without(order[:16]),
        "others": sum(map(without, draws)) / len(draws),
        "all others": right(mask=is_near | torch.isin(ahead, order[:8])),
        "near": right(mask=is_near),
    }


def _with_clocks(d_k: int, base: int) -> nn.Module:
    return page().Copier(RotaryPositions(LENGTH, d_k, theta=float(base)), n_heads=WIDTH // d_k)


@experiment(
    "Do a rotary head's clocks foretell which new distances lead it astray?",
    measure="eight",
    scale=1.0,
    rates=(0.01,),
    steps=(1000,),
    widens=False,
)
def aliases() -> dict[str, Arm]:
    page()
    return {
        name: Arm(
            partial(_with_clocks, d_k, base),
            learn=partial(learn_and_mistake, setting=(back, d_k, base)),
            about={"back": back, "d_k": d_k, "base": base},
        )
        for name, (back, d_k, base) in SETTINGS.items()
    }


# The translator


@experiment(
    "What do positions bring to one layer that is trained for longer?",
    measure="exact",
    scale=1.0,
    judged_by=("exact", "bleu"),
    learn=taught,
    rates=(0.002, 0.004, 0.008, 0.016),
    steps=(1000, 2000),
)
def longer() -> dict[str, Make]:
    translators = {
        name: chapter(number, *TRANSLATORS).names().translators
        for name, number in (("chapter 5's", 5), ("with positions", 6))
    }
    return {name: next(iter(makes.values())) for name, makes in translators.items()}


def learn_with_leak(model: nn.Module, plan: Plan, n_steps: int) -> Measures:
    """The mean training loss of the last 50 steps, and the share of sentences that are right."""
    last = train_translator(model, lr=plan.lr, seed=plan.seed, n_steps=n_steps)[-50:]
    return {"loss": sum(last) / len(last), "exact": judge(model).exact}


@experiment(
    "Is a translator with positions better without its causal mask?",
    measure="loss",
    lower_is_better=True,
    learn=learn_with_leak,
    steps=(300, 800, 2000),
    widens=False,
)
def leak() -> dict[str, Arm]:
    Translator, rates = chapter(6, *TRANSLATORS).names().Translator, (stored("positions").lr,)
    return {
        "mask": Arm(partial(Translator, causal=True), rates=rates),
        "no mask": Arm(partial(Translator, causal=False), rates=rates),
    }
