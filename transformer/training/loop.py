"""The training loop: one device or many, resumable to the bit (chapter 9)."""

import contextlib
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sized
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from tqdm import tqdm

from transformer.checks import check_positive
from transformer.files import only_writer
from transformer.runtime import (
    Precision,
    default_device,
    evaluating,
    rank,
    uninterrupted,
    world_size,
)
from transformer.training.checkpoint import checkpoints, read_checkpoint, save_checkpoint, step_of
from transformer.training.history import History, read_history
from transformer.training.objective import (
    Schedule,
    count_labels,
    paper_optimizer,
    smoothed_cross_entropy,
)
from transformer.training.protocol import Trainable, TrainingBatch, as_module
from transformer.training.step import TrainingStep


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

    With ``run``, a folder, it saves every ``save_every`` steps, at the end and on Ctrl-C, and goes
    on from there, to the same weights; the ``keep`` latest checkpoints and the best stay.
    ``model`` ends on ``device``, in training mode, after a whole step. See ``TrainingStep``.

    ``optimizer`` is any of ``torch.optim`` over parameters of ``model``, which need not be all, in
    one group or several: ``torch.optim.AdamW(model.parameters(), lr=3e-4)``; at None it is the
    paper's Adam, which needs a ``schedule``. The rate that ``schedule`` gives is that of the group
    whose own rate is the highest, and the others keep their share of it; at None each group keeps
    its own. What goes on from a checkpoint has its numbers from there, as ``load_state_dict`` does.

    Raises ValueError for bad numbers and checkpoints, and for an optimizer that cannot be used;
    FloatingPointError for NaN and infinity, BlockingIOError where another process is training in
    ``run``.
    """
    device = torch.device(device or default_device())
    if optimizer is None:
        if schedule is None:
            raise ValueError("schedule must be given to the paper's Adam, optimizer=None, got None")
        optimizer = paper_optimizer(as_module(model).parameters())
    step = TrainingStep(
        model, batches, optimizer=optimizer, schedule=schedule, smoothing=smoothing,
        clip_norm=clip_norm, accumulate=accumulate, seed=seed, device=device, precision=precision,
        compiled=compiled,
    )  # fmt: skip
    training = _Training(
        step, n_steps=n_steps, run=run, keep=keep, evaluate=evaluate,
        save_every=n_steps if save_every is None else save_every,
        evaluate_every=n_steps if evaluate_every is None else evaluate_every,
    )  # fmt: skip
    with _alone(run):
        return training(progress)


@contextlib.contextmanager
def _alone(run: str | Path | None) -> Iterator[None]:
    """No other training writes to ``run``; of many processes the first is the one that writes."""
    if run is None or rank() > 0:
        yield
        return
    Path(run).mkdir(parents=True, exist_ok=True)
    with only_writer(run):
        yield


@dataclass
class _Training:
    """What lies between the steps: to go on, to evaluate, to save, and to say how it goes."""

    step: TrainingStep
    _: KW_ONLY
    n_steps: int
    run: str | Path | None
    save_every: int
    keep: int
    evaluate: Callable[[Any], float] | None
    evaluate_every: int
    history: History = field(default_factory=History)

    def __post_init__(self) -> None:
        check_positive(n_steps=self.n_steps, save_every=self.save_every)
        check_positive(evaluate_every=self.evaluate_every, keep=self.keep)
        if self.run is not None and self.step.sharded:
            wanted = "for a model of fully_shard, which torch.distributed.checkpoint saves"
            raise ValueError(f"run must be None {wanted}, got {str(self.run)!r}")

    def __call__(self, progress: bool) -> History:
        with uninterrupted():  # Ctrl-C finds the weights as they were, or as they are resumed
            done = self._resume()
        if done > self.n_steps:
            wanted = f"n_steps must be at least the {done} done in {self.run}"
            raise ValueError(f"{wanted}, got {self.n_steps}")
        hidden, device = not progress or rank() > 0, self.step.device
        bar = tqdm(total=self.n_steps, initial=done, disable=hidden, leave=False)
        with bar, torch.random.fork_rng([device] if device.type == "cuda" else []):
            try:
                for number in range(done + 1, self.n_steps + 1):
                    self.step(number)
                    bar.update()
                    self._between(number, bar)
            except KeyboardInterrupt:
                self._save_what_is_done()
                raise
        return self.history

    def _between(self, number: int, bar: tqdm) -> None:
        """What is due after step ``number``."""
        last = number == self.n_steps
        evaluate = self.evaluate if last or number % self.evaluate_every == 0 else None
        run = self.run if last or number % self.save_every == 0 else None
        # Losses stay on the device until someone asks: on a GPU, to look at one is to wait for it.
        if evaluate is not None or run is not None or last or number % 10 == 0:
            self._read_losses()
            bar.set_postfix(loss=f"{_mean(self.history.losses[-100:]):.3f}")
        try:
            if evaluate is not None:
                with evaluating(self.step.module):
                    value = float(evaluate(self.step.model))
                self._report(number, value, bar)
                self.history.evaluations[number] = value
        finally:  # an evaluation that fails loses nothing
            if run is not None:
                self._save(run, number)
        if run is not None and world_size() > 1:
            dist.barrier()  # no process goes on, and perhaps fails, before the first has saved

    def _read_losses(self) -> None:
        """Moves losses from the device into the history, all at once."""
        done, new = len(self.history.losses), self.step.losses
        values = torch.stack(new).tolist() if new else []
        with uninterrupted():
            self.history.losses += values
            new.clear()
        for number, loss in enumerate(values, done + 1):
            if not math.isfinite(loss):
                raise FloatingPointError(f"the loss of step {number} is {loss}")

    def _report(self, number: int, value: float, bar: tqdm) -> None:
        """Leaves a line on stderr, above the bar."""
        if bar.disable:
            return
        step, since = self.step, max(self.history.evaluations, default=0)
        epoch = ""
        if isinstance(step.batches, Sized):
            epoch = f", epoch {number * step.accumulate / len(step.batches):.2f}"
        tqdm.write(
            f"step {number}{epoch}: training loss {_mean(self.history.losses[since:]):.3f}, "
            f"evaluation {value:.4g}, learning rate {step.optimizer.param_groups[0]['lr']:.3g}, "
            f"{bar.format_dict['elapsed']:.0f} s",
            file=sys.stderr,
        )

    def _resume(self) -> int:
        """Restores the last checkpoint in ``run``, if there is one; how many steps are done."""
        if self.run is None:
            return 0
        saved = checkpoints(self.run)
        if not saved:
            return 0
        last = read_checkpoint(saved[-1], self.step.module, self.step.optimizer)
        history, scaler = read_history(last)  # both refuse before anything has changed
        last.restore(self.step.module, self.step.optimizer)
        if scaler:  # which is empty where no half precision was scaled
            self.step.scaler.load_state_dict(scaler)
        self.history = history
        return last.step

    def _save(self, run: str | Path, number: int) -> None:
        model, optimizer = self.step.module, self.step.optimizer
        if not all(p.isfinite().all() for p in model.parameters()):
            raise FloatingPointError(
                f"after step {number} a weight is not finite: nothing was saved"
            )
        if rank() == 0:
            state = self.history.state(self.step.scaler.state_dict())
            save_checkpoint(run, model, optimizer, step=number, state=state, keep=self.keep)

    def _save_what_is_done(self) -> None:
        """After Ctrl-C, which other processes may have met elsewhere: waits for none of them."""
        self._read_losses()
        done = len(self.history.losses)
        if self.run is not None and done not in [0, *map(step_of, checkpoints(self.run))]:
            self._save(self.run, done)


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def evaluate_loss(model: Trainable, batches: Iterable[TrainingBatch]) -> float:
    """The mean cross-entropy of the labels, in nats, without smoothing; exp of it is perplexity."""
    device, pad_id = next(model.parameters()).device, model.pad_id
    total, n_tokens = 0.0, 0
    with evaluating(as_module(model)):
        for batch in batches:
            moved = batch.to(device)
            logits = model(*moved.inputs)
            loss = smoothed_cross_entropy(logits, moved.labels, smoothing=0.0, pad_id=pad_id)
            total += loss.item()
            n_tokens += count_labels(batch.labels, pad_id=pad_id)
    if n_tokens == 0:
        raise ValueError("batches must hold at least one label, got none")
    return total / n_tokens
