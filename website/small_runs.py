"""What chapter 9's own loop does with its small translator at many rates, for its living figure.

``python -m website runs`` writes ``parts/living/small_runs.js``, in four minutes. It is wanted when
the chapter's loop or translator changes; ``tests/site/test_living.py`` says so.
"""

import math
from collections.abc import Iterator
from typing import Any

import torch

from transformer_book.notebooks import chapter_path
from website import ROOT
from website.measured import MEASURED, array, line, names_of

CHAPTER = chapter_path(9)
CELLS = ("imports", "counts", "small", "bucketed", "loops")
NORMS = ("pre", "post")
WARM_UPS = (0, 20, 50, 100)
RATES = (0.00008, 0.0008, 0.002, 0.004, 0.008, 0.016, 0.032, 0.08, 0.8)
N_SEEDS, N_STEPS, BLOCK = 3, 100, 10
SCRIPT = ROOT / "website" / "parts" / "living" / "small_runs.js"
HEAD = """\
// Written by `python -m website runs`: chapter 9's own loop, its small translator, 100 steps.
// For each warm-up and each highest rate, in this order, three rows, one for each seed: the mean
// losses of ten steps each, from the first to the last, in nats a word.
"""


def write_runs() -> int:
    """Trains all and writes the module."""
    names = names_of(CHAPTER, CELLS)
    given = {"WARM_UPS": WARM_UPS, "RATES": RATES}
    lists = "".join(f"export const {name} = {array(row)};\n" for name, row in given.items())
    blocks = (f"  {norm}: [\n{''.join(rows(names, norm))}  ],\n" for norm in NORMS)
    text = f"{MEASURED}{HEAD}{lists}export const RUNS = {{\n{''.join(blocks)}}};\n"
    SCRIPT.write_text(text, encoding="utf-8")
    return 0


def rows(names: dict[str, Any], norm: str) -> Iterator[str]:
    """The lines of the translators with this norm."""
    for warm_up in WARM_UPS:
        for rate in RATES:
            for seed in range(N_SEEDS):
                losses = trained(names, seed, norm=norm, warm_up=warm_up, rate=rate)
                yield line(losses, digits=4)


def trained(
    names: dict[str, Any], seed: int, *, norm: str, warm_up: int, rate: float
) -> list[float]:
    """The mean losses of each ten steps, where the rate rises as in section 9.3 and then stays."""

    def rising(step: int) -> float:
        return rate * min((step + 1) / max(warm_up, 1), 1)

    model = names["small"](seed, norm=norm)
    # as the chapter trains its five arms
    losses = names["loop"](model, names["batches"], N_STEPS, rising, clip=math.inf)
    return torch.tensor(losses).view(-1, BLOCK).mean(dim=1).tolist()
