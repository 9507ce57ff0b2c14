"""What chapter 7's own cells measure in new stacks of 1 to 32 layers, for its living figure.

``python -m website depths`` writes ``parts/living/depths.js``, in half a minute. It is wanted when
those cells change; ``tests/site/test_living.py`` says so.
"""

from collections.abc import Iterator
from typing import Any

from transformer_book.notebooks import chapter_path
from website import ROOT
from website.measured import MEASURED, line, names_of

CHAPTER = chapter_path(7)
CELLS = (
    *("task-words", "through", "translator-model-stack", "signals", "examine"),
    *("translator-model-add", "wires-with-norm"),
)
WIRES = ("plain", "add", "norm_only", "post")
MOST_LAYERS, N_STARTS = 32, 3
SCRIPT = ROOT / "website" / "parts" / "living" / "depths.js"
SAME = 1e-7  # the lower edge of the chapter's plots
HEAD = """\
// Written by `python -m website depths`, from chapter 7's own cells: new stacks, three starts each.
// A row for each number of layers, from 1 on. The first three numbers say how large the gradient
// before layer 1 is (after the last layer: 1), the next three how much of the words after the last
// layer is their own, the last three how much of the gradients before layer 1 is their own.
"""


def write_depths() -> int:
    """Measures all stacks and writes the module."""
    names = names_of(CHAPTER, ("imports", *CELLS))
    blocks = (f"  {wire}: [\n{''.join(map(line, rows(names, wire)))}  ],\n" for wire in WIRES)
    SCRIPT.write_text(
        f"{MEASURED}{HEAD}export const DEPTHS = {{\n{''.join(blocks)}}};\n", encoding="utf-8"
    )
    return 0


def rows(names: dict[str, Any], wire: str) -> Iterator[list[float]]:
    """The measurements of each number of layers."""
    for n_layers in range(1, MOST_LAYERS + 1):
        yield measured(names, wire, n_layers)


def measured(names: dict[str, Any], wire: str, n_layers: int) -> list[float]:
    """The nine numbers of one row, by the chapter's ``examine``, ``size`` and ``own``."""
    fresh, examine, size, own = (names[name] for name in ("fresh", "examine", "size", "own"))
    stacks = [examine(fresh(n_layers, names[wire], seed)) for seed in range(N_STARTS)]
    arriving = [size(gradients[0]) / size(gradients[-1]) for _, gradients in stacks]
    words = [max(own(vectors[-1]), SAME) for vectors, _ in stacks]
    return [*arriving, *words, *(max(own(gradients[0]), SAME) for _, gradients in stacks)]
