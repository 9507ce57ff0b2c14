"""What is tested on a GPU, on two of software, CUDA's and a Mac's, where there is no other.

python -m pytest -n 0 tests/package/soft_cuda/check.py
"""

import os
import subprocess
import sys

import pytest

from tests.package.soft_cuda import load
from tools.chapters import ROOT

pytestmark = pytest.mark.skipif(load.lacking() is not None, reason=str(load.lacking()))
# What only a real GPU can show, and why.
REAL_ONLY = {
    "test_trains_in_every_precision_and_resumes[True-": "torch.compile asks CUDA's own driver",
    "test_timer_waits_for_the_gpu": "nothing to wait for, and a minute of a CPU",
}


def run(*command, **variables):
    command = [sys.executable, *command]
    return subprocess.run(
        command, cwd=ROOT, env=os.environ | variables, capture_output=True, text=True
    )


@pytest.mark.parametrize("kind", ["mps", "cuda"])
def test_what_is_tested_on_a_gpu_passes_on_this_one(kind):
    left_out = [f"--deselect=tests/package/test_cuda.py::{name}" for name in REAL_ONLY]
    options = ["-n0", "-q", "-x", "-rs", *left_out]
    files = ["tests/package/test_cuda.py", "tests/book/test_colab.py"]  # on Colab there is a GPU
    command = ["tests/package/soft_cuda/load.py", "pytest", *options]
    done = run(*command, *(files[:1] if kind == "mps" else files), SOFT_CUDA=kind)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert kind == "mps" or " skipped" not in done.stdout


# A real GPU takes an index on the CPU, but waits for it; after one out of bounds it is lost.
LOST = """\
from tests.package.soft_cuda.load import load
load()
import torch
x = torch.arange(3.0, device="cuda")
assert x[torch.tensor([2], device="cuda")].item() == 2
outside = torch.tensor([3], device="cuda")
for use in (lambda: x[torch.tensor([2])], lambda: x[outside], lambda: x + 1, lambda: x.cpu()):
    try:
        print(use())
    except RuntimeError as error:
        print(error)
"""


def test_an_index_on_the_cpu_or_out_of_bounds_is_found():
    on_cpu, outside, *afterwards = run("-c", LOST).stdout.splitlines()
    assert on_cpu.startswith("Expected all tensors to be on the same device, but got indices is on")
    assert outside.startswith("CUDA error: device-side assert triggered: index 3 is out of bounds")
    assert afterwards == ["CUDA error: device-side assert triggered (by an earlier operation)"] * 2
