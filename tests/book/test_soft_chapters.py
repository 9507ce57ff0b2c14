"""Some chapters on a GPU of software, with their training cut to four steps: what lies where?

These are where most of the package runs, for some ten seconds of a CPU each; ``make rehearsal
SOFT=1`` runs all of them, to the end of their training, and compares their ticks.
"""

import sys
from pathlib import Path

import nbformat
import pytest

from tests.package.soft_cuda import load
from tools.chapters import CHAPTERS, ROOT, code_cells
from tools.rehearsal import adapt, execute

pytestmark = pytest.mark.skipif(load.lacking() is not None, reason=str(load.lacking()))
BRIEF = f"""\
import sys
sys.path.insert(0, {str(ROOT)!r})
import tests.package.soft_cuda.brief
import torch
assert torch.cuda.get_device_name() == "software T4"
"""
HERE = ("02", "03", "09", "14", "15")
# Cells that cannot do without what the cut leaves out, and why. They may fail.
UNTRAINED = {
    "plot-arms": "it draws a mean of every few steps, and there are four",
    "plot-induction": "it draws a mean of every few steps, and there are four",
    "plot-long": "it draws a mean of every twenty steps, and there are four",
}


@pytest.mark.parametrize(
    "path", [path for path in CHAPTERS if path.stem[:2] in HERE], ids=lambda path: path.stem
)
def test_every_cell_runs_on_a_gpu(path, tmp_path):
    notebook = nbformat.read(path, as_version=4)
    adapt(notebook, path)
    for cell in code_cells(notebook):
        cell.outputs = []
        if cell.id in UNTRAINED:
            cell.metadata.setdefault("tags", []).append("raises-exception")
    notebook.cells.insert(0, nbformat.v4.new_code_cell(BRIEF, id="brief"))
    (tmp_path / "content").mkdir()
    stopped = execute(notebook, tmp_path / "content", Path(sys.executable), ROOT, soft=True)
    assert stopped == []
