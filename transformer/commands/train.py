"""Trains a Transformer from the command line, alone or under torchrun (chapters 9, 11 and 13).

    python -m transformer.training --out runs/grammar --preset tiny --steps 700
    python -m transformer.training --out runs/de-en --train train.de train.en --dev val.de val.en
    torchrun --nproc-per-node 2 -m transformer.training --out runs/…      (the same, on two GPUs)

The same command goes on where a killed one stopped.
"""

import argparse
import contextlib
import json
import math
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
import torch.distributed as dist

from transformer.config import TransformerConfig
from transformer.data.batches import BucketedBatches
from transformer.data.grammar import grammar_pairs, grammar_vocabularies
from transformer.data.parallel import encode_pairs, read_parallel
from transformer.data.text import BytePairEncoding, Tokenizing
from transformer.decoding.translate import load_tokenizers, translate
from transformer.metrics import bleu
from transformer.model import Transformer
from transformer.runtime import default_device, seed_everything
from transformer.training import evaluate_loss, fit, paper_schedule, warmup_schedule

Pairs = list[tuple[str, str]]
# What may change when a run goes on; everything else must be as it was.
_FREE = {"out", "steps", "save_every", "device", "compile", "quiet"}


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m transformer.training",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--out", type=Path, required=True, help="folder for tokenizers, checkpoints and results")
    files = {"nargs": 2, "type": Path, "metavar": ("SOURCE", "TARGET")}
    add("--train", **files, help="line-aligned text files; without them, the grammar corpus")
    add("--dev", **files, help="to measure loss, exact match and BLEU on")
    add("--pairs", type=_whole, default=20_000, help="of the grammar corpus (default: %(default)s)")
    add("--lowercase", action="store_true")
    add(
        "--vocab-size",
        type=_whole,
        default=8000,
        help="of the byte pairs of both languages together",
    )
    add(
        "--on-bad",
        choices=("error", "skip"),
        default="error",
        help="lines that are empty, too long …",
    )
    add("--preset", choices=("tiny", "small", "base", "big"), default="small")
    add("--norm", choices=("post", "pre"), default="post")
    add("--position", choices=("sinusoidal", "learned", "rotary", "none"), default="sinusoidal")
    add("--dropout", type=_share, help="default: the preset's")
    add("--max-len", type=_whole, default=256, help="in tokens (default: %(default)s)")
    add("--steps", type=_whole, default=1000)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--batch-size", type=_whole, help="sentences a process (default: 64)")
    size.add_argument("--max-tokens", type=_whole, help="positions a process, padding included")
    add("--accumulate", type=_whole, default=1, help="batches to a step")
    add("--warmup", type=_whole, default=200, help="steps (the paper: 4000)")
    add(
        "--peak",
        type=_positive,
        help="highest learning rate (default: the paper's, by d_model and warm-up)",
    )
    add("--smoothing", type=_share, default=0.1)
    add("--clip-norm", type=_positive, default=1.0)
    add("--seed", type=int, default=0)
    add("--save-every", type=_whole, default=500)
    add("--precision", choices=("auto", "fp32", "bf16", "fp16"), default="auto")
    add("--device", type=torch.device, help="default: the GPU if there is one")
    add("--compile", action="store_true", help="by torch.compile")
    add("--quiet", action="store_true", help="without a progress bar")
    args = parser.parse_args(arguments)
    if args.dev and not args.train:
        parser.error("--dev goes with --train; the grammar corpus has its own held-out split")
    return args


def _whole(text: str) -> int:
    if int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {text}")
    return int(text)


def _positive(text: str) -> float:
    if not 0 < float(text) < math.inf:
        raise argparse.ArgumentTypeError(f"must be positive, got {text}")
    return float(text)


def _share(text: str) -> float:
    if not 0 <= float(text) < 1:
        raise argparse.ArgumentTypeError(f"must be at least 0 and below 1, got {text}")
    return float(text)


def main(arguments: Sequence[str] | None = None) -> None:
    args = parse(arguments)
    with _processes(args.device) as (rank, world, device):
        train, dev = _read_pairs(args)
        if rank == 0:
            _open_run(args, train)
        if world > 1:
            dist.barrier()
        src, tgt = tokenizers = load_tokenizers(args.out)
        limits = {"max_len": args.max_len, "on_long": args.on_bad}
        examples, report = encode_pairs(train, *tokenizers, **limits)
        held_out, held_out_report = (
            encode_pairs(dev, *tokenizers, **limits) if dev else ([], "none")
        )
        if rank == 0:
            print(f"train: {report}\ndev: {held_out_report}")
        size = {"batch_size": args.batch_size or 64}
        if args.max_tokens is not None:
            size = {"max_tokens": args.max_tokens}
        batches = BucketedBatches(examples, seed=args.seed, rank=rank, world_size=world, **size)
        measured = BucketedBatches(held_out, shuffle=False, **size) if dev else None
        model = _make_model(args, tokenizers)
        losses = _fit(args, model, batches, measured, device)
        if rank == 0:
            print(f"training loss {losses[-1]:.3f} after {len(losses)} steps")
            if dev:
                kept = [(src.decode(s), tgt.decode(t[1:])) for s, t in held_out]
                _measure(args.out, model, tokenizers, kept, measured, steps=len(losses))


def _make_model(args: argparse.Namespace, tokenizers: tuple[Tokenizing, Tokenizing]) -> Transformer:
    seed_everything(args.seed)
    changes = {} if args.dropout is None else {"dropout": args.dropout}
    changes |= {"norm": args.norm, "position": args.position, "max_len": args.max_len}
    changes["share_embeddings"] = tokenizers[0] is tokenizers[1]
    return Transformer(getattr(TransformerConfig, args.preset)(*map(len, tokenizers), **changes))


def _fit(args, model, batches, measured, device) -> list[float]:
    schedule = paper_schedule(model.config.d_model, warmup=args.warmup)
    if args.peak is not None:
        schedule = warmup_schedule(args.peak, warmup=args.warmup)
    names = ("smoothing", "clip_norm", "accumulate", "seed", "precision", "save_every")
    history = fit(
        model,
        batches,
        n_steps=args.steps,
        schedule=schedule,
        device=device,
        compiled=args.compile,
        evaluate=(lambda model: evaluate_loss(model, measured.epoch(0))) if measured else None,
        evaluate_every=args.save_every,
        run=args.out,
        progress=not args.quiet,
        **{name: getattr(args, name) for name in names},
    )
    return history.losses


def _measure(
    run: Path, model, tokenizers, dev: Pairs, measured: BucketedBatches, *, steps: int
) -> None:
    """What the model makes of sentences that it has not learned from; also in results.json."""
    sources, references = zip(*dev, strict=True)
    loss = evaluate_loss(model, measured.epoch(0))
    found = translate(sources, model, *tokenizers)
    right = sum(map(str.__eq__, found, references)) / len(dev)
    score = bleu(hypotheses=found, references=references)
    results = {"loss": loss, "perplexity": math.exp(loss), "exact match": right}
    results |= {"BLEU": score.score, "signature": score.signature, "steps": steps}
    print(
        *(f"{k}: {v:.4g}" if isinstance(v, float) else f"{k}: {v}" for k, v in results.items()),
        sep="\n",
    )
    _write_json(run / "results.json", results)


@contextlib.contextmanager
def _processes(device: torch.device | None) -> Iterator[tuple[int, int, torch.device]]:
    """Joins the other processes that torchrun started, if it did: rank, how many, device."""
    device = device or default_device()
    if "LOCAL_RANK" not in os.environ:
        yield 0, 1, device
        return
    if device.type == "cuda":
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield dist.get_rank(), dist.get_world_size(), device
    finally:
        dist.destroy_process_group()


def _read_pairs(args: argparse.Namespace) -> tuple[Pairs, Pairs]:
    """The sentences to learn from, and those to measure on."""
    if not args.train:
        splits = (
            grammar_pairs(args.pairs, seed=args.seed),
            grammar_pairs(500, seed=args.seed + 1, split="test"),
        )
        return tuple([(" ".join(p.source), " ".join(p.target)) for p in split] for split in splits)
    read = []
    for paths in (args.train, args.dev):
        pairs, report = read_parallel(*paths, on_bad=args.on_bad) if paths else ([], None)
        if report and report.skipped:
            print(f"{paths[0]}, {paths[1]}: {report}")
        if args.lowercase:
            pairs = [(src.lower(), tgt.lower()) for src, tgt in pairs]
        read.append(pairs)
    return read[0], read[1]


def _open_run(args: argparse.Namespace, train: Pairs) -> None:
    """Makes the run's folder and tokenizers, or finds that those there are of the same settings."""
    settings = {k: v for k, v in vars(args).items() if k not in _FREE}
    settings = json.loads(json.dumps(settings, default=str))
    file = args.out / "settings.json"
    if file.exists():
        try:
            before = dict(json.loads(file.read_text(encoding="utf-8")))
        except (ValueError, TypeError) as error:
            raise ValueError(f"{file} is not of a training run: {error}") from error
        changed = [
            f"--{k.replace('_', '-')} was {before.get(k)}, is {v}"
            for k, v in settings.items()
            if before.get(k) != v
        ]
        if changed:
            raise ValueError(f"{args.out} is a run with other settings: {'; '.join(changed)}")
        return
    if args.out.exists() and (not args.out.is_dir() or any(args.out.iterdir())):
        raise ValueError(f"--out must be a new folder or that of a run, got {args.out}")
    args.out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=args.out.parent, prefix=".new-run-") as folder:
        made = Path(folder) / "run"
        made.mkdir()
        if args.train:
            lines = (side for pair in train for side in pair)
            BytePairEncoding.train(lines, vocab_size=args.vocab_size).save(made / "bpe.json")
        else:
            for name, vocabulary in zip(("source", "target"), grammar_vocabularies(), strict=True):
                vocabulary.save(made / f"{name}.json")
        _write_json(made / file.name, settings)
        if not args.out.exists():
            os.replace(made, args.out)
            return
        for name in sorted(os.listdir(made), key=file.name.__eq__):  # the settings come last
            os.replace(made / name, args.out / name)


def _write_json(path: Path, content: dict) -> None:
    temporary = path.with_suffix(".writing")
    temporary.write_text(json.dumps(content, indent=1), encoding="utf-8")
    os.replace(temporary, path)


if __name__ == "__main__":
    main()
