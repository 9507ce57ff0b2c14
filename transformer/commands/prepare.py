"""What ``python -m transformer train`` settles before the first step, or refuses."""

import hashlib
import math
import os
from typing import NamedTuple

import torch

from transformer.commands.evaluate import Pairs, encode, read_files
from transformer.commands.options import LARGEST, flat
from transformer.commands.run_folder import RunFolder, Settings, Tokenizers
from transformer.commands.train_options import Course, Data, Options
from transformer.config import TransformerConfig
from transformer.data.batches import BucketedBatches
from transformer.data.grammar import grammar_pairs, grammar_vocabularies
from transformer.data.text import BytePairEncoding, clean_line
from transformer.data.tokens import Example
from transformer.decoding.translate import check_beam_size
from transformer.memory import check_fits, size_of
from transformer.model import Transformer
from transformer.runtime import default_device, seed_everything
from transformer.training.objective import Schedule, linear_schedule, warmup_schedule

_FEWEST = 260  # tokens of a vocabulary of byte pairs: every byte, and the special ones


class Split(NamedTuple):
    """Sentences as they were read, and as the model reads them."""

    pairs: Pairs
    examples: list[Example]


class Job(NamedTuple):
    """What is trained, on what, and how long."""

    folder: RunFolder
    model: Transformer
    splits: dict[str, Split]  # "train", and "dev" and "test" where they are given
    batches: BucketedBatches
    steps_per_epoch: int
    n_steps: int
    schedule: Schedule


def prepare(options: Options, *, rank: int, world_size: int) -> Job:
    """Makes the folder of a run that begins, once nothing is left to be refused."""
    data, folder = options.data, RunFolder(options.out)
    begins = _check_at_once(options, folder, rank)
    # the sentences, which must be those that the run began with, and their vocabulary
    pairs = _read(data, options.course.seed, quiet=rank > 0)
    settings = Settings(data.lowercase, bool(data.train), _digests(pairs), options.settled())
    if not begins:
        folder.check_digests(settings.digests)
    tokenizers = _make_tokenizers(data, pairs["train"]) if begins else folder.tokenizers()
    check_beam_size(options.decoding.beam_size, len(tokenizers[1]))
    # the model, whose size is known now that the vocabulary is
    config = _config(options, *map(len, tokenizers))
    _check_size(options, config)
    if not begins:
        with torch.device("meta"):  # an outline, whose config is that of the model
            folder.check_model(Transformer(config))
    # what takes long where there is much to read: the sentences as ids, in batches
    splits = {name: _encode(options, of, tokenizers, name, rank) for name, of in pairs.items()}
    batches = BucketedBatches(
        splits["train"].examples,
        seed=options.course.seed,
        rank=rank,
        world_size=world_size,
        batch_size=options.batches.sentences,
        max_tokens=options.batches.max_tokens,
    )
    accumulate = options.batches.per_step
    n_steps = _n_steps(options.course, len(batches), accumulate)
    schedule = _schedule(options.course, config.d_model, n_steps)
    # and nothing is left to be refused
    seed_everything(options.course.seed)
    model = Transformer(config)
    if begins:
        folder.create(settings, tokenizers)
    steps_per_epoch = math.ceil(len(batches) / accumulate)
    return Job(folder, model, splits, batches, steps_per_epoch, n_steps, schedule)


def _check_at_once(options: Options, folder: RunFolder, rank: int) -> bool:
    """Refuses what can be refused before the sentences are read; whether the run begins."""
    _check_size(options, _config(options, _FEWEST, _FEWEST))
    if not folder.is_run():
        folder.check_new()
        return True
    folder.check_options(options.settled(), {f.name: f.default for f, _, _ in flat(options)})
    if rank == 0:
        folder.check_alone()
    return False


def _config(options: Options, src_size: int, tgt_size: int) -> TransformerConfig:
    """``src_size`` and ``tgt_size`` are equal for one vocabulary of byte pairs."""
    return options.model.config(src_size, tgt_size, shared=bool(options.data.train))


def _check_size(options: Options, config: TransformerConfig) -> None:
    """Raises ValueError for a model that the memory cannot hold while it is trained."""
    size, device = size_of(Transformer, config), options.machine.device or default_device()
    # each process of torchrun has a model: on a CPU side by side, on GPUs one on each
    processes = int(os.environ.get("LOCAL_WORLD_SIZE", 1)) if device.type == "cpu" else 1
    what = f"a model of {size.parameters:,} parameters, with gradients and Adam's moments,"
    check_fits(size.in_training, device, what=what, processes=processes)


def _n_steps(course: Course, n_batches: int, accumulate: int) -> int:
    if course.steps is not None:
        return course.steps
    steps = math.ceil((course.epochs or 0) * n_batches / accumulate)
    if steps > LARGEST:
        raise ValueError(f"--epochs must give at most {LARGEST} steps, got {steps}")
    return steps


def _schedule(course: Course, d_model: int, n_steps: int) -> Schedule:
    peak = course.peak or (d_model * course.warmup) ** -0.5  # Vaswani et al. (2017), Eq. 3
    if course.schedule == "linear":
        return linear_schedule(peak, warmup=course.warmup, n_steps=n_steps)
    return warmup_schedule(peak, warmup=course.warmup)


def _read(data: Data, seed: int, *, quiet: bool) -> dict[str, Pairs]:
    """The sentences of each split; of the grammar corpus, those to measure on are held out."""
    pairs = {}
    if not data.train:
        made = {
            "train": grammar_pairs(data.pairs, seed=seed),
            "dev": grammar_pairs(500, seed=seed + 1, split="test"),
        }
        for name, of_split in made.items():
            pairs[name] = [(" ".join(p.source), " ".join(p.target)) for p in of_split]
    for name, paths in (("train", data.train), ("dev", data.dev), ("test", data.test)):
        if paths:
            pairs[name] = read_files(paths, on_bad=data.on_bad, quiet=quiet)
    return pairs


def _digests(pairs: dict[str, Pairs]) -> dict[str, str]:
    """By which a run knows again the sentences that it learns from and chooses by."""
    digests = {}
    for name in pairs.keys() - {"test"}:
        lines = "".join(f"{src}\n{tgt}\n" for src, tgt in pairs[name])
        digests[name] = hashlib.sha256(lines.encode()).hexdigest()
    return digests


def _make_tokenizers(data: Data, train: Pairs) -> Tokenizers:
    if not data.train:
        return grammar_vocabularies()
    lines = (clean_line(line, lowercase=data.lowercase) for pair in train for line in pair)
    shared = BytePairEncoding.train(lines, vocab_size=data.vocab_size)
    return shared, shared


def _encode(options: Options, pairs: Pairs, tokenizers: Tokenizers, name: str, rank: int) -> Split:
    data, max_len = options.data, _config(options, _FEWEST, _FEWEST).max_len
    kept, examples, report = encode(
        pairs, tokenizers, lowercase=data.lowercase, max_len=max_len, on_bad=data.on_bad
    )
    if rank == 0:
        print(f"{name}: {report}")
    return Split(kept, examples)
