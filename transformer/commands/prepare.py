"""What ``python -m transformer train`` settles before the first step, or refuses."""

import argparse
import contextlib
import math
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import torch

from transformer.commands.options import LARGEST, Decoding
from transformer.commands.run_folder import RunFolder, Settings, as_json
from transformer.commands.train_options import (
    batch_sizes,
    batches_per_step,
    check_together,
    defaults,
    make_optimizer,
    model_config,
    settled,
)
from transformer.data.batches import BucketedBatches
from transformer.data.corpus import Pairs, Split, Tokenizers, digest, encode, read_files
from transformer.data.grammar import grammar_pairs, grammar_vocabularies
from transformer.data.text import BytePairEncoding, clean_line
from transformer.files import only_writer
from transformer.model import Transformer
from transformer.runtime import seed_everything
from transformer.training.objective import Schedule, linear_schedule, warmup_schedule

_FEWEST = 260  # tokens of a vocabulary of byte pairs: every byte, and the special ones


class Job(NamedTuple):
    """What is trained, on what, and how long."""

    folder: RunFolder
    model: Transformer
    optimizer: torch.optim.Optimizer
    splits: dict[str, Split]  # "train", and "dev" and "test" where they are given
    batches: BucketedBatches
    steps_per_epoch: int
    n_steps: int
    schedule: Schedule


def prepare(
    args: argparse.Namespace, held: contextlib.ExitStack, *, rank: int, world_size: int
) -> Job:
    """Makes the folder of a run that begins, once nothing is left to be refused.

    The lock of the folder joins ``held``.
    """
    # what can be refused before the sentences are read
    check_together(args)
    config = model_config(args, src_vocab_size=_FEWEST, tgt_vocab_size=_FEWEST)
    with torch.device("meta"):  # an outline, which takes no memory
        make_optimizer(args, Transformer(config).parameters())
    folder = RunFolder(Path(args.out))
    begins = not folder.is_run()
    if begins:
        folder.check_new()
    else:
        if rank == 0:
            held.enter_context(only_writer(folder.path))
            if folder.last_step() is None:
                print(f"{folder.path} holds no checkpoint: it begins at step 1")
        folder.check_options(settled(args), defaults())
    # the sentences, which must be those that the run began with, and their vocabulary
    pairs = _read(args, quiet=rank > 0)
    digests = _digests(pairs)
    if not begins:
        folder.check_digests(digests)
    tokenizers = _make_tokenizers(args, pairs["train"]) if begins else folder.tokenizers()
    src_size, tgt_size = map(len, tokenizers)
    decoding = Decoding(args.beam_size, args.length_penalty)
    decoding.check(max_len=config.max_len, tgt_vocab_size=tgt_size)
    config = replace(config, src_vocab_size=src_size, tgt_vocab_size=tgt_size)
    # what takes long where there is much to read: the sentences as ids, in batches
    splits = {}
    for name, of_split in pairs.items():
        splits[name], report = encode(
            of_split,
            tokenizers,
            lowercase=args.lowercase,
            max_len=config.max_len,
            on_bad=args.on_bad,
            name=", ".join(map(str, getattr(args, name) or [name])),
        )
        if rank == 0:
            print(f"{name}: {report}")
    examples, sizes = splits["train"].examples, batch_sizes(args)
    batches = BucketedBatches(examples, seed=args.seed, rank=rank, world_size=world_size, **sizes)
    accumulate = batches_per_step(args)
    n_steps = _n_steps(args, len(batches), accumulate)
    schedule = _schedule(args, config.d_model, n_steps)
    # and nothing is left to be refused
    seed_everything(args.seed)
    model = Transformer(config)
    optimizer = make_optimizer(args, model.parameters())
    if begins:
        held.enter_context(only_writer(folder.path))
        folder.create(Settings(args.lowercase, digests, settled(args), as_json(tokenizers)))
    steps_per_epoch = math.ceil(len(batches) / accumulate)
    return Job(folder, model, optimizer, splits, batches, steps_per_epoch, n_steps, schedule)


def _n_steps(args: argparse.Namespace, n_batches: int, accumulate: int) -> int:
    if args.epochs is None:
        return args.steps or 1000
    steps = math.ceil(args.epochs * n_batches / accumulate)
    if steps > LARGEST:
        raise ValueError(f"--epochs must give at most {LARGEST} steps, got {steps}")
    return steps


def _schedule(args: argparse.Namespace, d_model: int, n_steps: int) -> Schedule:
    peak = args.peak or (d_model * args.warmup) ** -0.5  # Vaswani et al. (2017), Eq. 3
    if args.schedule == "linear":
        return linear_schedule(peak, warmup=args.warmup, n_steps=n_steps)
    return warmup_schedule(peak, warmup=args.warmup)


def _read(args: argparse.Namespace, *, quiet: bool) -> dict[str, Pairs]:
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
            pairs[name] = read_files(*paths, on_bad=args.on_bad, quiet=quiet)
    return pairs


def _digests(pairs: dict[str, Pairs]) -> dict[str, str]:
    """By which a run knows again the sentences that it learns from and chooses by.

    Raises ValueError for sentences to measure on that are those to learn from.
    """
    digests = {name: digest(of_split) for name, of_split in pairs.items()}
    for name in digests.keys() - {"train"}:
        if digests[name] == digests["train"]:
            raise ValueError(f"--{name} must be other sentences than --train, got the same")
    return {name: value for name, value in digests.items() if name != "test"}


def _make_tokenizers(args: argparse.Namespace, train: Pairs) -> Tokenizers:
    if not args.train:
        return grammar_vocabularies()
    lines = (clean_line(line, lowercase=args.lowercase) for pair in train for line in pair)
    shared = BytePairEncoding.train(lines, vocab_size=args.vocab_size)
    return shared, shared
