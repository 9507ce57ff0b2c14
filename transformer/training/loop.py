"""The training loop: one device or many, resumable to the bit (chapter 9)."""

import contextlib
import math
import sys
from collections.abc import Callable, Iterable, Sized
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from tqdm import tqdm

from transformer.checks import check_positive, check_share
from transformer.files import only_writer
from transformer.runtime import (
    Precision,
    Unfailing,
    autocast_dtype,
    default_device,
    evaluating,
    rank,
    signals_held,
    world_size,
)
from transformer.training.checkpoint import checkpoints, load_checkpoint, save_checkpoint
from transformer.training.objective import (
    Schedule,
    count_labels,
    paper_optimizer,
    smoothed_cross_entropy,
)
from transformer.training.protocol import Trainable, TrainingBatch, as_module
from transformer.training.step import (
    add_gradients,
    check_optimizer,
    is_sharded,
    rate_setter,
    ready_to_train,
    seed_step,
    update,
)


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
    evaluate: Callable[[Any], float] | None = None,
    evaluate_every: int | None = None,
    progress: bool = True,
) -> History:
    """Trains ``model`` on batches(0), batches(1), …, with teacher forcing; chapter 9.

    A step takes ``accumulate`` batches, under torch.distributed in each process; its loss is the
    mean over all their tokens, and its gradients are cut to ``clip_norm`` where they are longer.
    What is random is drawn from ``seed`` and the number of the step. ``model`` ends on ``device``,
    in training mode.

    With ``run``, a folder, it saves every ``save_every`` steps, at the end, and before Ctrl-C,
    SIGTERM or an error ends it, and goes on from there, to the same weights; the ``keep`` latest
    checkpoints and the best stay. A signal waits for the end of the step.

    ``optimizer`` is any of ``torch.optim`` over parameters of ``model``, which need not be all, in
    one group or several: ``torch.optim.AdamW(model.parameters(), lr=3e-4)``; at None it is the
    paper's Adam, which needs a ``schedule``. The rate that ``schedule`` gives for steps 1, 2, … is
    that of the group whose own rate is the highest, and the others keep their share of it; at None
    each group keeps its own. What goes on from a checkpoint has its numbers from there, as
    ``load_state_dict`` does.

    ``compiled`` is for where starting kernels is what a step waits for: on an H200 a step of the
    base model with 128 sentences of 128 words took 27.8 ms compiled and about 50 ms otherwise,
    after half a minute of compiling.

    Raises ValueError for bad numbers and checkpoints, and for an optimizer that cannot be used or
    never learns; TypeError for batches and a schedule that are no functions; FloatingPointError for
    NaN and infinity, BlockingIOError where another process is training in ``run``.
    """
    save_every = n_steps if save_every is None else save_every
    evaluate_every = n_steps if evaluate_every is None else evaluate_every
    check_positive(n_steps=n_steps, save_every=save_every, evaluate_every=evaluate_every)
    check_positive(keep=keep, accumulate=accumulate)
    check_share(smoothing=smoothing)
    if clip_norm is not None and not clip_norm > 0:
        raise ValueError(f"clip_norm must be positive or None, got {clip_norm}")
    module, device = as_module(model), torch.device(device or default_device())
    if run is not None and is_sharded(module):
        wanted = "for a model of fully_shard, which torch.distributed.checkpoint saves"
        raise ValueError(f"run must be None {wanted}, got {str(run)!r}")
    if not callable(batches):
        wanted = "a function from the number of a batch to the batch"
        raise TypeError(f"batches must be {wanted}, got a {type(batches).__name__}")
    if schedule is not None and not callable(schedule):
        wanted = "a function from the number of a step to its learning rate, or None"
        raise TypeError(f"schedule must be {wanted}, got {schedule!r:.60}")
    if optimizer is None:
        if schedule is None:
            raise ValueError("schedule must be given to the paper's Adam, optimizer=None, got None")
        optimizer = paper_optimizer(module.parameters())
    check_optimizer(optimizer, module)
    set_rates = rate_setter(optimizer, schedule)
    dtype = autocast_dtype(device, precision)
    scaler = torch.amp.GradScaler(device.type, enabled=dtype == torch.float16)
    forward = ready_to_train(module, optimizer, device, compiled=compiled)

    # of many processes the first is the one that writes
    lock = only_writer(run) if run is not None and rank() == 0 else contextlib.nullcontext()
    gpus = [] if device.type == "cpu" else [device]
    with lock, signals_held() as stops, torch.random.fork_rng(gpus, device_type=device.type):
        history = History() if run is None else _resume(run, module, optimizer, scaler)
        saved = len(history.losses)
        if saved > n_steps:
            raise ValueError(f"n_steps must be at least the {saved} done in {run}, got {n_steps}")
        shown, told = progress and rank() == 0, Unfailing(sys.stderr)
        bar = tqdm(total=n_steps, initial=saved, disable=not shown, leave=False, file=told)
        losses: list[Tensor] = []  # of the latest steps, still on the device

        def look() -> None:
            """Moves the losses into the history, all at once, for which a GPU is waited for."""
            for loss in torch.stack(losses).tolist() if losses else []:
                history.losses.append(loss)
                if not math.isfinite(loss):
                    raise FloatingPointError(f"the loss of step {len(history.losses)} is {loss}")
            losses.clear()
            if history.losses:
                bar.set_postfix(loss=f"{fmean(history.losses[-100:]):.3f}")

        def save() -> None:
            """Saves the steps that are done, unless they are saved already."""
            nonlocal saved
            look()
            if run is None or len(history.losses) == saved:
                return
            saved = len(history.losses)
            if not all(p.isfinite().all() for p in module.parameters()):
                told = f"after step {saved} a weight is not finite: nothing was saved"
                raise FloatingPointError(told)
            if rank() == 0:
                state = {"scaler": scaler.state_dict(), **asdict(history)}
                save_checkpoint(run, module, optimizer, step=saved, state=state, keep=keep)

        whole = True  # no update was begun that did not end
        try:
            for number in range(saved + 1, n_steps + 1):
                set_rates(number)
                module.zero_grad()  # whatever a step that failed, or the caller, left
                seed_step(seed, number, device)
                first = (number - 1) * accumulate
                taken = [batches(first + i) for i in range(accumulate)]
                loss = add_gradients(
                    forward, taken, pad_id=model.pad_id, smoothing=smoothing,
                    device=device, dtype=dtype, scaler=scaler,
                )  # fmt: skip
                whole = False
                update(optimizer, scaler, clip_norm)
                losses.append(loss)
                whole = True
                bar.update()
                last = number == n_steps
                if evaluate is not None and (last or number % evaluate_every == 0):
                    look()
                    with evaluating(module):
                        value = float(evaluate(model))
                    if shown:
                        rate = optimizer.param_groups[0]["lr"]
                        n_taken = number * accumulate
                        epoch = n_taken / len(batches) if isinstance(batches, Sized) else None
                        _report(bar, history, value, learning_rate=rate, epoch=epoch)
                    history.evaluations[number] = value
                elif number % 10 == 0:
                    look()
                if last or number % save_every == 0:
                    save()
                    if run is not None and world_size() > 1:
                        dist.barrier()  # none goes on, and may fail, before the first has saved
                if stops:
                    break
        except FloatingPointError:
            whole = False
            raise
        finally:  # whatever ended it, as Ctrl-C and an error do
            if whole:
                save()
            bar.close()
    return history


def _resume(
    run: str | Path,
    module: nn.Module,
    optimizer: torch.optim.Optimizer,
    scaler: torch.amp.GradScaler,
) -> History:
    """Restores the last checkpoint in ``run``, if there is one; returns what it saw."""
    saved = checkpoints(run)
    if not saved:
        return History()
    _, state = load_checkpoint(saved[-1], module, optimizer)
    try:
        losses, evaluations, scale = (state[key] for key in ("losses", "evaluations", "scaler"))
    except KeyError as error:
        raise ValueError(f"{saved[-1]} was not saved by fit: it has no {error}") from None
    if scale:  # which is empty where no half precision was scaled
        scaler.load_state_dict(scale)
    return History(losses, evaluations)


def _report(
    bar: tqdm, history: History, value: float, *, learning_rate: float, epoch: float | None
) -> None:
    """Leaves a line above the bar: what was learned since the evaluation before, and how well."""
    since = history.losses[max(history.evaluations, default=0) :]
    place = f"step {len(history.losses)}" + ("" if epoch is None else f", epoch {epoch:.2f}")
    tqdm.write(
        f"{place}: training loss {fmean(since):.3f}, evaluation {value:.4g}, "
        f"learning rate {learning_rate:.3g}, {bar.format_dict['elapsed']:.0f} s",
        file=bar.fp,
    )


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
