"""Where and how a model runs: device, precision, processes, seeds, seconds (chapter 13)."""

import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Literal, Protocol, get_args, runtime_checkable

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn

from transformer.checks import check_choice

Precision = Literal["auto", "fp32", "bf16", "fp16"]
# what stops a process from outside and leaves it the time to save; Windows has no SIGHUP
STOPS = [getattr(signal, n) for n in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, n)]


def default_device() -> torch.device:
    """The accelerator that PyTorch finds (CUDA, a Mac's MPS, XPU), or else the CPU."""
    if not torch.accelerator.is_available():
        return torch.device("cpu")
    return torch.accelerator.current_accelerator() or torch.device("cpu")


def autocast_dtype(device: torch.device | str, precision: Precision = "auto") -> torch.dtype | None:
    """The type that matrix products are computed in, None for float32; chapter 13.

    "auto": bfloat16 on XPU and on a CUDA GPU that has it (compute capability 8.0 and later),
    float16 on an older one, float32 on a CPU and on MPS. float16 is for CUDA alone.

    Raises ValueError for an unknown ``precision``, and for one that the device has not.
    """
    device = torch.device(device)
    check_choice(get_args(Precision), precision=precision)
    is_cuda = device.type == "cuda"
    has_bf16 = not is_cuda or torch.cuda.get_device_capability(device) >= (8, 0)
    if precision == "auto":
        fast: Precision = "bf16" if has_bf16 else "fp16"
        precision = fast if device.type in ("cuda", "xpu") else "fp32"
    if precision == "bf16" and not has_bf16:
        name = torch.cuda.get_device_name(device)
        raise ValueError(f"precision must be fp16 or fp32 on {name}, which has no bf16, got 'bf16'")
    # the scaler that float16 needs divides in float64, which MPS and some XPUs do not have
    if precision == "fp16" and not is_cuda:
        raise ValueError(f"precision must be bf16 or fp32 on {device.type}, got 'fp16'")
    return {"fp32": None, "bf16": torch.bfloat16, "fp16": torch.float16}[precision]


def compile_or_refuse(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """``function`` by torch.compile, which compiles when it is called first; chapter 13.

    That raises ValueError where something lacks, such as a C++ compiler.
    """
    by_compiler = torch.compile(function)

    def call(*inputs: Any) -> Tensor:
        try:
            return by_compiler(*inputs)
        except torch._dynamo.exc.BackendCompilerFailed as error:
            reason = str(error.inner_exception).partition("\n")[0]
            message = f"compiled must be False here, where torch.compile fails: {reason}"
            raise ValueError(message) from error

    return call


def rank() -> int:
    """Which of the processes of torch.distributed this one is, from 0."""
    return dist.get_rank() if _distributed() else 0


def world_size() -> int:
    """How many processes torch.distributed has."""
    return dist.get_world_size() if _distributed() else 1


def _distributed() -> bool:
    return dist.is_available() and dist.is_initialized()


def seed_everything(seed: int) -> None:
    """Seeds Python, NumPy and PyTorch on all devices."""
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002 - the global generator is what is to be seeded
    torch.manual_seed(seed)


@runtime_checkable
class HasModes(Protocol):
    """What can be evaluated: a ``torch.nn.Module``, or what decoding knows of one."""

    def modules(self) -> Iterator[nn.Module]: ...

    def eval(self) -> Any: ...


@contextmanager
def evaluating(model: HasModes) -> Iterator[None]:
    """Turns dropout and gradients off for the block, and restores each module's mode.

    For one thread at a time: a model that several threads decode with is in ``eval()`` before.
    """
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, training in modes.items():
            module.training = training


@contextmanager
def signals_held() -> Iterator[list[int]]:
    """Ctrl-C, SIGTERM and SIGHUP wait for the end of the block; gives the list of those waiting.

    For a loop that looks at the list wherever it can stop. The third doesn't wait, for a loop that
    never gets there; two may be one Ctrl-C, which torchrun passes on. What is ignored stays
    ignored, and outside the main thread, which alone hears signals, nothing waits.
    """
    waiting: list[int] = []

    def hold(number: int, _: Any) -> None:
        waiting.append(number)
        if len(waiting) > 2:
            signal.signal(number, before[number])
            signal.raise_signal(number)

    main = threading.current_thread() is threading.main_thread()
    heard = [n for n in STOPS if main and signal.getsignal(n) not in (None, signal.SIG_IGN)]
    before = {n: signal.signal(n, hold) for n in heard}
    try:
        yield waiting
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if waiting:
            signal.raise_signal(waiting[0])


class Unfailing:
    """A stream to tell things on, as standard error: it may be full or gone, and work goes on."""

    def __init__(self, stream: Any):
        self.stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def write(self, text: str) -> int:
        with suppress(OSError, ValueError):  # the second where it is closed
            self.stream.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError, ValueError):
            self.stream.flush()


class Timer:
    """``with Timer(device) as timer``: the seconds in ``timer.seconds``; chapter 13.

    A GPU works behind the program's back, so the clock waits for it at both ends.
    """

    def __init__(self, device: torch.device | str | None = None):
        self.device = torch.device(device or default_device())
        self.seconds = float("nan")

    def __enter__(self) -> "Timer":
        self._wait()
        self._start = time.perf_counter()
        return self

    def __exit__(self, *error) -> None:
        self._wait()
        self.seconds = time.perf_counter() - self._start

    def _wait(self) -> None:
        if self.device.type != "cpu":
            torch.accelerator.synchronize(self.device)
