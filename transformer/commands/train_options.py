"""The options of ``python -m transformer train``, in the order in which one would think of them."""

import json
from dataclasses import dataclass, field, fields, make_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

from transformer.commands.options import (
    Decoding,
    Device,
    OnBadLine,
    Option,
    flat,
    passes,
    positive,
    seed_number,
    share,
)
from transformer.config import TransformerConfig
from transformer.positional import POSITIONS
from transformer.runtime import Precision

Files = tuple[Path, Path]  # of the source and of the target
_FILES: Any = {"metavar": ("SOURCE", "TARGET"), "free": True}  # with what they held, elsewhere


@dataclass(frozen=True)
class Data:
    """What is learned from, and measured on."""

    train: Annotated[
        Files | None,
        Option(
            "line-aligned text files, plain or gzip; without them, the grammar corpus", **_FILES
        ),
    ] = None
    dev: Annotated[
        Files | None,
        Option("to measure on at each checkpoint, and find the best one", **_FILES),
    ] = None
    test: Annotated[
        Files | None, Option("to measure the best checkpoint on at the end", **_FILES)
    ] = None
    pairs: Annotated[int, Option("of the grammar corpus")] = 20_000
    lowercase: Annotated[bool, Option("both languages")] = False
    vocab_size: Annotated[int, Option("of the byte pairs of both languages together")] = 8000
    on_bad: OnBadLine = "error"

    def __post_init__(self) -> None:
        if not self.train and self.dev:
            raise ValueError(
                "--dev goes with --train; the grammar corpus has its own held-out split"
            )
        if not self.train and self.lowercase:
            raise ValueError("--lowercase goes with --train; the grammar corpus is in lower case")


@dataclass(frozen=True)
class Preset:
    """The sizes and the parts of the model, which ``Model`` below completes."""

    preset: Annotated[
        Literal["tiny", "small", "base", "big"],
        Option("sizes of chapter 8, which the next options change"),
    ] = "small"

    def config(self, src_size: int, tgt_size: int, *, shared: bool) -> TransformerConfig:
        """``shared``: both vocabularies are one, and so are the tables of embeddings."""
        given = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "preset"}
        changes = {name: value for name, value in given.items() if value is not None}
        preset = getattr(TransformerConfig, self.preset)
        return preset(src_size, tgt_size, share_embeddings=shared, **changes)


# A field of the configuration is an option by itself, but for those that the data decide.
_DECIDED = ("src_vocab_size", "tgt_vocab_size", "pad_id", "share_embeddings")
_OF_PRESETS = ("d_model", "n_heads", "n_encoder_layers", "n_decoder_layers", "d_ff", "dropout")
_KINDS: dict[str, Any] = {"dropout": share, "position": tuple(POSITIONS)}
_HELP = {"max_len": "in tokens", **dict.fromkeys(_OF_PRESETS, "default: the preset's")}
_DEFAULTS: dict[str, Any] = {"max_len": 256, **dict.fromkeys(_OF_PRESETS)}


def model_options(config: type[TransformerConfig]) -> type[Preset]:
    hints, made = get_type_hints(config), []
    for f in fields(config):
        if f.name not in _DECIDED:
            about = Option(_HELP.get(f.name, ""), _KINDS.get(f.name))
            default = field(default=_DEFAULTS.get(f.name, f.default))
            made.append((f.name, Annotated[hints[f.name], about], default))
    return make_dataclass("Model", made, bases=(Preset,), frozen=True)


Model = model_options(TransformerConfig)


@dataclass(frozen=True)
class Course:
    """How long, and in what steps."""

    steps: Annotated[int | None, Option("default: 1000", either="length", free=True)] = None
    epochs: Annotated[
        float | None, Option("passes over the training data", passes, either="length", free=True)
    ] = None
    schedule: Annotated[
        Literal["paper", "linear"], Option("after the warm-up: the paper's √-decay, or down to 0")
    ] = "paper"
    warmup: Annotated[int, Option("steps; the paper: 4000")] = 200
    peak: Annotated[
        float | None,
        Option("highest learning rate (default: the paper's, by d_model and warm-up)", positive),
    ] = None
    smoothing: Annotated[float, Option(kind=share)] = 0.1
    clip_norm: Annotated[float, Option(kind=positive)] = 1.0
    seed: Annotated[int, Option(kind=seed_number)] = 0

    def __post_init__(self) -> None:
        if self.steps is None and self.epochs is None:
            object.__setattr__(self, "steps", 1000)


@dataclass(frozen=True)
class Batches:
    """How much makes a step."""

    batch_size: Annotated[
        int | None, Option("sentences a process (default: 16)", either="size")
    ] = None
    max_tokens: Annotated[
        int | None, Option("positions a process, padding included", either="size")
    ] = None
    accumulate: Annotated[
        int | None,
        Option(
            "batches to a step; a batch holds one length, a step learns better from several "
            "(default: 4, or 1 where the size of a batch is given)"
        ),
    ] = None

    @property
    def per_step(self) -> int:
        """How many batches make a step."""
        if self.accumulate is not None:
            return self.accumulate
        return 1 if self.batch_size or self.max_tokens else 4

    @property
    def sentences(self) -> int | None:
        """As many, unless --max-tokens says how many tokens."""
        return (self.batch_size or 16) if self.max_tokens is None else None


@dataclass(frozen=True)
class Machine:
    """Where it runs, what it shows and keeps."""

    save_every: Annotated[
        int, Option("steps between checkpoints, where the dev set is measured", free=True)
    ] = 500
    keep: Annotated[int, Option("latest checkpoints, and the best one besides", free=True)] = 2
    precision: Annotated[Precision, Option()] = "auto"
    device: Device = None
    compile: Annotated[bool, Option("by torch.compile", free=True)] = False
    quiet: Annotated[bool, Option("no progress on standard error", free=True)] = False


@dataclass(frozen=True)
class Options:
    """All that ``train`` is told."""

    out: Annotated[
        Path, Option("for tokenizers, checkpoints and results", metavar="FOLDER", free=True)
    ]
    data: Annotated[Data, "data"]
    model: Annotated[Preset, Model, "model"]
    course: Annotated[Course, "training"]
    batches: Annotated[Batches, "batches"]
    machine: Annotated[Machine, "saving and running"]
    decoding: Annotated[Decoding, "decoding"]

    def settled(self) -> dict[str, Any]:
        """What must be as it was when a run goes on, by the names of the options.

        A decay to the last step depends on which step is the last. The sentences are held against
        their digests instead.
        """
        ends = ("steps", "epochs") if self.course.schedule == "linear" else ()
        kept = {f.name: value for f, of, value in flat(self) if f.name in ends or not of.free}
        return json.loads(json.dumps(kept))  # as it is read again
