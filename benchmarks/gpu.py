"""Training on a GPU: tokens per second and model-FLOP utilisation, beside nn.Transformer.

Base and big in bfloat16, with and without torch.compile; and as on a T4: float16 with a gradient
scaler and no flash kernel. On a machine with CUDA: python -m benchmarks.gpu
Anywhere, with tiny sizes, to see that it runs: python -m benchmarks.gpu --device cpu --rehearse
"""

import argparse
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from benchmarks import measure, peers, settings
from benchmarks.training_step import matrix_flop

# Dense tensor-core operations per second, by the makers' data sheets.
PEAK = {
    "H200": 989e12,
    "H100": 989e12,
    "A100": 312e12,
    "L4": 121e12,
    "T4": 65e12,
}
MODES: dict[str, dict[str, Any]] = {
    "bfloat16": {"dtype": torch.bfloat16},
    "bfloat16, compiled": {"dtype": torch.bfloat16, "compiled": True},
    "float16, no flash kernel": {"dtype": torch.float16, "flash": False},
}


def step(
    model: peers.Peer,
    src: Tensor,
    tgt: Tensor,
    *,
    dtype: torch.dtype,
    compiled: bool = False,
    flash: bool = True,
) -> Callable[[], None]:
    device = src.device.type
    optimizer = peers.adam(model)
    scaler = torch.amp.GradScaler(device, enabled=dtype == torch.float16)
    loss_of = torch.compile(model.loss) if compiled else model.loss
    slow = [SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]

    def run() -> None:
        optimizer.zero_grad(set_to_none=True)
        with nullcontext() if flash else sdpa_kernel(slow), torch.autocast(device, dtype):
            loss = loss_of(src, tgt)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    return run


def seconds_per_step(run: Callable[[], None], device: str, steps: int) -> float:
    """The median of five runs of ``steps`` each, after three steps to warm up."""
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    for _ in range(3):
        run()
    times = []
    for _ in range(5):
        wait()
        begin = time.perf_counter()
        for _ in range(steps):
            run()
        wait()
        times.append((time.perf_counter() - begin) / steps)
    return sorted(times)[2]


def compare(s: settings.Setting, device: str, steps: int) -> dict:
    src, tgt = (tokens.to(device) for tokens in settings.batch(s))
    gpu = torch.cuda.get_device_name() if device == "cuda" else ""
    peak = next((flops for name, flops in PEAK.items() if name in gpu), None)
    result = {}
    for mode, how in MODES.items():
        models = peers.build(s, only=("ours", "nn.Transformer"))
        models |= {
            f"{name}, dropout as ours": model
            for name, model in peers.build(
                s, dropout_as_ours=True, only=("nn.Transformer",)
            ).items()
        }
        for name, model in models.items():
            seconds = seconds_per_step(
                step(model.to(device).train(), src, tgt, **how), device, steps
            )
            tokens = s.batch * s.length / seconds  # of the target
            share = matrix_flop(s) / seconds / peak if peak else None
            result[f"{name}, {mode}"] = {"tokens_per_second": tokens, "utilisation": share}
            known = f"{share:.1%} of peak" if share is not None else "peak not known"
            print(f"{s.name}: {name}, {mode}: {tokens:,.0f} tokens/s, {known}")
    return result


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    p.add_argument("--rehearse", action="store_true", help="tiny sizes; writes no result")
    options = p.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        sys.exit("benchmarks.gpu needs a CUDA device; --device cpu --rehearse runs it without one")
    if options.device == "cpu" and not options.rehearse:
        sys.exit("benchmarks.gpu measures GPUs: on a CPU only --rehearse makes sense")
    if options.rehearse:
        compare(settings.SETTINGS["tiny"], options.device, steps=1)
        return
    sizes = {"base": (128, 128), "big": (64, 128)}
    results = {}
    for name, (batch, length) in sizes.items():
        setting = replace(settings.SETTINGS[name], batch=batch, length=length)
        results[name] = compare(setting, options.device, steps=20)
    measure.save("gpu", torch.get_num_threads(), results)


if __name__ == "__main__":
    main()
