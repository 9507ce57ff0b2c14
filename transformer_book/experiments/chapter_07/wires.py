"""Chapter 7: eight layers that only add, only normalise, or do neither, trained for longer."""

import math
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import torch
from torch import nn

from transformer_book.experiments.chapter_07 import WARM_UP, Wire, learn, of_the_page, stack
from transformer_book.experiments.experiment import Arm, Experiment

HERE, ME = Path(__file__).parent, "transformer_book.experiments.chapter_07.wires"
STEPS = (2000,)


def hand_on(model: nn.Module) -> nn.Module:
    """``model``, whose sublayers now start by handing on what they get, nearly unchanged.

    Each matrix is the identity and a tenth of what it was; the feed-forward network makes of each
    number its positive and its negative part, and joins them again.
    """
    one = torch.eye(16)
    both = torch.cat([one, -one])  # (32, 16): ReLU(x) and ReLU(-x)
    with torch.no_grad():
        for attend, feed_forward in zip(
            model.sublayers[::2],  # type: ignore[index]
            model.sublayers[1::2],  # type: ignore[index]
            strict=True,
        ):
            attend.W_qkv.weight.mul_(0.1).add_(one.repeat(3, 1))
            attend.W_o.weight.mul_(0.1).add_(one)
            feed_forward[0].weight.mul_(0.1).add_(both)
            feed_forward[-1].weight.mul_(0.1).add_(both.T)
    return model


def _handing_on(cell: SimpleNamespace, wire: Wire) -> nn.Module:
    return hand_on(stack(cell, wire))


def _plain(rates: tuple[float, ...]) -> tuple[SimpleNamespace, Arm]:
    """What the page's cells leave, and the plain arm, from which the others differ in one thing."""
    cells = of_the_page()
    cell = cells.names()
    return cell, Arm(
        make=partial(stack, cell, cell.plain),
        learn=partial(learn, cell=cell, warm_up=WARM_UP),
        rates=rates,
        steps=STEPS,
        code=cells.code(ME),
        chapter=7,
    )


def arms() -> dict[str, Arm]:
    cell, plain = _plain((0.001, 0.003, 0.01))
    return {
        "plain": plain,
        "norm only": replace(plain, make=partial(stack, cell, cell.norm_only)),
        "add": replace(plain, make=partial(stack, cell, cell.add)),
    }


def arms_handing_on() -> dict[str, Arm]:
    cell, plain = _plain((0.001,))
    return {
        "plain": replace(plain, make=partial(_handing_on, cell, cell.plain)),
        "norm only": replace(plain, make=partial(_handing_on, cell, cell.norm_only)),
    }


wires = Experiment(
    path=HERE / "wires.json",
    question="Do eight layers learn without addition, or without a norm, given more steps?",
    measure="loss",
    scale=math.log(6),
    lower_is_better=True,
    arms=arms,
    tuning_seeds=(100, 101, 102),  # at too high a rate addition alone overflows in some runs only
    seconds=20.0,
)

handing_on = replace(
    wires,
    path=HERE / "handing_on.json",
    question="Do they learn more without addition if they start by handing on, at one rate?",
    arms=arms_handing_on,
    seeds=tuple(range(6)),
    widens=False,
)
