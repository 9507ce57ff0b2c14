"""The training loop: one device or many, resumable to the bit (chapter 9)."""

import contextlib
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sized
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from tqdm import tqdm

from transformer.checks import check_positive
from transformer.files import only_writer
from transformer.runtime import (
    Precision,
    Unfailing,
    default_device,
    evaluating,
    rank,
    uninterrupted,
    world_size,
)
from transformer.training.checkpoint import (
    checkpoints,
    load_checkpoint,
    save_checkpoint,
    step_of,
)
from transformer.training.objective import (
    Schedule,
    count_labels,
    paper_optimizer,
    smoothed_cross_entropy,
)
from transformer.training.protocol import Trainable, TrainingBatch, as_module
from transformer.training.step import TrainingStep


@dataclass
class History:
    """What ``fit`` saw: the training loss of each step, and what ``evaluate`` returned, by step."""

    losses: list[float] = field(default_factory=list)  # nats per token, smoothing included
    evaluations: dict[int, float] = field(default_factory=dict)


def fit(
    model: Trainable,
    batches: Callable[[int], TrainingBatch],
    *,
    n_steps: int,
    optimizer: torch.optim.Optimizer | None = None,
    schedule: Schedule | None = None,
    smoothing: float = 0.1,
    clip_norm: float | None = 1.0,
    accumulate: int = 1,
    seed: int = 0,
    device: torch.device | str | None = None,
    precision: Precision = "auto",
    compiled: bool = False,
    run: str | Path | None = None,
    save_every: int | None = None,
    keep: int = 2,
    label: str | None = None,
    evaluate: Callable[[Any], float] | None = None,
    evaluate_every: int | None = None,
    progress: bool = True,
) -> History:
    """Trains ``model`` on batches(0), batches(1), …, with teacher forcing; chapter 9.

    With ``run``, a folder, it saves every ``save_every`` steps, at the end, and before Ctrl-C or
    another error ends it, and goes on from there, to the same weights; the ``keep`` latest
    checkpoints and the best stay, each with ``label``, by which the caller knows what else belongs
    to it. ``model`` ends on ``device``, in training mode, after a whole step. See ``TrainingStep``.

    ``optimizer`` is any of ``torch.optim`` over parameters of ``model``, which need not be all, in
    one group or several: ``torch.optim.AdamW(model.parameters(), lr=3e-4)``; at None it is the
    paper's Adam, which needs a ``schedule``. The rate that ``schedule`` gives is that of the group
    whose own rate is the highest, and the others keep their share of it; at None each group keeps
    its own. What goes on from a checkpoint has its numbers from there, as ``load_state_dict`` does.

    ``compiled`` is for where starting kernels is what a step waits for: on an H200 a step of the
    base model with 128 sentences of 128 words took 27.8 ms compiled and about 50 ms otherwise,
    after half a minute of compiling.

    Raises ValueError for bad numbers and checkpoints, and for an optimizer that cannot be used;
    FloatingPointError for NaN and infinity, BlockingIOError where another process is training in
    ``run``.
    """
    save_every = n_steps if save_every is None else save_every
    evaluate_every = n_steps if evaluate_every is None else evaluate_every
    check_positive(n_steps=n_steps, save_every=save_every, evaluate_every=evaluate_every, keep=keep)
    if optimizer is None:
        if schedule is None:
            raise ValueError("schedule must be given to the paper's Adam, optimizer=None, got None")
        optimizer = paper_optimizer(as_module(model).parameters())
    step = TrainingStep(
        model, batches, optimizer=optimizer, schedule=schedule, smoothing=smoothing,
        clip_norm=clip_norm, accumulate=accumulate, seed=seed, precision=precision,
        device=torch.device(device or default_device()), compiled=compiled,
    )  # fmt: skip
    if run is not None and step.sharded:
        wanted = "for a model of fully_shard, which torch.distributed.checkpoint saves"
        raise ValueError(f"run must be None {wanted}, got {str(run)!r}")

    def after(number: int) -> None:
        last = number == n_steps
        measure = evaluate if last or number % evaluate_every == 0 else None
        place = run if last or number % save_every == 0 else None
        # Losses stay on the device until someone asks: on a GPU, to look at one is to wait for it.
        if measure or place or last or number % 10 == 0:
            _read_losses(step, history)
            bar.set_postfix(loss=f"{_mean(history.losses[-100:]):.3f}")
        if measure is not None:
            with evaluating(step.module):
                value = float(measure(model))
            _report(step, history, value, bar)
            history.evaluations[number] = value
        if place is not None:
            _save(step, history, place, keep, label)
            if world_size() > 1:
                dist.barrier()  # no process goes on, and perhaps fails, before the first has saved

    @contextlib.contextmanager
    def saved_before_an_error() -> Iterator[None]:
        try:
            yield
        except FloatingPointError:
            raise
        except BaseException:  # which other processes may have met elsewhere: no waiting
            with uninterrupted():  # torchrun passes on the Ctrl-C that its processes had, too
                if run is not None and step.whole:
                    _read_losses(step, history)
                    if len(history.losses) not in [0, *map(step_of, checkpoints(run))]:
                        _save(step, history, run, keep, label)
            raise

    # of many processes the first is the one that writes
    with only_writer(run) if run is not None and rank() == 0 else contextlib.nullcontext():
        with uninterrupted():  # Ctrl-C finds the weights as they were, or as they are resumed
            history = _resumed(step, run)
        done = len(history.losses)
        if done > n_steps:
            raise ValueError(f"n_steps must be at least the {done} done in {run}, got {n_steps}")
        told, shown = Unfailing(sys.stderr), progress and rank() == 0
        bar = tqdm(total=n_steps, initial=done, disable=not shown, leave=False, file=told)
        devices = [] if step.device.type == "cpu" else [step.device]
        generators = torch.random.fork_rng(devices, device_type=step.device.type)
        # saved twice: a signal that waited for a collective which failed interrupts the first
        with bar, generators, saved_before_an_error(), saved_before_an_error():
            for number in range(done + 1, n_steps + 1):
                step(number)
                bar.update()
                after(number)
    return history


def _resumed(step: TrainingStep, run: str | Path | None) -> History:
    """Restores the last checkpoint in ``run``, if there is one; what it saw."""
    saved = checkpoints(run) if run is not None else []
    if not saved:
        return History()
    _, state = load_checkpoint(saved[-1], step.module, step.optimizer)
    try:
        losses, evaluations, scale = (state[key] for key in ("losses", "evaluations", "scaler"))
    except KeyError as error:
        raise ValueError(f"{saved[-1]} was not saved by fit: it has no {error}") from None
    if scale:  # which is empty where no half precision was scaled
        step.scaler.load_state_dict(scale)
    return History(losses, {int(number): value for number, value in evaluations.items()})


def _save(
    step: TrainingStep, history: History, run: str | Path, keep: int, label: str | None
) -> None:
    number = len(history.losses)
    if not all(p.isfinite().all() for p in step.module.parameters()):
        raise FloatingPointError(f"after step {number} a weight is not finite: nothing was saved")
    if rank() == 0:
        state = {"scaler": step.scaler.state_dict(), "label": label, **asdict(history)}
        save_checkpoint(run, step.module, step.optimizer, step=number, state=state, keep=keep)


def _read_losses(step: TrainingStep, history: History) -> None:
    """Moves losses from the device into the history, all at once."""
    done = len(history.losses)
    values = torch.stack(step.losses).tolist() if step.losses else []
    with uninterrupted():
        history.losses += values
        step.losses.clear()
    for number, loss in enumerate(values, done + 1):
        if not math.isfinite(loss):
            raise FloatingPointError(f"the loss of step {number} is {loss}")


def _report(step: TrainingStep, history: History, value: float, bar: tqdm) -> None:
    """Leaves a line on stderr, above the bar."""
    if bar.disable:
        return
    number, since = len(history.losses), max(history.evaluations, default=0)
    epoch = ""
    if isinstance(step.batches, Sized):
        epoch = f", epoch {number * step.accumulate / len(step.batches):.2f}"
    tqdm.write(
        f"step {number}{epoch}: training loss {_mean(history.losses[since:]):.3f}, "
        f"evaluation {value:.4g}, learning rate {step.optimizer.param_groups[0]['lr']:.3g}, "
        f"{bar.format_dict['elapsed']:.0f} s",
        file=bar.fp,
    )


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def evaluate_loss(model: Trainable, batches: Iterable[TrainingBatch]) -> float:
    """The mean cross-entropy of the labels, in nats, without smoothing; exp of it is perplexity."""
    module, total, n_tokens = as_module(model), 0.0, 0
    device, pad_id = next(model.parameters()).device, model.pad_id
    with evaluating(module):
        for batch in batches:
            moved = batch.to(device)
            logits = model(*moved.inputs)
            loss = smoothed_cross_entropy(logits, moved.labels, smoothing=0.0, pad_id=pad_id)
            total += loss.item()
            n_tokens += count_labels(batch.labels, pad_id=pad_id)
    if n_tokens == 0:
        raise ValueError("batches must hold at least one label, got none")
    return total / n_tokens
