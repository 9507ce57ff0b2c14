"""The options of ``python -m transformer train``, in the order in which one would think of them."""

import argparse
from pathlib import Path
from typing import get_args

from transformer.commands.options import (
    add_decoding,
    add_on_bad,
    device,
    positive,
    seed,
    share,
    whole,
)
from transformer.layers import NormOrder
from transformer.positional import POSITIONS
from transformer.runtime import Precision

# What may change when a run goes on: where things are, when it ends, what is shown and kept.
# Everything else must be as it was. The sentences are held against their digests instead.
FREE = {
    *("out", "train", "dev", "test", "steps", "epochs", "save_every", "keep", "device", "compile"),
    *("beam_size", "length_penalty", "quiet", "debug", "prog", "check", "execute"),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.usage = "%(prog)s --out FOLDER [options]"
    parser.add_argument(
        "--out",
        metavar="FOLDER",
        type=Path,
        required=True,
        help="for tokenizers, checkpoints and results",
    )
    _add_data(parser.add_argument_group("data"))
    _add_model(parser.add_argument_group("model"))
    _add_training(parser.add_argument_group("training"))
    _add_batches(parser.add_argument_group("batches"))
    _add_machine(parser.add_argument_group("saving and running"))
    add_decoding(parser)
    parser.set_defaults(check=lambda args: _check(parser, args))


def free(args: argparse.Namespace) -> set[str]:
    """The options that may change; a decay to the last step depends on which step is the last."""
    return FREE - {"steps", "epochs"} if args.schedule == "linear" else FREE


def _check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    if not args.train and args.dev:
        parser.error("--dev goes with --train; the grammar corpus has its own held-out split")
    if not args.train and args.lowercase:
        parser.error("--lowercase goes with --train; the grammar corpus is in lower case")
    if args.epochs is None and args.steps is None:
        args.steps = 1000
    if args.accumulate is None:
        args.accumulate = 1 if args.batch_size or args.max_tokens else 4


def _add_data(group: argparse._ArgumentGroup) -> None:
    for name, text in (
        ("--train", "line-aligned text files, plain or gzip; without them, the grammar corpus"),
        ("--dev", "to measure on at each checkpoint, and find the best one"),
        ("--test", "to measure the best checkpoint on at the end"),
    ):
        group.add_argument(name, nargs=2, type=Path, metavar=("SOURCE", "TARGET"), help=text)
    group.add_argument(
        "--pairs",
        type=whole,
        default=20_000,
        metavar="N",
        help="of the grammar corpus (default: %(default)s)",
    )
    group.add_argument("--lowercase", action="store_true", help="both languages")
    group.add_argument(
        "--vocab-size",
        type=whole,
        default=8000,
        metavar="N",
        help="of the byte pairs of both languages together (default: %(default)s)",
    )
    add_on_bad(group)


def _add_model(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--preset",
        choices=("tiny", "small", "base", "big"),
        default="small",
        help="sizes of chapter 8, which the next five change (default: %(default)s)",
    )
    for name in ("--d-model", "--n-heads", "--n-encoder-layers", "--n-decoder-layers", "--d-ff"):
        group.add_argument(name, type=whole, metavar="N", help="default: the preset's")
    group.add_argument("--dropout", type=share, metavar="P", help="default: the preset's")
    group.add_argument(
        "--norm", choices=get_args(NormOrder), default="post", help="default: %(default)s"
    )
    group.add_argument(
        "--position", choices=tuple(POSITIONS), default="sinusoidal", help="default: %(default)s"
    )
    group.add_argument(
        "--max-len", type=whole, default=256, metavar="N", help="in tokens (default: %(default)s)"
    )


def _add_training(group: argparse._ArgumentGroup) -> None:
    length = group.add_mutually_exclusive_group()
    length.add_argument("--steps", type=whole, metavar="N", help="default: 1000")
    length.add_argument(
        "--epochs", type=positive, metavar="X", help="passes over the training data"
    )
    group.add_argument(
        "--schedule",
        choices=("paper", "linear"),
        default="paper",
        help="after the warm-up: the paper's √-decay, or down to 0 (default: %(default)s)",
    )
    group.add_argument(
        "--warmup",
        type=whole,
        default=200,
        metavar="N",
        help="steps (default: %(default)s; the paper: 4000)",
    )
    group.add_argument(
        "--peak",
        type=positive,
        metavar="RATE",
        help="highest learning rate (default: the paper's, by d_model and warm-up)",
    )
    group.add_argument(
        "--smoothing", type=share, default=0.1, metavar="P", help="default: %(default)s"
    )
    group.add_argument(
        "--clip-norm", type=positive, default=1.0, metavar="X", help="default: %(default)s"
    )
    group.add_argument("--seed", type=seed, default=0, metavar="N", help="default: %(default)s")


def _add_batches(group: argparse._ArgumentGroup) -> None:
    size = group.add_mutually_exclusive_group()
    size.add_argument(
        "--batch-size", type=whole, metavar="N", help="sentences a process (default: 16)"
    )
    size.add_argument(
        "--max-tokens", type=whole, metavar="N", help="positions a process, padding included"
    )
    group.add_argument(
        "--accumulate",
        type=whole,
        metavar="N",
        help="batches to a step; a batch holds one length, a step learns better from several "
        "(default: 4, or 1 where the size of a batch is given)",
    )


def _add_machine(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--save-every",
        type=whole,
        default=500,
        metavar="N",
        help="steps between checkpoints, where the dev set is measured (default: %(default)s)",
    )
    group.add_argument(
        "--keep",
        type=whole,
        default=2,
        metavar="N",
        help="latest checkpoints, and the best one besides (default: %(default)s)",
    )
    group.add_argument("--precision", choices=get_args(Precision), default="auto")
    group.add_argument("--device", type=device, help="default: the GPU if there is one")
    group.add_argument("--compile", action="store_true", help="by torch.compile")
    group.add_argument("--quiet", action="store_true", help="no progress on standard error")
