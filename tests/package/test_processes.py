"""Several processes, and several machines, learn what one learns: torchrun and fully_shard.

They meet through gloo, on the CPU, with the same sentences in a batch of all together.
"""

import os
import socket
import subprocess
import sys

import pytest
import torch
from torch.testing import assert_close

from tests.package.on_each_process import KINDS, learn
from tests.package.unchecked import unchecked
from tools.chapters import ROOT

SCRIPT = str(ROOT / "tests/package/on_each_process.py")
ALONE = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}


def torchrun(folder, *options):
    """One machine of a meeting; its processes write what they learned."""
    command = [sys.executable, "-m", "torch.distributed.run", "--local-addr=127.0.0.1"]
    command += [*options, SCRIPT, str(folder)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen(command, cwd=ROOT, env=ALONE, **pipes)


def two_processes(folder):
    return [torchrun(folder, "--standalone", "--nproc-per-node=2")]


def two_machines(folder):
    """Of two processes each; that both are this one is nothing that they could know."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    meeting = ["--nnodes=2", "--nproc-per-node=2", "--rdzv-backend=c10d", "--rdzv-id=test"]
    meeting.append(f"--rdzv-endpoint=127.0.0.1:{port}")
    return [torchrun(folder, *meeting) for _ in range(2)]


@pytest.fixture(scope="module")
def alone():
    """What one process learns, for each kind: sharded or not."""
    learned = {}
    with unchecked():
        for kind, options in KINDS.items():
            losses, model = learn(**options | {"shard": lambda model: model})
            learned[kind] = losses, model.state_dict()
    return learned


@pytest.mark.parametrize(("start", "n"), [(two_processes, 2), (two_machines, 4)])
def test_processes_learn_as_one(alone, start, n, tmp_path):
    machines = start(tmp_path)
    said = [machine.communicate()[0] for machine in machines]
    assert [machine.returncode for machine in machines] == [0] * len(machines), "\n".join(said)
    for kind, (losses, weights) in alone.items():
        n_numbers = sum(x.numel() for name, x in weights.items() if name not in TIED)
        results = [torch.load(tmp_path / f"{kind}-{rank}-of-{n}.pt") for rank in range(n)]
        for result in results:
            assert_close(torch.tensor(result["losses"]), torch.tensor(losses), atol=1e-5, rtol=0)
            assert_close(same(result["weights"]), same(weights), atol=2e-5, rtol=0)
        kept = [result["kept"] for result in results]
        if "sharded" not in kind:
            assert kept == [n_numbers] * n
        else:  # each has about its share, and all together have each number once
            assert sum(kept) == n_numbers
            assert max(kept) < 1.1 * n_numbers / n


def same(weights):
    """Without the biases of keys, whose gradient is 0: Adam makes steps of its rounding errors."""
    return {name: x for name, x in weights.items() if not name.endswith("W_k.bias")}


TIED = ("tgt_embedding.tokens.weight", "output.weight")  # which are src_embedding's
