"""A GPU that is not there: tensors that have a shape and a device, and no numbers."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode

GPU = torch.device("cuda:0")  # with its number: for that of "cuda" PyTorch would ask a driver
aten = torch.ops.aten
# What Python's bindings guard with a driver's device, and the operation behind each.
DETOURS = {
    Tensor.__invert__: aten.bitwise_not,
    Tensor.contiguous: aten.contiguous,
    Tensor.copy_: aten.copy_,
    Tensor.float: partial(aten._to_copy, dtype=torch.float32),
}


class _WithoutDriver(TorchFunctionMode):
    """Leads what would ask a driver round it, and answers each question about numbers with yes.

    A build without CUDA refuses fake tensors to Python's indexing and to some methods, though not
    to the operations that these are made of. A yes means that all sentences go on: boolean indexing
    keeps every row.
    """

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is Tensor.__getitem__:
            return _getitem(*args)
        if func is Tensor.__setitem__:
            x, index, value = args
            value = (
                value if isinstance(value, Tensor) else aten.full_like(_getitem(x, index), value)
            )
            if isinstance(index, Tensor) and index.dtype == torch.bool:
                index = slice(None)
            indices = index if isinstance(index, tuple) else (index,)
            if any(isinstance(i, Tensor) for i in indices):
                return _check_one_device(x, value, *(i for i in indices if isinstance(i, Tensor)))
            return aten.copy_(_getitem(x, index), value)
        if func is Tensor.__bool__:
            return True
        return DETOURS.get(func, func)(*args, **(kwargs or {}))


def _getitem(x: Tensor, index) -> Tensor:
    indices = list(index) if isinstance(index, tuple) else [index]
    if ... in indices:
        at, n = indices.index(...), sum(i is not None and i is not ... for i in indices)
        indices[at : at + 1] = [slice(None)] * (x.dim() - n)
    dim, by_tensor = 0, {}
    for i in indices:
        if i is None:
            x, dim = aten.unsqueeze(x, dim), dim + 1
        elif isinstance(i, slice):
            x, dim = aten.slice(x, dim, i.start, i.stop, i.step or 1), dim + 1
        elif isinstance(i, int):
            x = aten.select(x, dim, i)
        else:
            by_tensor[dim], dim = i, dim + 1
    _check_one_device(x, *by_tensor.values())
    chosen = {d: i for d, i in by_tensor.items() if i.dtype != torch.bool}
    return aten.index(x, [chosen.get(d) for d in range(x.dim())]) if chosen else x


def _check_one_device(*tensors: Tensor) -> None:
    """A GPU takes an index on the CPU as well; but each such index makes it wait."""
    devices = {tensor.device for tensor in tensors}
    if len(devices) > 1:
        raise RuntimeError(f"indexing mixes the devices {sorted(map(str, devices))}")


@contextmanager
def fake_gpu() -> Iterator[None]:
    """While it lasts, all new tensors are fake; those on :data:`GPU` stay there or raise."""
    with FakeTensorMode(), _WithoutDriver(), torch.no_grad():
        yield


def moved(module: nn.Module, dtype: torch.dtype | None = None) -> nn.Module:
    """What ``module.to(GPU, dtype)`` does: parameters and buffers move, each once, nothing else.

    ``to`` itself swaps tensors in place, which fake ones do not let it.
    """
    done: dict[int, Tensor] = {}
    for part in module.modules():
        for kind, wrap in ((part._parameters, nn.Parameter), (part._buffers, Tensor.detach)):
            for name, tensor in kind.items():
                if tensor is not None:
                    kind[name] = done.setdefault(id(tensor), wrap(tensor.detach().to(GPU, dtype)))
    return module
