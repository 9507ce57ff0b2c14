"""Where and when a number was measured: the one answer of experiments and benchmarks."""

import platform
import subprocess
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

from transformer.runtime import default_device
from transformer_book.experiments.runs import Made

ROOT = Path(__file__).resolve().parents[2]


def made(*packages: str) -> Made:
    """Versions of Python, PyTorch and other ``packages`` (None: not there), machine, day, commit.

    ``threads`` are those of PyTorch in this process.
    """
    device = default_device()
    name = getattr(torch.get_device_module(device), "get_device_name", _processor)
    return {
        "python": platform.python_version(),
        **{name: _version(name) for name in ("torch", *packages)},
        "device": device.type,
        "processor": name(),
        "threads": torch.get_num_threads(),
        "date": date.today().isoformat(),
        "commit": commit(),
    }


def commit() -> str | None:
    """The working tree's commit, "-dirty" where it has changes; None outside of a repository."""
    if not (ROOT / ".git").exists():
        return None
    command = ["git", "--no-optional-locks", "describe", "--always", "--dirty", "--exclude=*"]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    """Its maker's name for it, where Linux tells that."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())
