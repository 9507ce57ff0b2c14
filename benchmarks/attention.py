"""The fused kernel beside the readable reference: time and memory at 128, 512 and 2048 tokens.

Run: python -m benchmarks.attention
"""

import multiprocessing
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from benchmarks import measure
from transformer.attention import attention
from transformer.fused import fused_attention

BATCH, HEADS, D_K = 4, 8, 64
ATTEND = {"fused": fused_attention, "reference": attention}
ROUNDS = {"tokens_128": 20, "tokens_512": 10, "tokens_2048": 3}


def inputs(tokens: int, device: str) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    shape = (BATCH, HEADS, tokens, D_K)
    return [torch.randn(shape, generator=generator).to(device).requires_grad_() for _ in range(3)]


def passes(attend: Callable, qkv: list[Tensor]) -> dict[str, Callable[[], None]]:
    """What is measured of an attention function."""

    def forward() -> None:
        with torch.no_grad():
            attend(*qkv)

    def both() -> None:
        torch.autograd.grad(attend(*qkv).sum(), qkv)

    return {"forward": forward, "forward and backward": both}


def synchronised(run: Callable[[], None]) -> Callable[[], None]:
    def wait() -> None:
        run()
        torch.cuda.synchronize()

    return wait


def peak_bytes(attend: str, what: str, tokens: int, device: str) -> int:
    """The most memory that it takes beyond what its process had before; in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as process:
        return process.apply(_peak_here, (attend, what, tokens, device))


def _peak_here(attend: str, what: str, tokens: int, device: str) -> int:
    torch.set_num_threads(1)
    for run in passes(ATTEND[attend], inputs(16, device)).values():
        run()  # loads whatever is loaded at the first call
    run = passes(ATTEND[attend], inputs(tokens, device))[what]
    if device == "cuda":
        before = torch.cuda.memory_allocated()
        run()
        return torch.cuda.max_memory_allocated() - before
    Path("/proc/self/clear_refs").write_text("5")  # Linux: the high-water mark starts anew
    before = _status("VmRSS")
    run()
    return _status("VmHWM") - before


def _status(name: str) -> int:
    """In bytes, of this process."""
    return 1024 * int(Path("/proc/self/status").read_text().split(f"{name}:")[1].split()[0])


def compare(tokens: int, rounds: int, device: str, options) -> dict:
    qkv = inputs(tokens, device)
    cases = {}
    chosen = [attend for attend in ATTEND if not options.only or attend in options.only]
    for attend in chosen:
        for what, run in passes(ATTEND[attend], qkv).items():
            cases[f"{attend}, {what}"] = synchronised(run) if device == "cuda" else run
    peaks = {}
    for name in cases:
        attend, what = name.split(", ")
        peaks[name] = peak_bytes(attend, what, tokens, device)
    seconds = measure.interleave(cases, rounds, cpu_time=options.cpu_time)
    result: dict[str, dict] = {}
    for what in ("forward", "forward and backward"):
        pair = {name: t for name, t in seconds.items() if name.endswith(f", {what}")}
        result |= measure.summary(pair, of=f"{chosen[0]}, {what}")
    measure.show(f"attention, {tokens} tokens, {BATCH} x {HEADS} heads of {D_K}", result)
    for name, peak in peaks.items():
        print(f"  {name:34}{peak / 1e6:10.1f} MB")
    print(flush=True)
    return {"cases": result, "peak_bytes": peaks}


def main() -> None:
    options = measure.start(measure.parser(__doc__, **ROUNDS))
    if options is None:
        return
    device = "cuda" if torch.cuda.is_available() else "cpu"
    results = {}
    for name in options.settings:
        tokens = int(name.removeprefix("tokens_"))
        results[name] = compare(tokens, options.rounds or ROUNDS[name], device, options)
    if not options.only:
        measure.save("attention", options.threads[0], results)


if __name__ == "__main__":
    main()
