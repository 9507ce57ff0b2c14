"""nbval compares measured numbers within a factor, the rest exactly.

But for what stands behind a sign that a cell names.
"""

import os
import shutil
import subprocess
import sys
from xml.etree import ElementTree

import nbformat
import pytest

from tests.book.measured import NUMBER
from tools.chapters import NOTEBOOKS, ROOT, code_cells
from transformer_book.claims import Claim, claims_of

# what is stored, and what the cell prints now
SAME = {
    "another number": ("loss ≈ 0.52 after 9 steps", "loss ≈ 0.61 after 9 steps"),
    "just within the factor": ("≈ 0.05 nats", "≈ 0.50 nats"),
    "more digits and padding": ("≈ 9.5 ms", "≈   10.25 ms"),
    "a true minus": ("≈ −0.5", "≈ -0.4"),
    "an exponent": ("≈ 1.5e-05 each", "≈ 0.00003 each"),
    "thousands": ("≈ 12,345 steps, 1", "≈ 9999 steps, 1"),
    "two in a line": ("≈ 52 ms against ≈ 0.2 ms", "≈ 7 ms against ≈ 0.3 ms"),
    "no space": ("≈0.5", "≈ 0.25"),
    "the end of a sentence": ("it is ≈ 3.", "it is ≈ 2.5."),
    "about nothing": ("≈ 0.00", "≈ 0.05"),
    "about nothing, with another sign": ("≈ -0.02", "≈ 0.02"),
    "about nothing, in whole numbers": ("≈ 0 %", "≈ 4 %"),
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
    "beyond the factor": ("≈ 0.05 nats", "≈ 0.51 nats"),
    "beyond the factor, smaller": ("≈ 64.3", "≈ 6.42"),
    "beyond it in the second number": ("≈ 52 ms against ≈ 0.2 ms", "≈ 52 ms against ≈ 2.1 ms"),
    "another sign": ("≈ 0.5", "≈ -0.4"),
    "a larger power": ("≈ 1e-12", "≈ 1e-08"),
    "a smaller power": ("≈ 1e-08", "≈ 1e-12"),
    "no longer nothing": ("≈ 0.00", "≈ 0.06"),
}
# where the cell says more: what is stored, what it prints now, and the cell's metadata
SAME_WITHIN = {
    "within what is stated": ("≈ 0.49", "≈ 0.52", {"within": 1.1}),
    "rounded": ("0 ≈ 1", "0 ≈ 2", {"within": 1.1}),
    "all are measured": ("one  9.99 to 0.2", "one 10.25 to 0.3", {"measured": True}),
    "in a table": ("<td>-3</td><td>0.00</td>", "<td>-4</td><td>0.01</td>", {"measured": True}),
    "measured within": ("a 0.49", "a 0.52", {"measured": True, "within": 1.1}),
}
DIFFERENT_WITHIN = {
    "beyond what is stated": ("≈ 0.49", "≈ 0.55", {"within": 1.1}),
    "beyond, at two units": ("≈ 0.02", "≈ 0.04", {"within": 1.1}),
    "a word beside what is measured": ("one 0.5", "two 0.5", {"measured": True}),
    "a number in a word": ("W_1 0.5", "W_2 0.5", {"measured": True}),
    "one measured number more": ("a 0.5", "a 0.5 1", {"measured": True}),
    "measured, with another sign": ("a 0.5", "a -0.5", {"measured": True}),
}


def misused(notebook):
    """What is wrong with the ≈ of a chapter's outputs."""
    for cell in code_cells(notebook):
        data = [dict(output.get("data", {})) for output in cell.outputs]
        shown = [data[kind] for data in data for kind in data if kind.startswith("text/")]
        streams = [output.text for output in cell.outputs if output.output_type == "stream"]
        text = "\n".join(shown + streams)
        if len(NUMBER.findall(text)) != text.count("≈"):
            yield f"{cell.id}: ≈ stands before what is no number"
        if "≈" in text and "nbval-ignore-output" in cell.metadata.get("tags", []):
            yield f"{cell.id}: ≈ stands in an output that is not compared at all"
        if any("≈" in made.text for made in claims_of(cell.outputs)):
            yield f"{cell.id}: ≈ stands in a claim, whose anchor would move"
        measured = "≈" in text or cell.metadata.get("measured")
        if "within" in cell.metadata and not (measured and cell.metadata["within"] > 1):
            yield f"{cell.id}: states a factor above 1 for no number, or none above 1"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_sign_stands_before_measured_numbers_and_nowhere_else(path):
    assert list(misused(nbformat.read(path, as_version=4))) == []


@pytest.mark.parametrize(
    ("text", "metadata", "wrong"),
    [
        ("≈ 0.5 ms", {"within": 1.5}, ""),
        ("a ≈ b", {}, "before what is no number"),
        ("≈ 1", {"tags": ["nbval-ignore-output"]}, "in an output that is not compared"),
        ("1", {"within": 2}, "states a factor"),
    ],
)
def test_a_misused_sign_is_found(text, metadata, wrong):
    data = Claim("it takes ≈ 1 ms", "experiment")._repr_mimebundle_()
    for outputs, said in (
        ([nbformat.v4.new_output("stream", text=text)], wrong),
        ([nbformat.v4.new_output("display_data", data={"text/markdown": text})], wrong),
        ([nbformat.v4.new_output("display_data", data)], "in a claim, whose anchor would move"),
    ):
        cell = nbformat.v4.new_code_cell("", id="m", outputs=outputs, metadata=metadata)
        found = " ".join(misused(nbformat.v4.new_notebook(cells=[cell])))
        assert said in found
        assert bool(said) == bool(found)


# where the cell says behind which sign a line may go on otherwise
SAME_BEHIND = {
    "other words behind the sign": ("≈ 3\na → x y\nb → z", "≈ 4\na → u\nb → "),
}
DIFFERENT_BEHIND = {
    "before the sign": ("a → x", "b → x"),
    "a line without the sign": ("a → x\nb", "a → y\nc"),
    "a line more": ("a → x", "a → x\na → x"),
    "a line less": ("a → x\nb → x", "a → x"),
}
CLAIM = """\
from transformer_book.claims import claim
print("≈ 0.1")
claim({})"""
STORED = (
    nbformat.v4.new_output("stream", text="≈ 0.2\n"),
    nbformat.v4.new_output("display_data", Claim("one is odd", "theorem")._repr_mimebundle_()),
)
CLAIMS = {
    "the same claim": "'one is odd', True, 'theorem'",
    "of another kind": "'one is odd', True, 'identity'",
    "of another text": "'one is even', True, 'theorem'",
    "of another budget": "'one is odd', True, seeds=3",
}


def notebook():
    cells = []
    for stored, now, *metadata in (SAME | SAME_WITHIN | DIFFERENT | DIFFERENT_WITHIN).values():
        output = nbformat.v4.new_output("stream", text=stored + "\n")
        code = {"source": f"print({now!r})", "execution_count": 1, "outputs": [output]}
        code["metadata"] = dict(*metadata)
        cells.append(nbformat.v4.new_code_cell(**code))
    for stored, now in (SAME_BEHIND | DIFFERENT_BEHIND).values():
        output = nbformat.v4.new_output("stream", text=stored + "\n")
        code = {"source": f"print({now!r})", "execution_count": 1, "outputs": [output]}
        code["metadata"] = {"differs_after": " →"}
        cells.append(nbformat.v4.new_code_cell(**code))
    for arguments in CLAIMS.values():
        code = {"source": CLAIM.format(arguments), "execution_count": 1, "outputs": list(STORED)}
        cells.append(nbformat.v4.new_code_cell(**code))
    return nbformat.v4.new_notebook(cells=cells)


BEHIND = [*SAME_BEHIND, *DIFFERENT_BEHIND]
CASES = [*SAME, *SAME_WITHIN, *DIFFERENT, *DIFFERENT_WITHIN, *BEHIND, *CLAIMS]
PASS = [*SAME, *SAME_WITHIN, *SAME_BEHIND, "the same claim"]


def test_only_the_number_behind_the_sign_may_differ_and_within_a_factor(tmp_path):
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
