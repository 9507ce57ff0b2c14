"""The training loop: one device or many, resumable to the bit (chapter 9)."""

import contextlib
import math
import random
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from tqdm import tqdm

from transformer.checks import check_positive
from transformer.data.batches import Batch
from transformer.runtime import Precision, autocast_dtype, default_device, evaluating
from transformer.training.checkpoint import checkpoints, load_checkpoint, save_checkpoint
from transformer.training.objective import Schedule, paper_optimizer, smoothed_cross_entropy


@dataclass
class History:
    """What ``fit`` saw: the training loss of each step, and what ``evaluate`` returned, by step."""

    losses: list[float] = field(default_factory=list)  # nats per token, smoothing included
    evaluations: dict[int, float] = field(default_factory=dict)


def fit(
    model: nn.Module,
    batches: Callable[[int], Batch],
    *,
    n_steps: int,
    schedule: Schedule,
    smoothing: float = 0.1,
    clip_norm: float | None = 1.0,
    accumulate: int = 1,
    seed: int = 0,
    device: torch.device | str | None = None,
    precision: Precision = "auto",
    compiled: bool = False,
    run: str | Path | None = None,
    save_every: int | None = None,
    evaluate: Callable[[nn.Module], float] | None = None,
    evaluate_every: int | None = None,
    progress: bool = True,
) -> History:
    """Trains ``model`` on batches(0), batches(1), …, with teacher forcing; chapter 9.

    A step takes ``accumulate`` batches, and under torch.distributed as many from each process; its
    loss is the mean over all their tokens. Gradients longer than ``clip_norm`` are cut to it.
    ``schedule`` gives the learning rate of steps 1, 2, …. With ``run``, a folder, it saves a
    checkpoint every ``save_every`` steps and at the end, and goes on from the last one there.
    What is random is drawn from ``seed`` and the number of the step, so that training in pieces
    gives the same weights; the caller's generator is left as it was.

    Raises ValueError for bad numbers and damaged checkpoints, FloatingPointError when the loss
    or a weight is no longer finite. ``model`` ends on ``device`` and in training mode.
    """
    check_positive(n_steps=n_steps, accumulate=accumulate)
    for name, every in {"save_every": save_every, "evaluate_every": evaluate_every}.items():
        if every is not None:
            check_positive(**{name: every})
    if clip_norm is not None and not clip_norm > 0:
        raise ValueError(f"clip_norm must be positive or None, got {clip_norm}")
    device = torch.device(device or default_device())
    step = _Step(
        model=model.to(device),
        batches=batches,
        schedule=schedule,
        smoothing=smoothing,
        clip_norm=clip_norm,
        accumulate=accumulate,
        seed=seed,
        device=device,
        precision=precision,
        compiled=compiled,
    )
    history, done = _resume(run, step)
    if done > n_steps:
        raise ValueError(f"n_steps must be at least the {done} done in {run}, got {n_steps}")
    save_every, evaluate_every = save_every or n_steps, evaluate_every or n_steps
    bar = tqdm(total=n_steps, initial=done, disable=not progress or _rank() > 0, leave=False)
    pending = []  # losses that are still on the device
    with bar, torch.random.fork_rng([device] if device.type == "cuda" else []):
        for number in range(done + 1, n_steps + 1):
            last = number == n_steps
            pending.append(step(number))
            bar.update()
            if last or number % 10 == 0 or number % save_every == 0:
                _read(pending, history)
                bar.set_postfix(loss=f"{history.losses[-1]:.3f}")
            try:
                if evaluate and (last or number % evaluate_every == 0):
                    with evaluating(model):
                        history.evaluations[number] = float(evaluate(model))
            finally:
                if run is not None and (last or number % save_every == 0):
                    _save(run, step, number, history)
    return history


@dataclass
class _Step:
    """One step of training: some batches, one update."""

    model: nn.Module
    batches: Callable[[int], Batch]
    schedule: Schedule
    smoothing: float
    clip_norm: float | None
    accumulate: int
    seed: int
    device: torch.device
    precision: Precision
    compiled: bool

    def __post_init__(self):
        self.dtype = autocast_dtype(self.device, self.precision)
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=self.dtype == torch.float16)
        self.parameters = list(self.model.parameters())
        self.optimizer = paper_optimizer(self.parameters)
        self.forward = self.model.train()
        if _world() > 1:
            devices = [self.device] if self.device.type == "cuda" else None
            self.forward = DistributedDataParallel(self.model, devices, broadcast_buffers=False)
        if self.compiled:
            self.forward = torch.compile(self.forward)

    def __call__(self, number: int) -> Tensor:
        """Step ``number``, from 1; returns the mean loss of its tokens, in nats."""
        self.optimizer.zero_grad()  # whatever an interrupted step, or the caller, left
        self._reseed(number)
        first = (number - 1) * self.accumulate
        batches = [self.batches(first + i) for i in range(self.accumulate)]
        n_tokens = self._sum(sum(_count(batch, self.model.pad_id) for batch in batches))
        total = torch.zeros((), device=self.device)
        for i, batch in enumerate(batches):
            with self._no_sync() if i + 1 < len(batches) else contextlib.nullcontext():
                loss = self._loss(batch.to(self.device, non_blocking=True)) / n_tokens.clamp(min=1)
                self.scaler.scale(loss * _world()).backward()  # of which DDP takes the mean
            total += loss.detach()
        self._update(self.schedule(number))
        return self._sum(total)

    def _reseed(self, number: int) -> None:
        """What step ``number`` draws depends on nothing else."""
        seed = random.Random(f"{self.seed} {number} {_rank()}").getrandbits(32)
        torch.default_generator.manual_seed(seed)  # torch.manual_seed asks every kind of device
        if self.device.type == "cuda":
            torch.cuda.manual_seed_all(seed)

    def _loss(self, batch: Batch) -> Tensor:
        with torch.autocast(self.device.type, self.dtype, enabled=self.dtype is not None):
            logits = self.forward(batch.src, batch.tgt[:, :-1])
        labels, pad_id = batch.tgt[:, 1:], self.model.pad_id
        return smoothed_cross_entropy(logits, labels, smoothing=self.smoothing, pad_id=pad_id)

    def _update(self, learning_rate: float) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate
        if self.clip_norm is not None:
            self.scaler.unscale_(self.optimizer)
            nn.utils.clip_grad_norm_(self.parameters, self.clip_norm)
        self.scaler.step(self.optimizer)
        self.scaler.update()

    def _no_sync(self) -> contextlib.AbstractContextManager:
        return self.forward.no_sync() if _world() > 1 else contextlib.nullcontext()

    def _sum(self, value: Tensor | int) -> Tensor:
        """Over all processes."""
        value = torch.as_tensor(value, device=self.device)
        if _world() > 1:
            dist.all_reduce(value)
        return value


def evaluate_loss(model: nn.Module, batches: Iterable[Batch]) -> float:
    """The mean cross-entropy of the labels, in nats, without smoothing; exp of it is perplexity."""
    device = next(model.parameters()).device
    total, n_tokens = 0.0, 0
    with evaluating(model):
        for batch in batches:
            src, tgt = batch.to(device)
            logits = model(src, tgt[:, :-1])
            loss = smoothed_cross_entropy(logits, tgt[:, 1:], smoothing=0.0, pad_id=model.pad_id)
            total, n_tokens = total + loss.item(), n_tokens + _count(batch, model.pad_id)
    if n_tokens == 0:
        raise ValueError("batches must hold at least one label, got none")
    return total / n_tokens


def _count(batch: Batch, pad_id: int) -> int:
    """The labels that count."""
    return int((batch.tgt[:, 1:] != pad_id).sum())


def _read(pending: list[Tensor], history: History) -> None:
    """Moves losses from the device into the history, all at once."""
    for loss in torch.stack(pending).tolist():
        history.losses.append(loss)
        if not math.isfinite(loss):
            raise FloatingPointError(f"the loss of step {len(history.losses)} is {loss}")
    pending.clear()


def _resume(run: str | Path | None, step: _Step) -> tuple[History, int]:
    if run is None:
        return History(), 0
    Path(run).mkdir(parents=True, exist_ok=True)
    saved = checkpoints(run)
    if not saved:
        return History(), 0
    done, state = load_checkpoint(saved[-1], step.model, step.optimizer)
    step.scaler.load_state_dict(state["scaler"])
    evaluations = {int(number): value for number, value in state["evaluations"].items()}
    return History(state["losses"], evaluations), done


def _save(run: str | Path, step: _Step, number: int, history: History) -> None:
    if not all(p.isfinite().all() for p in step.model.parameters()):
        raise FloatingPointError(f"after step {number} a weight is not finite: nothing was saved")
    if _rank() == 0:
        state = {"scaler": step.scaler.state_dict(), **asdict(history)}
        save_checkpoint(run, step.model, step.optimizer, step=number, state=state)
    if _world() > 1:
        dist.barrier()


def _rank() -> int:
    return dist.get_rank() if _distributed() else 0


def _world() -> int:
    return dist.get_world_size() if _distributed() else 1


def _distributed() -> bool:
    return dist.is_available() and dist.is_initialized()
