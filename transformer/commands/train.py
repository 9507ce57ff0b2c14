"""Trains a Transformer, alone or under torchrun (chapters 9, 11 and 13).

    python -m transformer train --out runs/grammar --preset tiny --steps 700
    python -m transformer train --out runs/de-en --train train.de train.en --dev val.de val.en
    torchrun --nproc-per-node 2 -m transformer train --out runs/…      (the same, on two GPUs)

The same command goes on where a killed one stopped.
"""

import argparse
import contextlib
import math
import os
import sys
import time
from collections.abc import Iterator
from inspect import signature
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from transformer.commands.evaluate import measure, print_results
from transformer.commands.options import Decoding
from transformer.commands.run_folder import (
    RESULTS,
    Settings,
    begin,
    check_same,
    load,
    open_run,
    to_json,
)
from transformer.commands.train_options import OPTIMIZERS, add_options, model_config, settled
from transformer.data.batches import BucketedBatches
from transformer.data.corpus import Pairs, Split, digest, encode, read_files
from transformer.data.grammar import grammar_pairs, grammar_vocabularies
from transformer.data.text import BytePairEncoding, clean_line
from transformer.files import only_writer, replace_file
from transformer.model import Transformer
from transformer.runtime import (
    autocast_dtype,
    default_device,
    rank,
    seed_everything,
    world_size,
)
from transformer.training import (
    checkpoints,
    evaluate_loss,
    fit,
    linear_schedule,
    paper_optimizer,
    warmup_schedule,
)
from transformer.training.checkpoint import step_of

__all__ = ["USAGE", "add_options", "execute"]

USAGE = "%(prog)s --out FOLDER [options]"


def execute(args: argparse.Namespace) -> None:
    try:
        with _processes(args.device) as device:
            _train(args, Path(args.out), device)
    except KeyboardInterrupt:
        saved = [step_of(path) for path in checkpoints(args.out)]
        where = f"step {saved[-1]} is saved in {args.out}" if saved else "nothing was saved"
        raise KeyboardInterrupt(f"stopped; {where}; the same command goes on") from None


def _train(args: argparse.Namespace, run: Path, device: torch.device) -> None:
    """The whole training, from its options to its results."""
    for name in ("dev", "lowercase"):
        if getattr(args, name) and not args.train:
            raise ValueError(f"--{name} goes with --train; the grammar corpus is as it is")
    autocast_dtype(device, args.precision)  # which refuses what the device has not
    with _the_first_goes_before(device):
        before = open_run(run)
        if before is not None and rank() == 0 and not checkpoints(run):
            print(f"{run} holds no checkpoint: it begins at step 1")

        # the sentences, and the words or byte pairs that they are made of
        pairs = _read(args)
        digests = {name: digest(of_split) for name, of_split in pairs.items()}
        for name in digests.keys() - {"train"}:
            if digests[name] == digests["train"]:
                raise ValueError(f"--{name} must be other sentences than --train, got the same")
        digests.pop("test", None)  # by which nothing is chosen
        options = settled(args)
        if before is not None:
            check_same(run, before, digests=digests, options=options)
            tokenizers = before.tokenizers
        elif args.train:
            lines = (line for pair in pairs["train"] for line in pair)
            read = (clean_line(line, lowercase=args.lowercase) for line in lines)
            shared = BytePairEncoding.train(read, vocab_size=args.vocab_size)
            tokenizers = shared, shared
        else:
            tokenizers = grammar_vocabularies()

        # the model and its optimizer
        src_vocab_size, tgt_vocab_size = map(len, tokenizers)
        config = model_config(args, src_vocab_size=src_vocab_size, tgt_vocab_size=tgt_vocab_size)
        decoding = Decoding(args.beam_size, args.length_penalty, early_stopping=args.early_stopping)
        decoding.check(max_len=config.max_len, tgt_vocab_size=tgt_vocab_size)
        seed_everything(args.seed)
        model = Transformer(config)
        optimizer = _optimizer(args, model)

        # the sentences as ids, in batches: 16 and four batches a step, unless it is said
        splits: dict[str, Split] = {}
        for name, of_split in pairs.items():
            splits[name], report = encode(
                of_split,
                tokenizers,
                lowercase=args.lowercase,
                max_len=config.max_len,
                on_bad=args.on_bad,
                name=", ".join(map(str, getattr(args, name) or [name])),
            )
            if rank() == 0:
                print(f"{name}: {report}")
        said = args.batch_size or args.max_tokens
        accumulate = args.accumulate or (1 if said else 4)
        sizes = {"batch_size": args.batch_size if said else 16, "max_tokens": args.max_tokens}
        batches = BucketedBatches(
            splits["train"].examples, seed=args.seed, rank=rank(), world_size=world_size(), **sizes
        )

        # how long, and how fast
        n_steps = args.steps or 1000
        if args.epochs is not None:
            n_steps = math.ceil(args.epochs * len(batches) / accumulate)
        peak = args.peak or (config.d_model * args.warmup) ** -0.5  # Vaswani et al. (2017), Eq. 3
        schedule = warmup_schedule(peak, warmup=args.warmup)
        if args.schedule == "linear":
            schedule = linear_schedule(peak, warmup=args.warmup, n_steps=n_steps)

        # nothing is left to be refused
        if rank() == 0:
            with only_writer(run):  # which refuses a folder where another process is training
                if before is None:
                    begin(run, Settings(args.lowercase, digests, options, tokenizers))

    evaluate = None
    if "dev" in splits:
        dev = BucketedBatches(splits["dev"].examples, shuffle=False, **sizes)

        def evaluate(model: Transformer) -> float:
            return evaluate_loss(model, dev.epoch(0))

    if rank() == 0:
        size = sum(p.numel() for p in model.parameters())
        steps = f"{n_steps} steps, {math.ceil(len(batches) / accumulate)} an epoch"
        print(f"{size:,} parameters on {device}; {steps}", flush=True)  # a pipe waits no longer
    started = time.monotonic()
    history = fit(
        model,
        batches,
        n_steps=n_steps,
        optimizer=optimizer,
        schedule=schedule,
        smoothing=args.smoothing,
        clip_norm=args.clip_norm,
        accumulate=accumulate,
        seed=args.seed,
        device=device,
        precision=args.precision,
        compiled=args.compile,
        run=run,
        save_every=args.save_every,
        keep=args.keep,
        evaluate=evaluate,
        evaluate_every=args.save_every,
        progress=not args.quiet,
    )
    if rank() > 0:
        return
    recent = history.losses[-100:]
    print(
        f"training loss {sum(recent) / len(recent):.3f}, the mean of the last {len(recent)} steps, "
        f"after {len(history.losses)} steps; {time.monotonic() - started:.0f} s"
    )
    # the best checkpoint, on sentences that it has not learned from
    measured = [name for name in ("dev", "test") if name in splits]
    if measured:
        best = load(run, device=device)
        results: dict[str, Any] = {"steps": len(history.losses), "checkpoint": best.checkpoint}
        for name in measured:
            results[name] = measure(best, splits[name], decoding=decoding, tokenize=args.tokenize)
        replace_file(run / RESULTS, to_json(results))
        for name in measured:
            print(f"{name}, measured at {best.checkpoint}:")
            print_results(results[name])


def _read(args: argparse.Namespace) -> dict[str, Pairs]:
    """The sentences of each split; of the grammar corpus, those to measure on are held out."""
    pairs = {}
    if not args.train:
        made = {
            "train": grammar_pairs(args.pairs, seed=args.seed),
            "dev": grammar_pairs(500, seed=args.seed + 1, split="test"),
        }
        for name, of_split in made.items():
            pairs[name] = [(" ".join(p.source), " ".join(p.target)) for p in of_split]
    for name in ("train", "dev", "test"):
        if paths := getattr(args, name):
            pairs[name] = read_files(*paths, on_bad=args.on_bad, quiet=rank() > 0)
    return pairs


def _optimizer(args: argparse.Namespace, model: Transformer) -> torch.optim.Optimizer:
    """The one that was asked for; its learning rate will be that of the schedule."""
    if args.optimizer is None:
        if args.weight_decay is not None:
            raise ValueError("--weight-decay goes with --optimizer; the paper's Adam has none")
        return paper_optimizer(model.parameters())
    kind = OPTIMIZERS[args.optimizer]
    if args.weight_decay is None:
        return kind(model.parameters())
    if "weight_decay" not in signature(kind).parameters:
        raise ValueError(f"--weight-decay: {args.optimizer} has none")
    return kind(model.parameters(), weight_decay=args.weight_decay)


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
def _the_first_goes_before(device: torch.device) -> Iterator[None]:
    """Lets the first of several processes end the block before the others begin it.

    Where it fails, it says why, and they end without a word.
    """
    failed = torch.ones((), device=device)
    if rank() > 0:
        dist.broadcast(failed, 0)
        if failed:
            sys.exit(2)
        yield
        return
    try:
        yield
        failed.zero_()
    finally:
        if world_size() > 1:
            dist.broadcast(failed, 0)
