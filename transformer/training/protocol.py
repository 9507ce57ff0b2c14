"""What training needs of a model and of its batches: any that have these can be trained."""

from collections.abc import Iterator
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn


@runtime_checkable
class Trainable(Protocol):
    """A ``torch.nn.Module`` that predicts each label from what a batch puts in."""

    @property
    def pad_id(self) -> int | None:
        """The label that counts nothing; at None it is -100, as in PyTorch."""

    def __call__(self, *inputs: Tensor) -> Float[Tensor, "B T vocab"]:
        """The logits of the labels."""

    def parameters(self) -> Iterator[nn.Parameter]: ...

    def modules(self) -> Iterator[nn.Module]: ...

    def to(self, device: torch.device) -> Any: ...

    def train(self) -> Any: ...

    def eval(self) -> Any: ...


@runtime_checkable
class TrainingBatch(Protocol):
    """A batch that says itself what goes into the model, and what is to be predicted."""

    @property
    def inputs(self) -> tuple[Int[Tensor, "B _"], ...]:
        """The arguments of the model."""

    @property
    def labels(self) -> Int[Tensor, "B T"]: ...

    def to(self, device: torch.device | str, *, non_blocking: bool = False) -> Any:
        """A copy of the batch on ``device``."""


def as_module(model: Trainable) -> nn.Module:
    """The model itself, as PyTorch's type: a Protocol cannot say that whoever fits it is one.

    Raises TypeError for one that is none, or has no ``pad_id``, such as a model that PyTorch's
    parallel modules have wrapped.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a torch.nn.Module, got {type(model).__name__}")
    if not isinstance(model, Trainable):
        inside = ": give the model in it, its .module" if hasattr(model, "module") else ""
        raise TypeError(f"model must have a pad_id, got {type(model).__name__}{inside}")
    return model
