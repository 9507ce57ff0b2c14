"""Some chapters on a GPU of software, with their training cut to four steps: what lies where?

These are where most of the package runs, for some ten seconds of a CPU each; ``make rehearsal
SOFT=1`` runs all of them, to the end of their training, and compares their ticks.
"""

import sys
from pathlib import Path

import nbformat
import pytest

from tests.package.soft_cuda import load
from tools.chapters import CHAPTERS, ROOT
from tools.rehearsal import adapt, execute
from tools.running import code_cells, printed
from transformer_book.claims import claims_of

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


def brief(notebook, folder):
    """What stops ``notebook`` in ``folder`` on a GPU of software, with little training."""
    for cell in code_cells(notebook):
        cell.outputs = []
        if cell.id in UNTRAINED:
            cell.metadata.setdefault("tags", []).append("raises-exception")
    notebook.cells.insert(0, nbformat.v4.new_code_cell(BRIEF, id="brief"))
    (folder / "content").mkdir()
    return execute(notebook, folder / "content", Path(sys.executable), ROOT, soft=True)


@pytest.mark.parametrize(
    "path", [path for path in CHAPTERS if path.stem[:2] in HERE], ids=lambda path: path.stem
)
def test_every_cell_runs_on_a_gpu(path, tmp_path):
    notebook = nbformat.read(path, as_version=4)
    adapt(notebook, path)
    assert brief(notebook, tmp_path) == []


IMPORTS = """\
import torch
from transformer_book import claim, minimise
from transformer.runtime import default_device
x = torch.ones(2, device=default_device(), requires_grad=True)
"""
LOOP = """\
seen = []
for step in range(100):
    (x * step).sum().backward()
    seen.append(step)
print(seen, [i for i in range(30)][-1])
"""
CLAIMS = """\
losses = minimise(lambda step: ((x - 1) ** 2).sum() + step, [x], n_steps=50, lr=0.1)
print(len(losses), losses[-1] == losses[3])
claim("it has learnt", False, "identity")
claim("it is", True, "identity")
"""
WRONG = {
    "x + torch.ones(2)": "Expected all tensors to be on the same device",
    "x.detach().numpy()": "can't convert cuda:0 device type tensor to numpy",
    "torch.rand(2, device=x.device, generator=torch.Generator())": "Expected a 'cuda' device type",
    "claim('two is one', 2, 'identity')": "holds must be one truth value",
}


def test_training_is_cut_claims_stop_nothing_and_all_other_errors_are_errors(tmp_path):
    sources = [IMPORTS, LOOP, CLAIMS, *WRONG]
    cells = [nbformat.v4.new_code_cell(text, id=f"c{i}") for i, text in enumerate(sources)]
    for cell in cells[3:-1]:
        cell.metadata["tags"] = ["raises-exception"]  # which each of them must
    (stopped,) = brief(nbformat.v4.new_notebook(cells=[*cells]), tmp_path)
    assert printed(cells[1]) == ["[0, 1, 2, 3] 29"]
    assert printed(cells[2]) == ["50 True", "✗ it has learnt"]
    assert [made.text for made in claims_of(cells[2].outputs)] == ["it is"]
    for cell, words in zip(cells[3:], WRONG.values(), strict=True):
        (error,) = cell.outputs
        assert error.evalue.startswith(words)
    assert stopped.startswith("cell c6: TypeError: ")
