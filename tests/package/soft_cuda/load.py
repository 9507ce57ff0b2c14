"""A GPU of software for the CPU build of PyTorch: ``python …/soft_cuda/load.py pytest …``.

Compiles ``soft_cuda.cpp``, loads it before PyTorch, and runs a module as ``python -m`` does, such
as pytest or a notebook's kernel; without a module it only compiles. There ``torch.cuda`` says that
there is one GPU, a T4 without bfloat16; with ``SOFT_CUDA=mps`` it is a Mac's.
"""

import ctypes
import hashlib
import importlib.metadata
import importlib.util
import os
import re
import runpy
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from types import SimpleNamespace

SOURCE = Path(__file__).with_name("soft_cuda.cpp")
ROOT = SOURCE.parents[3]
BUILT = ROOT / "_build" / "soft_cuda"
KIND = os.environ.get("SOFT_CUDA", "cuda")


def package(name: str) -> Path:
    """The folder of a package that is not imported yet."""
    return Path(importlib.util.find_spec(name).submodule_search_locations[0])


def lacking() -> str | None:
    """Why there can be no such GPU here, in a line."""
    pins = (ROOT / "requirements.txt").read_text("utf-8")
    (pinned,) = re.findall(r"^torch==(\S+)", pins, re.M)
    version = importlib.metadata.version("torch")
    if sys.platform != "linux" or shutil.which("g++") is None:
        return "the software GPU needs Linux and g++"
    if version.partition("+")[0] != pinned:
        return f"the software GPU is made for PyTorch {pinned}, not for {version}"
    if (package("torch") / "lib" / "libtorch_cuda.so").exists():
        return f"PyTorch {version} has the real CUDA in it, beside which no other can be"
    return None


def built() -> Path:
    """The compiled plug-in; compiles it once for each source and PyTorch, in ten seconds."""
    version = importlib.metadata.version("torch") + sysconfig.get_platform() + KIND
    made_from = hashlib.sha256(version.encode() + SOURCE.read_bytes())
    library = BUILT / f"{made_from.hexdigest()[:16]}.so"
    if library.exists():
        return library
    BUILT.mkdir(parents=True, exist_ok=True)
    include = package("torch") / "include"
    # in a folder of its own: the same may be compiled by another process just now
    with tempfile.TemporaryDirectory(dir=BUILT) as own:
        names = ",\n".join(map('"aten::{}"'.format, takes_numbers()))
        Path(own, "takes_numbers.inc").write_text(names)
        folders = [own, include, include / "torch" / "csrc" / "api" / "include"]
        # no -l: every symbol is in the libraries that load() has loaded before
        command = ["g++", "-std=c++20", "-O1", "-shared", "-fPIC"]
        command += [f"-DKIND={KIND.upper()}", f"-DIS_MPS={KIND == 'mps':d}"]
        command += [*(f"-I{folder}" for folder in folders), SOURCE, "-o", Path(own, "soft_cuda.so")]
        subprocess.run(command, check=True)
        Path(own, "soft_cuda.so").replace(library)
    return library


def takes_numbers() -> list[str]:
    """The operations that take a number on the CPU beside tensors on the GPU, as PyTorch says."""
    text = (package("torchgen") / "packaged/ATen/native/native_functions.yaml").read_text("utf-8")
    entries = text.split("\n- func: ")[1:]
    return [entry.split("(")[0] for entry in entries if "device_check: NoCheck" in entry]


def load() -> None:
    """Make ``torch.cuda`` find one GPU in this process; PyTorch must not be imported before."""
    if "torch" in sys.modules:
        raise RuntimeError("the software GPU is loaded before PyTorch, which asks once for CUDA")
    # torch would load its own libraries in this order; the plug-in finds its symbols in them
    for name in ("libtorch_global_deps.so", "libtorch_cpu.so"):
        ctypes.CDLL(str(package("torch") / "lib" / name), mode=ctypes.RTLD_GLOBAL)
    ctypes.CDLL(str(built()), mode=ctypes.RTLD_GLOBAL)
    import torch

    generator = torch.ops.soft_cuda.default_generator()
    torch.accelerator.is_available = lambda: True
    torch.accelerator.current_accelerator = lambda check_available=False: torch.device(KIND)
    torch.accelerator.synchronize = lambda device=None: None  # nothing runs behind the back
    if KIND == "mps":
        torch._C._has_mps = True
        torch._C._mps_is_available = lambda: True
        torch._C._mps_get_default_generator = lambda: generator
    else:
        properties = SimpleNamespace(name="software T4", major=7, minor=5)  # bfloat16 needs 8.0
        torch.cuda.is_available = lambda: True
        torch.cuda.get_device_properties = lambda device=None: properties
        torch.cuda.synchronize = lambda device=None: None
        for module in (torch.cuda, torch.cuda.random):  # which has names of its own for them
            module.device_count, module.current_device = (lambda: 1), (lambda: 0)
        torch.cuda._initialized = True
        torch.cuda.default_generators = (generator,)
    on_cpu = torch.UntypedStorage.clone

    def clone(self: torch.UntypedStorage) -> torch.UntypedStorage:
        """For copy.deepcopy: storages of a build without CUDA are made by way of tensors only."""
        if self.device.type == "cpu":
            return on_cpu(self)
        same = torch.empty(0, dtype=torch.uint8, device=self.device).set_(self)
        return same.clone().untyped_storage()

    torch.UntypedStorage.clone = clone


if __name__ == "__main__":
    if reason := lacking():
        sys.exit(reason)
    if not sys.argv[1:]:
        sys.exit(built() is None)  # nothing to run: it is compiled for those who will
    load()
    sys.argv, sys.path[0] = sys.argv[1:], os.getcwd()
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
