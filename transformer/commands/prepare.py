"""What ``python -m transformer train`` settles before the first step, or refuses."""

import argparse
import hashlib
import math
from typing import NamedTuple

from transformer.commands import train_options
from transformer.commands.evaluate import Pairs, encode
from transformer.commands.run_folder import RunFolder, Settings, Tokenizers
from transformer.config import TransformerConfig
from transformer.data.batches import BucketedBatches
from transformer.data.grammar import grammar_pairs, grammar_vocabularies
from transformer.data.parallel import read_parallel
from transformer.data.text import BytePairEncoding
from transformer.data.tokens import Example
from transformer.decoding.translate import check_beam_size
from transformer.model import Transformer
from transformer.runtime import seed_everything
from transformer.training.objective import Schedule, linear_schedule, warmup_schedule

_SIZES = ("d_model", "n_heads", "n_encoder_layers", "n_decoder_layers", "d_ff", "dropout")


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


def prepare(args: argparse.Namespace, *, rank: int, world_size: int) -> Job:
    """Makes the folder of a run that begins, once nothing is left to be refused."""
    _config(args, args.vocab_size, args.vocab_size)  # the sizes, before the files are read
    pairs = _read(args, rank)
    folder, settings = RunFolder(args.out), _settings(args, pairs)
    begins = not folder.is_run()
    if begins:
        folder.check_new()
        tokenizers = _make_tokenizers(args, pairs["train"])
    else:
        folder.check_same(settings)
        tokenizers = folder.tokenizers()
    check_beam_size(args.beam_size, len(tokenizers[1]))
    splits = {name: _encode(args, of, tokenizers, name, rank) for name, of in pairs.items()}
    batches = BucketedBatches(
        splits["train"].examples,
        seed=args.seed,
        rank=rank,
        world_size=world_size,
        batch_size=batch_size(args),
        max_tokens=args.max_tokens,
    )
    steps_per_epoch = math.ceil(len(batches) / args.accumulate)
    n_steps = args.steps or math.ceil(args.epochs * len(batches) / args.accumulate)
    schedule = _schedule(args, n_steps)
    seed_everything(args.seed)
    model = Transformer(_config(args, *map(len, tokenizers)))
    if begins:
        folder.create(settings, tokenizers)
    return Job(folder, model, splits, batches, steps_per_epoch, n_steps, schedule)


def batch_size(args: argparse.Namespace) -> int | None:
    """In sentences, unless --max-tokens says how many tokens."""
    return (args.batch_size or 16) if args.max_tokens is None else None


def _config(args: argparse.Namespace, src_size: int, tgt_size: int) -> TransformerConfig:
    """``src_size`` and ``tgt_size`` are equal for one vocabulary of byte pairs."""
    changes = {name: getattr(args, name) for name in _SIZES if getattr(args, name) is not None}
    changes |= {"norm": args.norm, "position": args.position, "max_len": args.max_len}
    changes["share_embeddings"] = bool(args.train)
    return getattr(TransformerConfig, args.preset)(src_size, tgt_size, **changes)


def _schedule(args: argparse.Namespace, n_steps: int) -> Schedule:
    d_model = _config(args, args.vocab_size, args.vocab_size).d_model
    peak = args.peak or (d_model * args.warmup) ** -0.5  # Vaswani et al. (2017), Eq. 3
    if args.schedule == "linear":
        return linear_schedule(peak, warmup=args.warmup, n_steps=n_steps)
    return warmup_schedule(peak, warmup=args.warmup)


def _read(args: argparse.Namespace, rank: int) -> dict[str, Pairs]:
    """The sentences of each split; of the grammar corpus, those to measure on are held out."""
    files = {"train": args.train, "dev": args.dev, "test": args.test}
    pairs = {}
    if not args.train:
        made = {
            "train": grammar_pairs(args.pairs, seed=args.seed),
            "dev": grammar_pairs(500, seed=args.seed + 1, split="test"),
        }
        for name, of_split in made.items():
            pairs[name] = [(" ".join(p.source), " ".join(p.target)) for p in of_split]
    for name, paths in files.items():
        if paths:
            pairs[name], report = read_parallel(*paths, on_bad=args.on_bad)
            if report.skipped and rank == 0:
                print(f"{paths[0]}, {paths[1]}: {report}")
    return pairs


def _settings(args: argparse.Namespace, pairs: dict[str, Pairs]) -> Settings:
    options = {k: v for k, v in vars(args).items() if k not in train_options.free(args)}
    digests = {}
    for name in pairs.keys() - {"test"}:
        lines = "".join(f"{src}\n{tgt}\n" for src, tgt in pairs[name])
        digests[name] = hashlib.sha256(lines.encode()).hexdigest()
    return Settings(args.lowercase, bool(args.train), digests, options)


def _make_tokenizers(args: argparse.Namespace, train: Pairs) -> Tokenizers:
    if not args.train:
        return grammar_vocabularies()
    lines = (line.lower() if args.lowercase else line for pair in train for line in pair)
    shared = BytePairEncoding.train(lines, vocab_size=args.vocab_size)
    return shared, shared


def _encode(
    args: argparse.Namespace, pairs: Pairs, tokenizers: Tokenizers, name: str, rank: int
) -> Split:
    kept, examples, report = encode(
        pairs, tokenizers, lowercase=args.lowercase, max_len=args.max_len, on_bad=args.on_bad
    )
    if rank == 0:
        print(f"{name}: {report}")
    return Split(kept, examples)
