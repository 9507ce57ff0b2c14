"""One step of training: some batches, one update (chapter 9)."""

import contextlib
import math
import random
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from inspect import Parameter, signature
from numbers import Real
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from transformer.checks import check_positive, check_share
from transformer.runtime import (
    Precision,
    autocast_dtype,
    compile_or_refuse,
    rank,
    uninterrupted,
    world_size,
)
from transformer.training.objective import (
    Schedule,
    count_labels,
    smoothed_cross_entropy,
)
from transformer.training.protocol import Trainable, TrainingBatch, as_module

_KNOWN = signature(DistributedDataParallel).parameters
# the second is deprecated since PyTorch 2.13, which has the first
_SYNC_BUFFERS = next(n for n in ("forward_sync_buffers", "broadcast_buffers") if n in _KNOWN)


@dataclass
class TrainingStep:
    """``step(number)`` takes ``accumulate`` batches and makes one update; chapter 9.

    Under torch.distributed each process takes as many; the loss is the mean over all their tokens.
    ``schedule`` gives the learning rate of steps 1, 2, …: that of the group of parameters whose own
    rate is the highest, and the others keep their share of it; at None each keeps its own rate.
    Gradients longer than ``clip_norm`` are cut to it. What is random is drawn from ``seed`` and the
    number of the step.

    Raises ValueError for bad numbers, and for an optimizer that cannot be used or never learns;
    TypeError for batches and a schedule that are no functions, and for a batch that is none.
    """

    model: Trainable
    batches: Callable[[int], TrainingBatch]
    _: KW_ONLY
    optimizer: torch.optim.Optimizer
    schedule: Schedule | None
    smoothing: float
    clip_norm: float | None
    accumulate: int
    seed: int
    device: torch.device
    precision: Precision
    compiled: bool
    losses: list[Tensor] = field(default_factory=list, init=False)  # of each step, on the device
    whole: bool = field(default=True, init=False)  # no update was begun that did not end

    def __post_init__(self) -> None:
        check_positive(accumulate=self.accumulate)
        check_share(smoothing=self.smoothing)
        if self.clip_norm is not None and not self.clip_norm > 0:
            raise ValueError(f"clip_norm must be positive or None, got {self.clip_norm}")
        self.module = as_module(self.model)
        if not callable(self.batches):
            wanted = "a function from the number of a batch to the batch"
            raise TypeError(f"batches must be {wanted}, got a {type(self.batches).__name__}")
        if self.schedule is not None and not callable(self.schedule):
            wanted = "a function from the number of a step to its learning rate, or None"
            raise TypeError(f"schedule must be {wanted}, got {self.schedule!r:.60}")
        check_optimizer(self.optimizer, self.module)
        self.pad_id = self.model.pad_id
        self.dtype = autocast_dtype(self.device, self.precision)
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=self.dtype == torch.float16)
        self.parameters = [p for group in self.optimizer.param_groups for p in group["params"]]
        devices_before = {p.device for p in self.parameters}
        self.forward: Any = self.module.to(self.device).train()  # what is called: perhaps wrapped
        if devices_before != {self.device}:  # this brings along what the optimizer remembers
            self.optimizer.load_state_dict(self.optimizer.state_dict())
        rates = [float(group["lr"]) for group in self.optimizer.param_groups]
        if self.schedule is None and not any(rates):
            wanted = "where the learning rate of the optimizer is 0, as paper_optimizer has it"
            raise ValueError(f"schedule must be given {wanted}, got None")
        self.shares = [rate / max(rates) if max(rates) else 1.0 for rate in rates]
        # by fully_shard, which shares gradients itself
        self.sharded = hasattr(self.model, "reshard")
        if world_size() > 1 and not self.sharded:
            devices = None if self.device.type == "cpu" else [self.device]
            options: dict[str, Any] = {_SYNC_BUFFERS: False}  # positions are the same everywhere
            self.forward = DistributedDataParallel(self.module, devices, **options)
        if self.compiled:
            self.forward = compile_or_refuse(self.forward)

    def __call__(self, number: int) -> None:
        """Step ``number``, from 1; the mean loss of its tokens, in nats, joins ``losses``."""
        learning_rate = self.learning_rate(number)
        self.module.zero_grad()  # whatever an interrupted step, or the caller, left
        self._reseed(number)
        first = (number - 1) * self.accumulate
        batches = [self.batches(first + i) for i in range(self.accumulate)]
        for batch in batches:
            if not isinstance(batch, TrainingBatch):
                wanted = "batches that have inputs, labels and to, such as Batch"
                raise TypeError(f"batches must give {wanted}, got a {type(batch).__name__}")
        # One mean over the tokens of all batches, here and elsewhere: a mean of the batches' means
        # would count the words of a short batch for more.
        n_tokens = self._sum(sum(count_labels(b.labels, pad_id=self.pad_id) for b in batches))
        total = torch.zeros((), device=self.device)
        for i, batch in enumerate(batches):
            # Gradients add up here; the processes share them once, with the last batch.
            with self._no_sync() if i + 1 < len(batches) else contextlib.nullcontext():
                loss = self.loss(batch.to(self.device, non_blocking=True)) / n_tokens.clamp(min=1)
                self.scaler.scale(loss * world_size()).backward()  # of which DDP takes the mean
            total += loss.detach()
        total = self._sum(total)
        with uninterrupted():  # Ctrl-C finds the weights and the losses of whole steps
            self.whole = False
            self.update(learning_rate)
            self.losses.append(total)
            self.whole = True

    def learning_rate(self, number: int) -> float | None:
        """That of step ``number`` by the schedule; ValueError for one that no step can use."""
        if self.schedule is None:
            return None
        rate = self.schedule(number)
        if not isinstance(rate, Real | Tensor) or not 0 <= rate < math.inf:
            wanted = "a learning rate, finite and at least 0"
            raise ValueError(f"schedule must give {wanted}, got {rate!r} for step {number}")
        return rate

    def loss(self, batch: TrainingBatch) -> Tensor:
        """The summed loss of a batch on ``device``, in nats."""
        with torch.autocast(self.device.type, self.dtype, enabled=self.dtype is not None):
            logits = self.forward(*batch.inputs)
        return smoothed_cross_entropy(
            logits, batch.labels, smoothing=self.smoothing, pad_id=self.pad_id
        )

    def update(self, learning_rate: float | None) -> None:
        """Moves the weights by the gradients that they have."""
        if learning_rate is not None:
            for group, share in zip(self.optimizer.param_groups, self.shares, strict=True):
                group["lr"] = learning_rate * share
        if self.clip_norm is not None:
            self.scaler.unscale_(self.optimizer)
            nn.utils.clip_grad_norm_(self.parameters, self.clip_norm)
        self.scaler.step(self.optimizer)
        self.scaler.update()

    def _reseed(self, number: int) -> None:
        """What step ``number`` draws depends on nothing else."""
        seed = random.Random(f"{self.seed} {number} {rank()}").getrandbits(32)
        torch.default_generator.manual_seed(seed)  # torch.manual_seed asks every kind of device
        if self.device.type != "cpu":
            module = torch.get_device_module(self.device)
            getattr(module, "manual_seed_all", module.manual_seed)(seed)  # a Mac has one GPU

    def _no_sync(self) -> contextlib.AbstractContextManager:
        """Where gradients of several batches are to be shared but once."""
        if isinstance(self.forward, DistributedDataParallel):
            return self.forward.no_sync()
        return contextlib.nullcontext()

    def _sum(self, value: Tensor | int) -> Tensor:
        """Over all processes."""
        value = torch.as_tensor(value, device=self.device)
        if world_size() > 1:
            dist.all_reduce(value)
        return value


def check_optimizer(optimizer: torch.optim.Optimizer, module: nn.Module) -> None:
    """Raises ValueError, which names it, for an optimizer that a step cannot use.

    TypeError for what is none.
    """
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise TypeError(f"optimizer must be made of torch.optim or None, got {optimizer!r:.60}")
    if isinstance(optimizer, torch.optim.SparseAdam):
        raise ValueError("optimizer must take dense gradients, got SparseAdam")
    kind, own = type(optimizer).__name__, set(module.parameters())
    if not all(p in own for group in optimizer.param_groups for p in group["params"]):
        raise ValueError(f"optimizer must move parameters of the model alone, got others in {kind}")
    closure = signature(optimizer.step).parameters.get("closure")
    if closure is not None and closure.default is Parameter.empty:
        raise ValueError(
            f"optimizer must make a step of the gradients, got {kind}: wants a closure"
        )
