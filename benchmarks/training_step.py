"""Forward, backward and Adam: our step beside each peer's, and beside its bare matrix products.

Also: what a step saves for backward, and our step in bfloat16.
Run: python -m benchmarks.training_step
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch import Tensor

from benchmarks import measure, peers, settings


def step(model: peers.Peer, src: Tensor, tgt: Tensor, *, bf16: bool = False) -> Callable[[], None]:
    optimizer = peers.adam(model)

    def run() -> None:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            loss = model.loss(src, tgt)
        loss.backward()
        optimizer.step()

    return run


def linear_shapes(s: settings.Setting) -> Iterator[tuple[int, int, int]]:
    """(m, k, n) of each (m, k) @ (k, n) between activations and a weight, forward."""
    N, d = s.batch * s.length, s.d_model  # sources and targets have one length
    for _ in range(s.n_layers):
        yield from [(N, d, d)] * (4 + 8)  # encoder; decoder, to itself and to the memory
        yield from [(N, d, s.d_ff), (N, s.d_ff, d)] * 2
    yield (N, d, s.vocab_size)


def matrix_flop(s: settings.Setting) -> int:
    """Operations in the matrix products of a step: each has two more of its size in backward."""
    linear = sum(2 * m * k * n for m, k, n in linear_shapes(s))
    attention = 3 * s.n_layers * 2 * (2 * s.batch * s.length**2 * s.d_model)
    return 3 * (linear + attention)


def floor(s: settings.Setting) -> Callable[[], None]:
    """All matrix products of a step and no more, with operands that lie as they do in the model."""
    products = []
    operands: dict[tuple[int, int, int], tuple[Tensor, ...]] = {}
    for m, k, n in linear_shapes(s):
        if (m, k, n) not in operands:
            operands[m, k, n] = torch.randn(m, k), torch.randn(n, k), torch.randn(m, n)
        x, W, dy = operands[m, k, n]
        products += [(torch.mm, x, W.t()), (torch.mm, dy, W), (torch.mm, dy.t(), x)]
    heads, T, d_k = s.batch * s.n_heads, s.length, s.d_model // s.n_heads
    q, keys, dv = (torch.randn(heads, T, d_k) for _ in range(3))
    weights = torch.randn(heads, T, T)
    for _ in range(3 * s.n_layers):
        products += [(torch.bmm, q, keys.mT), (torch.bmm, weights, dv)]
        products += [(torch.bmm, weights, keys), (torch.bmm, weights.mT, q)]
        products += [(torch.bmm, dv, keys.mT), (torch.bmm, weights.mT, dv)]

    def run() -> None:
        for product, a, b in products:
            product(a, b)

    return run


def saved_bytes(model: peers.Peer, src: Tensor, tgt: Tensor) -> int:
    """Of all that the forward pass keeps for backward but the parameters, each storage once."""
    parameters = {p.untyped_storage().data_ptr() for p in model.parameters()}
    saved: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in parameters:
            saved[storage.data_ptr()] = storage.nbytes()
        return tensor  # keeps it alive, so that no address comes twice

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        loss = model.loss(src, tgt)
    total = sum(saved.values())
    loss.backward()
    return total


def has_bf16() -> bool:
    """Whether the processor multiplies bfloat16 in hardware."""
    cpuinfo = Path("/proc/cpuinfo")
    flags = cpuinfo.read_text().split() if cpuinfo.exists() else []
    return "avx512_bf16" in flags or "amx_bf16" in flags


def compare(s: settings.Setting, rounds: int, options) -> dict:
    """Peers as they come, and those whose dropout differs from the paper's also with ours."""
    src, tgt = settings.batch(s)
    models = peers.build(s, only=tuple(options.only))
    if "nn.Transformer" in models:
        models["nn.Transformer, no causal hint"] = peers.TorchTransformer(
            s, dropout_as_ours=False, causal_hint=False
        )
    for name, model in peers.build(s, dropout_as_ours=True, only=tuple(options.only)).items():
        if name in ("nn.Transformer", "x-transformers"):
            models[f"{name}, dropout as ours"] = model
    cases = {name: step(model.train(), src, tgt) for name, model in models.items()}
    if has_bf16():
        ours = peers.build(s, only=("ours",))["ours"].train()
        cases["ours in bfloat16"] = step(ours, src, tgt, bf16=True)
    cases["matrix products alone"] = floor(s)
    title = f"training step, {s.name}, {s.batch} x {s.length}"
    result = measure.compared(title, cases, rounds, of="ours", cpu_time=options.cpu_time)
    saved = {name: saved_bytes(model, src, tgt) for name, model in models.items()}
    for name, n_bytes in saved.items():
        n = models[name].n_parameters()
        print(f"  {name:34}{n:12,} parameters {n_bytes / 1e6:8.1f} MB saved for backward")
    flop = matrix_flop(s)
    print(f"  {flop / 1e9:.2f} GFLOP in matrix products\n", flush=True)
    parameters = {name: model.n_parameters() for name, model in models.items()}
    return {"cases": result, "saved_bytes": saved, "parameters": parameters, "matrix_flop": flop}


if __name__ == "__main__":
    measure.each_setting("training_step", __doc__, compare, small=30, base=5)
