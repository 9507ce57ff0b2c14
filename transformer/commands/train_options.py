"""The options of ``python -m transformer train``, in the order in which one would think of them."""

import argparse
from dataclasses import fields
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_type_hints

import torch

from transformer.commands.options import (
    add_decoding,
    add_device,
    add_number,
    add_on_bad,
    add_tokenize,
    finite,
    not_negative,
    positive,
    seed,
    share,
    whole,
)
from transformer.config import TransformerConfig
from transformer.positional import POSITIONS
from transformer.runtime import Precision

# All others are settled when a run begins. The sentences are held against their digests instead.
MAY_CHANGE = {
    *("out", "train", "dev", "test", "steps", "epochs", "save_every", "keep", "device", "compile"),
    *("quiet", "beam_size", "length_penalty", "early_stopping", "tokenize", "command", "debug"),
}
# A field of the configuration is an option by itself, but for those that the data decide.
DATA_FIELDS = {"src_vocab_size", "tgt_vocab_size", "pad_id", "share_embeddings"}
PRESET_FIELDS = ("d_model", "n_heads", "n_encoder_layers", "n_decoder_layers", "d_ff", "dropout")
DEFAULTS: dict[str, Any] = {"max_len": 256, **dict.fromkeys(PRESET_FIELDS)}
# of torch.optim, those that take weights of any shape, dense gradients and no closure
OPTIMIZERS: dict[str, Any] = {
    name.lower(): getattr(torch.optim, name)
    for name in (
        *("Adadelta", "Adafactor", "Adagrad", "Adam", "Adamax", "AdamW", "ASGD"),
        *("NAdam", "RAdam", "RMSprop", "Rprop", "SGD"),
    )
}


def add_options(parser: argparse.ArgumentParser) -> None:
    text = "for tokenizers, checkpoints and results"
    parser.add_argument("--out", required=True, metavar="FOLDER", help=text)
    _add_data(parser.add_argument_group("data"))
    add_model(parser.add_argument_group("model"), TransformerConfig)
    _add_training(parser.add_argument_group("training"))
    add_batches(parser.add_argument_group("batches"))
    _add_machine(parser.add_argument_group("saving and running"))
    measuring = parser.add_argument_group("measuring")
    add_decoding(measuring)
    add_tokenize(measuring)


def _add_data(group: argparse._ArgumentGroup) -> None:
    for name, text in (
        ("--train", "line-aligned text files, plain or gzip; without them, the grammar corpus"),
        ("--dev", "to measure on at each checkpoint, and find the best one"),
        ("--test", "to measure the best checkpoint on at the end"),
    ):
        group.add_argument(name, nargs=2, type=Path, metavar=("SOURCE", "TARGET"), help=text)
    add_number(group, "--pairs", whole, 20_000, "of the grammar corpus")
    group.add_argument("--lowercase", action="store_true", help="both languages")
    text = "of the byte pairs of both languages together"
    add_number(group, "--vocab-size", whole, 8000, text)
    add_on_bad(group, "lines that are empty, too long or not UTF-8")


def add_model(group: argparse._ActionsContainer, config: type[TransformerConfig]) -> None:
    """The sizes and the parts of the model: of each field its type, its choices, its default."""
    text = "sizes of chapter 8, which the next options change; default: small"
    presets = ("tiny", "small", "base", "big")
    group.add_argument("--preset", choices=presets, default="small", help=text)
    hints = get_type_hints(config)
    for field in fields(config):
        if field.name in DATA_FIELDS:
            continue
        option, hint = f"--{field.name.replace('_', '-')}", hints[field.name]
        if isinstance(hint, UnionType):  # with None, which is what is not given
            hint = next(kind for kind in get_args(hint) if kind is not type(None))
        default = DEFAULTS.get(field.name, field.default)
        text = "the preset's" if field.name in PRESET_FIELDS else default
        choices = tuple(POSITIONS) if field.name == "position" else get_args(hint)
        if choices or hint is bool:
            words = {"choices": choices} if choices else {"action": argparse.BooleanOptionalAction}
            group.add_argument(option, default=default, help=f"default: {text}", **words)
        else:
            kind = share if field.name == "dropout" else whole if hint is int else finite
            shown = "default: the preset's" if field.name in PRESET_FIELDS else ""
            add_number(group, option, kind, default, shown)


def model_config(
    args: argparse.Namespace, *, src_vocab_size: int, tgt_vocab_size: int
) -> TransformerConfig:
    """The configuration that the options ask for; byte pairs are of both languages."""
    names = {field.name for field in fields(TransformerConfig)} - DATA_FIELDS
    changes = {name: getattr(args, name) for name in names if getattr(args, name) is not None}
    preset = getattr(TransformerConfig, args.preset)
    return preset(src_vocab_size, tgt_vocab_size, share_embeddings=bool(args.train), **changes)


def _add_training(group: argparse._ArgumentGroup) -> None:
    length = group.add_mutually_exclusive_group()
    add_number(length, "--steps", whole, text="default: 1000")
    add_number(length, "--epochs", positive, text="passes over the training data")
    text = "of torch.optim, with its defaults there; default: the paper's Adam"
    group.add_argument("--optimizer", choices=OPTIMIZERS, metavar="NAME", help=text)
    add_number(group, "--weight-decay", not_negative, text="of the optimizer")
    text = "after the warm-up: the paper's √-decay, or down to 0; default: paper"
    group.add_argument("--schedule", choices=("paper", "linear"), default="paper", help=text)
    add_number(group, "--warmup", whole, 200, "steps; the paper: 4000")
    text = "highest learning rate (default: the paper's, by d_model and warm-up)"
    add_number(group, "--peak", positive, text=text)
    add_number(group, "--smoothing", share, 0.1)
    add_number(group, "--clip-norm", positive, 1.0)
    add_number(group, "--seed", seed, 0)


def add_batches(group: argparse._ActionsContainer) -> None:
    size = group.add_mutually_exclusive_group()
    add_number(size, "--batch-size", whole, text="sentences a process (default: 16)")
    add_number(size, "--max-tokens", whole, text="positions a process, padding included")
    text = (
        "batches to a step; a batch holds one length, a step learns better from several "
        "(default: 4, or 1 where the size of a batch is given)"
    )
    add_number(group, "--accumulate", whole, text=text)


def _add_machine(group: argparse._ArgumentGroup) -> None:
    text = "steps between checkpoints, where the dev set is measured"
    add_number(group, "--save-every", whole, 500, text)
    add_number(group, "--keep", whole, 2, "latest checkpoints, and the best one besides")
    text = "default: auto"
    group.add_argument("--precision", choices=get_args(Precision), default="auto", help=text)
    add_device(group)
    group.add_argument("--compile", action="store_true", help="by torch.compile")
    group.add_argument("--quiet", action="store_true", help="no progress on standard error")


def settled(args: argparse.Namespace) -> dict[str, Any]:
    """What must be as it was when a run goes on, by the names of the options.

    A decay to the last step depends on which step is the last.
    """
    may_change = MAY_CHANGE - ({"steps", "epochs"} if args.schedule == "linear" else set())
    return {name: value for name, value in vars(args).items() if name not in may_change}
