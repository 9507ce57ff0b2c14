"""nbval compares measured numbers within a factor, plots by what is where, the rest exactly.

But for what stands behind a sign that a cell names.
"""

import os
import shutil
import subprocess
import sys
from typing import Any
from xml.etree import ElementTree

import matplotlib.pyplot as plt
import nbformat
import pytest
import torch

from tests.book.plots import changes
from tools.chapters import CELL_METADATA, NOTEBOOKS, ROOT, code_cells
from transformer_book import figures
from transformer_book.claims import Claim
from transformer_book.drawings.plot import svg_of

# what is stored, and what a measured cell prints now
SAME = {
    "another number": ("loss 0.52", "loss 0.61"),
    "just within the factor": ("0.05 nats", "0.50 nats"),
    "more digits and padding": ("9.5 ms", "  10.25 ms"),
    "a true minus": ("x −0.5", "x -0.4"),
    "an exponent": ("1.5e-05 each", "0.00003 each"),
    "thousands": ("12,345 steps", "9999 steps"),
    "two in a line": ("52 ms against 0.2 ms", "7 ms against 0.3 ms"),
    "the end of a sentence": ("it is 3.", "it is 2.5."),
    "about nothing": ("x 0.00", "x 0.05"),
    "about nothing, with another sign": ("x -0.02", "x 0.02"),
    "about nothing, in whole numbers": ("0 %", "4 %"),
    "in a table": ("<td>-3</td><td>0.00</td>", "<td>-4</td><td>0.01</td>"),
}
DIFFERENT = {
    "a word": ("loss 0.52", "mean 0.52"),
    "a unit": ("52 ms", "52 s"),
    "a number in a word": ("W_1 0.5", "W_2 0.5"),
    "a missing line": ("0.5\nright", "0.5"),
    "a missing number": ("x 0.5", "x "),
    "not a number": ("x 0.5", "x nan"),
    "infinity": ("x 0.5", "x inf"),
    "a second number": ("x 0.5", "x 0.5, 0.6"),
    "beyond the factor": ("0.05 nats", "0.51 nats"),
    "beyond the factor, smaller": ("x 64.3", "x 6.42"),
    "beyond it in the second number": ("52 ms against 0.2 ms", "52 ms against 2.1 ms"),
    "another sign": ("x 0.5", "x -0.4"),
    "a larger power": ("x 1e-12", "x 1e-08"),
    "a smaller power": ("x 1e-08", "x 1e-12"),
    "no longer nothing": ("x 0.00", "x 0.06"),
}
# where the cell says how far
SAME_WITHIN = {
    "within what is stated": ("a 0.49", "a 0.52"),
    "rounded": ("a 1", "a 2"),
}
DIFFERENT_WITHIN = {
    "beyond what is stated": ("a 0.49", "a 0.55"),
    "beyond, at two units": ("a 0.02", "a 0.04"),
}
# where the cell says nothing
DIFFERENT_EXACT = {"a number that is not measured": ("0.5 in 9 steps", "0.5 in 8 steps")}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_factor_is_stated_where_something_is_measured_and_compared(path):
    for cell in code_cells(nbformat.read(path, as_version=4)):
        says = cell.metadata
        assert says.keys() <= CELL_METADATA, cell.id  # else make chapters would drop it
        assert says.get("within", 2) > 1, cell.id
        assert "measured" in says or "within" not in says, cell.id
        assert not ("measured" in says and "nbval-ignore-output" in says.get("tags", [])), cell.id


# where the cell says behind which sign a line may go on otherwise
SAME_BEHIND = {"other words behind the sign": ("3\na → x y\nb → z", "3\na → u\nb → ")}
DIFFERENT_BEHIND = {
    "before the sign": ("a → x", "b → x"),
    "a line without the sign": ("a → x\nb", "a → y\nc"),
    "a line more": ("a → x", "a → x\na → x"),
    "a line less": ("a → x\nb → x", "a → x"),
}
FRAME = "<g><path d='M 0 0 L 100 0 L 100 100 L 0 100 z'/></g>"
PLOT = f"<svg xmlns='http://www.w3.org/2000/svg' class='plot'><style/><g>{FRAME}<g>{FRAME}"
PLOT += "<text x='{}' y='50'>loss</text></g></g></svg>"
PICTURES = {
    "a plot with other letters": (PLOT.format(50), PLOT.format(51)),
    "another plot": (PLOT.format(50), PLOT.format(70)),
    "another drawing": ("<svg class='drawing'>1</svg>", "<svg class='drawing'>2</svg>"),
    "a plot for a drawing": ("<svg class='drawing'>1</svg>", "<svg class='plot'>1</svg>"),
}
PICTURE = "display({{'image/svg+xml': {!r}}}, raw=True)"
CLAIM = """\
from transformer_book.claims import claim
print("0.2")
claim({})"""
STORED = (
    nbformat.v4.new_output("stream", text="0.2\n"),
    nbformat.v4.new_output("display_data", Claim("one is odd", "theorem")._repr_mimebundle_()),
)
CLAIMS = {
    "the same claim": "'one is odd', True, 'theorem'",
    "of another kind": "'one is odd', True, 'identity'",
    "of another text": "'one is even', True, 'theorem'",
    "of another budget": "'one is odd', True, seeds=3",
}


def notebook():
    kinds = [
        (SAME | DIFFERENT, {"measured": True}),
        (SAME_WITHIN | DIFFERENT_WITHIN, {"measured": True, "within": 1.1}),
        (DIFFERENT_EXACT, {}),
        (SAME_BEHIND | DIFFERENT_BEHIND, {"differs_after": " →"}),
    ]
    cells = []
    for cases, metadata in kinds:
        for stored, now in cases.values():
            output = nbformat.v4.new_output("stream", text=stored + "\n")
            code = {"source": f"print({now!r})", "execution_count": 1, "outputs": [output]}
            cells.append(nbformat.v4.new_code_cell(**code, metadata=metadata))
    for stored, now in PICTURES.values():
        output = nbformat.v4.new_output("display_data", {"image/svg+xml": stored})
        code = {"source": PICTURE.format(now), "execution_count": 1, "outputs": [output]}
        cells.append(nbformat.v4.new_code_cell(**code))
    for arguments in CLAIMS.values():
        code = {"source": CLAIM.format(arguments), "execution_count": 1, "outputs": list(STORED)}
        cells.append(nbformat.v4.new_code_cell(**code))
    return nbformat.v4.new_notebook(cells=cells)


CASES = [*SAME, *DIFFERENT, *SAME_WITHIN, *DIFFERENT_WITHIN, *DIFFERENT_EXACT, *SAME_BEHIND]
CASES += [*DIFFERENT_BEHIND, *PICTURES, *CLAIMS]
PASS = [*SAME, *SAME_WITHIN, *SAME_BEHIND, "a plot with other letters", "the same claim"]


def test_only_a_measured_number_may_differ_and_within_a_factor(tmp_path):
    """By the settings of this repository, from another folder and in an old encoding."""
    for name in ("pyproject.toml", "conftest.py"):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "chapters").mkdir()
    nbformat.write(notebook(), tmp_path / "chapters" / "measured.ipynb")
    report = tmp_path / "report.xml"
    command = [sys.executable, "-m", "pytest", "--nbval", "-n", "0", f"--junitxml={report}"]
    old = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONPATH": str(ROOT)}
    result = subprocess.run(
        [*command, "measured.ipynb"], cwd=tmp_path / "chapters", env=os.environ | old,
        capture_output=True,
    )  # fmt: skip
    cells = list(ElementTree.parse(report).iter("testcase"))
    assert len(cells) == len(CASES), result.stdout.decode(errors="replace")
    assert [case for case, cell in zip(CASES, cells, strict=True) if not len(cell)] == PASS


RISES = [0.1 * n**1.5 for n in range(9)]
FALLS = [3.0 - 0.3 * n for n in range(9)]
FAULTS: dict[str, dict[str, Any]] = {
    "exchanged labels": {"words": ("falls", "rises")},
    "labels in exchanged colours": {"inks": (figures.ORANGE, figures.BLUE)},
    "exchanged titles": {"titles": ("what", "when")},
    "exchanged axes": {"axes_are": ("share", "step")},
    "exchanged ticks": {"ticks": ("dev\nb", "train\na", "test\nc")},
    "ticks upside down": {"ticks": ("train\na", "dev\nb", "c\ntest")},
    "exchanged panels": {"order": -1},
    "exchanged curves": {"curves": (FALLS, RISES)},
    "a curve backwards": {"curves": (RISES[::-1], FALLS)},
    "a mark too few": {"curves": (RISES, FALLS[:-1])},
    "a bar too many": {"ticks": ("train\na", "dev\nb", "test\nc", "all")},
}


@pytest.fixture
def plot():
    plt.switch_backend("agg")

    def drawn(
        *, words=("rises", "falls"), inks=(figures.BLUE, figures.ORANGE), titles=("when", "what"),
        axes_are=("step", "share"), ticks=("train\na", "dev\nb", "test\nc"), order=1,
        curves=(RISES, FALLS), letters="sans-serif",
    ):  # fmt: skip
        figures.use_style()
        plt.rcParams["font.family"] = [letters]
        figure, panels = plt.subplots(1, 2)
        lines, bars = panels[::order]
        for curve, colour in zip(curves, (figures.BLUE, figures.ORANGE), strict=True):
            lines.plot(curve, "o-", color=colour)
        for word, colour, y in zip(words, inks, (0.2, 2.6), strict=True):
            lines.text(1.0, y, word, color=figures.ink(colour))
        lines.set(xlabel=axes_are[0], ylabel=axes_are[1], title=titles[0])
        bars.bar(ticks, range(1, len(ticks) + 1))
        bars.set(title=titles[1])
        svg = svg_of(figure)
        plt.close(figure)
        return svg

    return drawn


@pytest.mark.parametrize("measured", [False, True])
@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_exchanged_in_a_plot_is_seen(plot, fault, measured):
    assert changes(plot(), plot(**FAULTS[fault]), measured=measured)


def test_a_plot_agrees_in_other_letters_and_a_measured_one_with_other_numbers(plot):
    assert changes(plot(), plot(letters="DejaVu Serif")) == []
    other = plot(curves=([1.2 * y for y in RISES], [y + 0.2 for y in FALLS]))
    assert changes(plot(), other, measured=True) == []
    assert changes(plot(), other)


def test_numbers_in_a_measured_plot_rise_and_fall_as_the_stored_ones():
    def heatmap(*numbers):
        figures.use_style()
        figure, axes = plt.subplots()
        figures.heatmap(axes, torch.tensor([numbers]), digits=1)
        svg = svg_of(figure)
        plt.close(figure)
        return svg

    stored = heatmap(9.0, 1.0, 2.0, 0.0)
    assert changes(stored, heatmap(7.0, 2.5, 2.0, 0.3), measured=True) == []
    assert changes(stored, heatmap(1.0, 2.0, 0.0, 9.0), measured=True)
