"""Trains a Transformer, alone or under torchrun (chapters 9, 11 and 13).

    python -m transformer train --out runs/grammar --preset tiny --steps 700
    python -m transformer train --out runs/de-en --train train.de train.en --dev val.de val.en
    torchrun --nproc-per-node 2 -m transformer train --out runs/…      (the same, on two GPUs)

The same command goes on where a killed one stopped.
"""

import argparse
import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any, NoReturn

import torch
import torch.distributed as dist

from transformer.commands.evaluate import measure, print_results
from transformer.commands.options import Decoding
from transformer.commands.prepare import Job, prepare
from transformer.commands.train_options import add_options, batch_sizes, batches_per_step
from transformer.data.batches import BucketedBatches
from transformer.model import Transformer
from transformer.runtime import STOPS, autocast_dtype, default_device, rank, world_size
from transformer.training import evaluate_loss, fit

__all__ = ["USAGE", "add_options", "execute"]

USAGE = "%(prog)s --out FOLDER [options]"


def execute(args: argparse.Namespace) -> None:
    with _processes(args.device) as device, contextlib.ExitStack() as held:
        with _the_first_alone(device):
            autocast_dtype(device, args.precision)  # which refuses what the device has not
            job = prepare(args, held, rank=rank(), world_size=world_size())
        try:
            with _stops_as_ctrl_c():
                _train(args, job, device)
        except KeyboardInterrupt as stop:
            step = job.folder.last_step()
            where = f"step {step} is saved in {args.out}"
            saved = "nothing was saved" if step is None else where
            told = f"stopped; {saved}; the same command goes on"
            raise Stopped(told, getattr(stop, "number", signal.SIGINT)) from None


class Stopped(KeyboardInterrupt):
    """Ctrl-C, or another signal that means the same: its ``number``."""

    def __init__(self, message: str, number: int):
        super().__init__(message)
        self.number = number


@contextlib.contextmanager
def _stops_as_ctrl_c() -> Iterator[None]:
    """SIGTERM and SIGHUP, by which a cluster or a terminal ends a command, are as Ctrl-C."""

    def stop(number: int, frame: Any) -> NoReturn:
        raise Stopped("", number)

    with contextlib.ExitStack() as back:
        for number in STOPS if threading.current_thread() is threading.main_thread() else ():
            before = signal.getsignal(number)
            if before in (signal.SIG_DFL, signal.default_int_handler):  # nohup ignores SIGHUP
                back.callback(signal.signal, number, before)
                signal.signal(number, stop)
        yield


def _train(args: argparse.Namespace, job: Job, device: torch.device) -> None:
    if rank() == 0:
        size = sum(p.numel() for p in job.model.parameters())
        steps = f"{job.n_steps} steps, {job.steps_per_epoch} an epoch"
        print(f"{size:,} parameters on {device}; {steps}", flush=True)  # a pipe waits no longer
    started = time.monotonic()
    losses = _fit(args, job, device)
    if rank() > 0:
        return
    seconds = time.monotonic() - started
    recent = losses[-100:]
    print(
        f"training loss {sum(recent) / len(recent):.3f}, the mean of the last {len(recent)} steps, "
        f"after {len(losses)} steps; {seconds:.0f} s"
    )
    if len(job.splits) > 1:
        _measure(args, job, device)


def _fit(args: argparse.Namespace, job: Job, device: torch.device) -> list[float]:
    evaluate = None
    if "dev" in job.splits:
        dev = BucketedBatches(job.splits["dev"].examples, shuffle=False, **batch_sizes(args))

        def evaluate(model: Transformer) -> float:
            return evaluate_loss(model, dev.epoch(0))

    history = fit(
        job.model,
        job.batches,
        n_steps=job.n_steps,
        optimizer=job.optimizer,
        schedule=job.schedule,
        smoothing=args.smoothing,
        clip_norm=args.clip_norm,
        accumulate=batches_per_step(args),
        seed=args.seed,
        device=device,
        precision=args.precision,
        compiled=args.compile,
        run=args.out,
        save_every=args.save_every,
        keep=args.keep,
        label=job.folder.label(),
        evaluate=evaluate,
        evaluate_every=args.save_every,
        progress=not args.quiet,
    )
    return history.losses


def _measure(args: argparse.Namespace, job: Job, device: torch.device) -> None:
    """The best checkpoint, on sentences that it has not learned from; also in results.json."""
    run = job.folder.load("best", device=device)
    results: dict[str, Any] = {"steps": job.folder.last_step(), "checkpoint": run.checkpoint}
    measured = [name for name in ("dev", "test") if name in job.splits]
    decoding = Decoding(args.beam_size, args.length_penalty, early_stopping=args.early_stopping)
    for name in measured:
        results[name] = measure(run, job.splits[name], decoding=decoding, tokenize=args.tokenize)
    job.folder.write_results(results)
    for name in measured:
        print(f"{name}, measured at {run.checkpoint}:")
        print_results(results[name])


@contextlib.contextmanager
def _processes(device: torch.device | None) -> Iterator[torch.device]:
    """Joins the other processes that torchrun started, if it did; gives the device of this one."""
    device = device or default_device()
    if "LOCAL_RANK" not in os.environ:
        yield device
        return
    if device.type != "cpu":
        device = torch.device(device.type, int(os.environ["LOCAL_RANK"]))
        torch.accelerator.set_device_index(device.index)
    dist.init_process_group(dist.get_default_backend_for_device(device))
    try:
        yield device
    finally:
        dist.destroy_process_group()


@contextlib.contextmanager
def _the_first_alone(device: torch.device) -> Iterator[None]:
    """The first process goes before the others; where it fails, they end without a word."""
    if world_size() == 1:
        yield
        return
    failed = torch.ones((), device=device)
    if rank() > 0:
        dist.broadcast(failed, 0)
        if failed:
            raise SystemExit(2)
        yield
        return
    try:
        yield
        failed.zero_()
    finally:
        dist.broadcast(failed, 0)
