"""What a step of training is made of: its learning rates, its gradients, its update (chapter 9)."""

import contextlib
import math
import random
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from transformer.runtime import compile_or_refuse, rank, world_size
from transformer.training.objective import Schedule, count_labels, smoothed_cross_entropy
from transformer.training.protocol import TrainingBatch


def check_optimizer(optimizer: torch.optim.Optimizer, module: nn.Module) -> None:
    """Raises TypeError for what is no optimizer, ValueError for one of another model's weights."""
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise TypeError(f"optimizer must be made of torch.optim or None, got {optimizer!r:.60}")
    kind, own = type(optimizer).__name__, set(module.parameters())
    if not all(p in own for group in optimizer.param_groups for p in group["params"]):
        raise ValueError(f"optimizer must move parameters of the model alone, got others in {kind}")


def rate_setter(
    optimizer: torch.optim.Optimizer, schedule: Schedule | None
) -> Callable[[int], None]:
    """A function that gives each group of parameters its learning rate for a step, by its number.

    The rate of ``schedule`` is that of the group whose own rate is the highest, and the others keep
    their share of it; at None each keeps its own.

    Raises ValueError where nothing would ever be learned; the function does for a rate that no step
    can use.
    """
    own = [float(group["lr"]) for group in optimizer.param_groups]
    highest = max(own)
    if schedule is None and not highest:
        wanted = "where the learning rate of the optimizer is 0, as paper_optimizer has it"
        raise ValueError(f"schedule must be given {wanted}, got None")
    shares = [rate / highest if highest else 1.0 for rate in own]

    def set_rates(number: int) -> None:
        if schedule is None:
            return
        rate = schedule(number)
        if not isinstance(rate, Real | Tensor) or not 0 <= rate < math.inf:
            wanted = "a learning rate, finite and at least 0"
            raise ValueError(f"schedule must give {wanted}, got {rate!r} for step {number}")
        for group, share in zip(optimizer.param_groups, shares, strict=True):
            group["lr"] = rate * share

    return set_rates


def is_sharded(module: nn.Module) -> bool:
    """Whether ``fully_shard`` has cut the model up, which then shares gradients itself."""
    return hasattr(module, "reshard")


def ready_to_train(
    module: nn.Module, optimizer: torch.optim.Optimizer, device: torch.device, *, compiled: bool
) -> Callable[..., Tensor]:
    """Moves the model and what its optimizer remembers to ``device``; returns what a step calls.

    That is the model itself, or what shares its gradients with other processes, or its compiled
    form.
    """
    devices = {p.device for group in optimizer.param_groups for p in group["params"]}
    forward: Any = module.to(device).train()
    if devices != {device}:
        optimizer.load_state_dict(optimizer.state_dict())
    if world_size() > 1 and not is_sharded(module):
        forward = DistributedDataParallel(module, None if device.type == "cpu" else [device])
    return compile_or_refuse(forward) if compiled else forward


def seed_step(seed: int, number: int, device: torch.device) -> None:
    """Makes what step ``number`` draws in this process depend on nothing but ``seed``."""
    drawn = random.Random(f"{seed} {number} {rank()}").getrandbits(32)
    torch.default_generator.manual_seed(drawn)  # torch.manual_seed asks every kind of device
    if device.type != "cpu":
        generators = torch.get_device_module(device)
        getattr(generators, "manual_seed_all", generators.manual_seed)(drawn)  # a Mac has one GPU


def add_gradients(
    forward: Callable[..., Tensor],
    batches: Sequence[TrainingBatch],
    *,
    pad_id: int | None,
    smoothing: float,
    device: torch.device,
    dtype: torch.dtype | None,
    scaler: torch.amp.GradScaler,
) -> Tensor:
    """The mean loss of the tokens of all batches, in nats; its gradients are added to the weights'.

    Under torch.distributed it is the mean over the tokens of all processes.
    """
    for batch in batches:
        if not isinstance(batch, TrainingBatch):
            wanted = "batches that have inputs, labels and to, such as Batch"
            raise TypeError(f"batches must give {wanted}, got a {type(batch).__name__}")
    # One mean over the tokens of all batches, here and elsewhere: a mean of the batches' means
    # would count the words of a short batch for more.
    n_tokens = _sum(sum(count_labels(batch.labels, pad_id=pad_id) for batch in batches), device)
    total = torch.zeros((), device=device)
    for i, batch in enumerate(batches):
        # the processes share their gradients once, with the last batch
        waits = isinstance(forward, DistributedDataParallel) and i + 1 < len(batches)
        with forward.no_sync() if waits else contextlib.nullcontext():  # type: ignore[attr-defined]
            moved = batch.to(device, non_blocking=True)
            with torch.autocast(device.type, dtype, enabled=dtype is not None):
                logits = forward(*moved.inputs)
            loss = smoothed_cross_entropy(logits, moved.labels, smoothing=smoothing, pad_id=pad_id)
            loss = loss / n_tokens.clamp(min=1)
            scaler.scale(loss * world_size()).backward()  # of which DDP takes the mean
        total += loss.detach()
    return _sum(total, device)


def _sum(value: Tensor | int, device: torch.device) -> Tensor:
    """The sum of ``value`` over all processes."""
    value = torch.as_tensor(value, device=device)
    if world_size() > 1:
        dist.all_reduce(value)
    return value


def update(
    optimizer: torch.optim.Optimizer, scaler: torch.amp.GradScaler, clip_norm: float | None
) -> None:
    """Moves the weights by their gradients, cut to ``clip_norm`` where they are longer."""
    if clip_norm is not None:
        scaler.unscale_(optimizer)
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        nn.utils.clip_grad_norm_(parameters, clip_norm)
    scaler.step(optimizer)
    scaler.update()
