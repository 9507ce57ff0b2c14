"""Forward, backward and Adam: our step beside each peer's, and beside its bare matrix products."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from benchmarks import peers
from benchmarks.settings import SETTINGS, Setting, sentences
from benchmarks.timing import Cases


def training_step(setting: str, device: torch.device) -> tuple[Cases, dict]:
    """Peers as they come, those whose dropout differs from the paper's also with ours; and how
    many bytes each saves for backward, and how many parameters it has.

    On a GPU all of it is in bfloat16, on a CPU one case more.
    """
    s, bfloat16 = SETTINGS[setting], device.type != "cpu"
    src, tgt = sentences(s, device)
    models = peers.build(s, device)
    for name, model in peers.build(
        s, device, dropout_as_ours=True, only=("nn.Transformer", "x-transformers")
    ).items():
        models[f"{name}, dropout as ours"] = model
    cases: Cases = {
        name: step(model.train(), src, tgt, bfloat16=bfloat16) for name, model in models.items()
    }
    if not bfloat16:
        ours = peers.build(s, device, only=("ours",))["ours"].train()
        cases["ours in bfloat16"] = step(ours, src, tgt, bfloat16=True)
    cases["matrix products alone"] = matrix_products(s, device, bfloat16=bfloat16)
    saved = {name: saved_bytes(model, src, tgt) for name, model in models.items()}
    parameters = {
        name: sum(p.numel() for p in model.parameters() if p.requires_grad)
        for name, model in models.items()
    }
    return cases, {"saved_bytes": saved, "parameters": parameters}


def step(model: peers.Peer, src: Tensor, tgt: Tensor, *, bfloat16: bool) -> Callable[[], None]:
    optimizer = peers.adam(model)

    def run() -> None:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(src.device.type, torch.bfloat16, enabled=bfloat16):
            loss = model.loss(src, tgt)
        loss.backward()
        optimizer.step()

    return run


def linear_shapes(s: Setting) -> Iterator[tuple[int, int, int]]:
    """(m, k, n) of each (m, k) @ (k, n) between activations and a weight, forward."""
    N, d = s.batch * s.length, s.d_model  # sources and targets have one length
    for _ in range(s.n_layers):
        yield from [(N, d, d)] * (4 + 8)  # encoder; decoder, to itself and to the memory
        yield from [(N, d, s.d_ff), (N, s.d_ff, d)] * 2
    yield (N, d, s.vocab_size)


def matrix_products(s: Setting, device: torch.device, *, bfloat16: bool) -> Callable[[], None]:
    """All matrix products of a step and no more, with operands that lie as they do in the model."""

    def random(*shape: int) -> Tensor:
        return torch.randn(shape, device=device, dtype=torch.bfloat16 if bfloat16 else None)

    products = []
    operands = {
        (m, k, n): (random(m, k), random(n, k), random(m, n)) for m, k, n in set(linear_shapes(s))
    }
    for shape in linear_shapes(s):
        x, W, dy = operands[shape]
        products += [(torch.mm, x, W.t()), (torch.mm, dy, W), (torch.mm, dy.t(), x)]
    heads, T, d_k = s.batch * s.n_heads, s.length, s.d_model // s.n_heads
    q, keys, dv = (random(heads, T, d_k) for _ in range(3))
    weights = random(heads, T, T)
    for _ in range(3 * s.n_layers):
        products += [(torch.bmm, q, keys.mT), (torch.bmm, weights, dv)]
        products += [(torch.bmm, weights, keys), (torch.bmm, weights.mT, q)]
        products += [(torch.bmm, dv, keys.mT), (torch.bmm, weights.mT, dv)]

    def run() -> None:
        for product, a, b in products:
            product(a, b)

    return run


def saved_bytes(model: peers.Peer, src: Tensor, tgt: Tensor) -> int:
    """Bytes of all that forward keeps for backward but the parameters, each storage once."""
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
