"""How many operations PyTorch is asked for: forward, backward, a token of greedy decoding.

On a GPU each starts a kernel, which takes longer than most kernels of a small batch do. Views,
which start none, are left out; dropout, which each device draws in its own way, is off.
A machine without a GPU can count, too. Run: python -m benchmarks.operations
"""

import argparse
from dataclasses import replace

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks import peers, settings
from transformer.runtime import default_device

MODELS = ("ours", "nn.Transformer", "HF Marian", "HF BART")
UNSAFE_VIEW = torch.ops.aten._unsafe_view.default  # a view whose schema does not say so
N = 8  # tokens after which one more is counted, so that nothing of the start is


class Count(TorchDispatchMode):
    """Inside the block, ``n`` goes up with each operation that is no view."""

    n = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        with self:  # in inference mode, what is made of several comes as one
            result = func.decompose(*args, **kwargs)
        if result is not NotImplemented:
            return result
        self.n += not func.is_view and func is not UNSAFE_VIEW
        return func(*args, **kwargs)


def count_token(decode: peers.Greedy, src: torch.Tensor) -> float:
    with Count() as few:
        decode(src, N)
    with Count() as many:
        decode(src, 2 * N)
    return (many.n - few.n) / N


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--setting", choices=settings.SETTINGS, default="base")
    p.add_argument("--device", type=torch.device, default=default_device())
    options = p.parse_args()
    s = replace(settings.SETTINGS[options.setting], dropout=0.0)
    src, tgt = (tokens.to(options.device) for tokens in settings.batch(s, 2))
    print(f"{s.name}, {options.device}: forward, backward, a token in the way that asks for least")
    for name, model in peers.build(s, only=MODELS).items():
        model.to(options.device).train()
        with Count() as forward:
            loss = model.loss(src, tgt)
        with Count() as backward:
            loss.backward()
        line = f"  {name:16}{forward.n:6}{backward.n:6}"
        if model.eval().uncached is not None:  # without a cache, no token is like the one before
            token = min(count_token(decode, src) for decode in model.greedy.values())
            line += f"{token:8.1f}"
        print(line, flush=True)


if __name__ == "__main__":
    main()
