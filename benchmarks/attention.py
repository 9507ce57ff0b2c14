"""The fused kernel beside the readable reference: time and memory of one call."""

import multiprocessing
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.timing import Cases
from transformer.attention import attention as reference
from transformer.fused import fused_attention

BATCH, HEADS, D_K = 4, 8, 64
ATTEND = {"fused": fused_attention, "reference": reference}


def attention(setting: str, device: torch.device) -> tuple[Cases, dict]:
    """The cases of such a setting as "512 tokens, forward", and each one's peak of memory."""
    words, _, passes = setting.partition(" tokens, ")
    tokens = int(words)
    cases = {name: call(attend, passes, tokens, device) for name, attend in ATTEND.items()}
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as process:
        peaks = {name: process.apply(peak, (name, passes, tokens, device)) for name in ATTEND}
    return cases, {"peak_bytes": peaks}


def call(attend: Callable, passes: str, tokens: int, device: torch.device) -> Callable[[], object]:
    generator = torch.Generator().manual_seed(0)
    shape = (BATCH, HEADS, tokens, D_K)
    qkv = [torch.randn(shape, generator=generator).to(device).requires_grad_() for _ in range(3)]

    def forward() -> Tensor:
        with torch.no_grad():
            return attend(*qkv)

    def forward_and_backward() -> tuple[Tensor, ...]:
        return torch.autograd.grad(attend(*qkv).sum(), qkv)

    return {"forward": forward, "forward and backward": forward_and_backward}[passes]


def peak(name: str, passes: str, tokens: int, device: torch.device) -> int:
    """The most bytes that a call takes beyond its inputs; for a process that has made no other."""
    torch.set_num_threads(1)
    for warm_up in ("forward", "forward and backward"):
        call(ATTEND[name], warm_up, 16, device)()  # loads whatever is loaded at the first call
    run = call(ATTEND[name], passes, tokens, device)
    if device.type == "cuda":
        before = torch.cuda.memory_allocated()
        run()
        return torch.cuda.max_memory_allocated() - before
    Path("/proc/self/clear_refs").write_text("5")  # Linux: the high-water mark starts anew
    before = _status("VmRSS")
    run()
    return _status("VmHWM") - before


def _status(name: str) -> int:
    """Bytes of this process, by the kernel's name for them."""
    return 1024 * int(Path("/proc/self/status").read_text().split(f"{name}:")[1].split()[0])
