"""Measured numbers stand behind ≈, and nbval compares everything but the number behind ≈."""

import os
import re
import shutil
import subprocess
import sys
from xml.etree import ElementTree

import nbformat
import pytest

from tools.chapters import CHAPTERS, ROOT, code_cells
from transformer_book.claims import claims_of

NUMBER = re.search(r"^regex: (.+)$", (ROOT / "tests/sanitize.cfg").read_text("ascii"), re.M)[1]
# what is stored, and what the cell prints now
SAME = {
    "another number": ("loss ≈ 0.52 after 9 steps", "loss ≈ 0.61 after 9 steps"),
    "more digits, padding and a sign": ("≈ 9.5 ms", "≈  -10.25 ms"),
    "a true minus": ("≈ −0.5", "≈ 0.5"),
    "an exponent": ("≈ 1.5e-05 each", "≈ 3 each"),
    "thousands": ("≈ 12,345 steps, 1", "≈ 999 steps, 1"),
    "two in a line": ("≈ 52 ms against ≈ 0.2 ms", "≈ 7 ms against ≈ 0.3 ms"),
    "no space": ("≈0.5", "≈ 0.25"),
    "the end of a sentence": ("it is ≈ 3.", "it is ≈ 2.5."),
}
DIFFERENT = {
    "a word": ("loss ≈ 0.52", "mean ≈ 0.52"),
    "a unit": ("≈ 52 ms", "≈ 52 s"),
    "a unit without a space": ("≈ 52ms", "≈ 52s"),
    "a number that is exact": ("≈ 0.5 in 9 steps", "≈ 0.5 in 8 steps"),
    "a number of another line": ("≈ 0.5\n12", "≈ 0.5\n13"),
    "a number before the sign": ("3 ≈ 0.5", "4 ≈ 0.5"),
    "a missing line": ("≈ 0.5\nright", "≈ 0.5"),
    "a missing number": ("≈ 0.5", "≈ "),
    "not a number": ("≈ 0.5", "≈ nan"),
    "infinity": ("≈ 0.5", "≈ inf"),
    "a missing sign": ("≈ 0.5", "0.5"),
    "the spaces behind": ("≈ 0.5  ms", "≈ 10.5 ms"),
    "a second number": ("≈ 0.5", "≈ 0.5, 0.6"),
}


def misused(notebook):
    """What is wrong with the ≈ of a chapter's outputs."""
    for cell in code_cells(notebook):
        data = [dict(output.get("data", {})) for output in cell.outputs]
        shown = [data[kind] for data in data for kind in data if kind.startswith("text/")]
        streams = [output.text for output in cell.outputs if output.output_type == "stream"]
        text = "\n".join(shown + streams)
        if len(re.findall(NUMBER, text)) != text.count("≈"):
            yield f"{cell.id}: ≈ stands before what is no number"
        if "≈" in text and "nbval-ignore-output" in cell.metadata.get("tags", []):
            yield f"{cell.id}: ≈ stands in an output that is not compared at all"
        if any("≈" in made.text for made in claims_of(cell.outputs)):
            yield f"{cell.id}: ≈ stands in a claim, whose anchor would move"


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_the_sign_stands_before_measured_numbers_and_nowhere_else(path):
    assert list(misused(nbformat.read(path, as_version=4))) == []


@pytest.mark.parametrize(
    ("text", "tags", "wrong"),
    [
        ("≈ 0.5 ms\n✓ that is fast", [], []),
        ("a ≈ b", [], ["m: ≈ stands before what is no number"]),
        ("≈ 1, ≈\n2", [], ["m: ≈ stands before what is no number"]),
        ("≈ 1", ["nbval-ignore-output"], ["m: ≈ stands in an output that is not compared at all"]),
        ("✓ it takes ≈ 1 ms", [], ["m: ≈ stands in a claim, whose anchor would move"]),
    ],
)
def test_a_misused_sign_is_found(text, tags, wrong):
    outputs = [nbformat.v4.new_output("stream", text=text)]
    cell = nbformat.v4.new_code_cell("", id="m", outputs=outputs, metadata={"tags": tags})
    assert list(misused(nbformat.v4.new_notebook(cells=[cell]))) == wrong
    if "claim" in "".join(wrong):
        return
    cell.outputs = [nbformat.v4.new_output("display_data", data={"text/markdown": text})]
    assert list(misused(nbformat.v4.new_notebook(cells=[cell]))) == wrong


def notebook():
    cells = []
    for stored, now in (SAME | DIFFERENT).values():
        output = nbformat.v4.new_output("stream", text=stored + "\n")
        code = {"source": f"print({now!r})", "execution_count": 1, "outputs": [output]}
        cells.append(nbformat.v4.new_code_cell(**code))
    return nbformat.v4.new_notebook(cells=cells)


def run_nbval(folder, *arguments, cwd, **variables):
    """The cases that nbval lets pass, by the settings of this repository."""
    report = folder / "report.xml"
    command = [sys.executable, "-m", "pytest", "--nbval", "-n", "0", f"--junitxml={report}"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)} | variables
    result = subprocess.run(
        [*command, *arguments], cwd=cwd, env=environment, capture_output=True, timeout=300
    )
    cells = list(ElementTree.parse(report).iter("testcase"))
    assert len(cells) == len(SAME | DIFFERENT), result.stdout.decode(errors="replace")
    return [case for case, cell in zip(SAME | DIFFERENT, cells, strict=True) if not len(cell)]


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    """The settings of this repository, and one chapter."""
    folder = tmp_path_factory.mktemp("book")
    for name in ("pyproject.toml", "conftest.py", "tests/sanitize.cfg"):
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    (folder / "chapters").mkdir()
    nbformat.write(notebook(), folder / "chapters" / "measured.ipynb")
    return folder


def test_only_the_number_behind_the_sign_may_differ(book):
    assert run_nbval(book, "chapters", cwd=book) == list(SAME)


def test_it_is_so_in_another_folder_and_in_an_old_encoding(book):
    old = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    assert run_nbval(book, "measured.ipynb", cwd=book / "chapters", **old) == list(SAME)


def test_the_settings_can_be_replaced(book, tmp_path):
    (tmp_path / "none.cfg").write_text("", encoding="utf-8")
    option = f"--nbval-sanitize-with={tmp_path / 'none.cfg'}"
    assert run_nbval(book, "chapters", option, cwd=book) == []
