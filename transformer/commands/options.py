"""The options of a command are the fields of a dataclass; and what several commands share."""

import argparse
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from types import UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

import torch

from transformer.data.parallel import OnBad

LARGEST = 2**31 - 1

_Options = TypeVar("_Options")


@dataclass(frozen=True)
class Option:
    """Makes ``name: Annotated[int, Option("its help")] = 9`` the option --name of a dataclass.

    Its type says how it is read, unless ``kind`` does: int is ``whole``, float is ``finite``, a
    Literal a choice, a bool a switch. Of the options with one word in ``either`` only one may be
    given. A ``free`` option may change when a run goes on.
    """

    help: str = ""
    kind: Callable[[str], Any] | tuple[str, ...] | None = None
    metavar: str | tuple[str, ...] | None = None
    either: str | None = None
    free: bool = False
    positional: bool = False


def add_options(parser: argparse._ActionsContainer, kind: Any) -> None:
    """Gives ``parser`` an option for each field of ``kind`` that is one, in their order.

    A field that is a dataclass is a group of them, in the help under the text it is annotated
    with, if there is one.
    """
    exclusive: dict[str, argparse._ActionsContainer] = {}
    for f, hint, notes in _parts(kind):
        if is_dataclass(hint):
            add_options(parser.add_argument_group(*notes) if notes else parser, hint)
        for about in notes:
            if not isinstance(about, Option):
                continue
            place = parser
            if about.either:
                if about.either not in exclusive:
                    exclusive[about.either] = parser.add_mutually_exclusive_group()
                place = exclusive[about.either]
            words = _words(f, hint, about)
            if not about.positional:
                words |= {"required": True} if f.default is MISSING else {"default": f.default}
            dashes = "" if about.positional else "--"
            place.add_argument(dashes + f.name.replace("_", "-" if dashes else "_"), **words)


def read_options(kind: type[_Options], args: argparse.Namespace) -> _Options:
    """The ``kind`` that was given. Raises ValueError where it finds that they do not fit."""
    values: dict[str, Any] = {}
    for f, hint, notes in _parts(kind):
        if is_dataclass(hint) and isinstance(hint, type):
            values[f.name] = read_options(hint, args)
        elif notes:
            value = getattr(args, f.name)
            values[f.name] = tuple(value) if isinstance(value, list) else value
    return kind(**values)


def flat(options: Any) -> Iterator[tuple[Field, Option, Any]]:
    """All options, whatever group they are in, with their values."""
    for f, hint, notes in _parts(type(options)):
        if is_dataclass(hint):
            yield from flat(getattr(options, f.name))
        elif notes:
            yield f, notes[0], getattr(options, f.name)


def _parts(kind: Any) -> Iterator[tuple[Field, Any, tuple[Any, ...]]]:
    """The fields of a dataclass, each with its type and what that is annotated with."""
    hints = get_type_hints(kind, include_extras=True)
    for f in fields(kind):
        annotated = get_origin(hints[f.name]) is Annotated
        hint, *notes = get_args(hints[f.name]) if annotated else [hints[f.name]]
        if notes and isinstance(notes[0], type):  # a class made at run time, for its base
            hint, *notes = notes
        yield f, hint, tuple(notes)


def _words(f: Field, hint: Any, about: Option) -> dict[str, Any]:
    """What argparse wants to know of an option."""
    words: dict[str, Any] = {"help": about.help}
    if not any(f.default is no for no in (None, False, MISSING)):
        words["help"] = "; ".join(filter(None, [about.help, f"default: {f.default}"]))
    if isinstance(hint, UnionType):  # with None, which is what is not given
        hint = next(one for one in get_args(hint) if one is not type(None))
    if get_origin(hint) is tuple:
        words["nargs"], hint = len(get_args(hint)), get_args(hint)[0]
    kind = about.kind or {int: whole, float: finite}.get(hint, hint)
    if kind is bool:
        return words | {"action": argparse.BooleanOptionalAction if f.default else "store_true"}
    choices = get_args(kind) if get_origin(kind) is Literal else kind
    if isinstance(choices, tuple):
        return words | {"choices": choices}
    return words | {"type": kind, "metavar": about.metavar or _LETTERS.get(kind, "X")}


# Kinds of values


def whole(text: str) -> int:
    """A size or a number of steps."""
    if not 1 <= int(text) <= LARGEST:
        raise argparse.ArgumentTypeError(f"must be from 1 to {LARGEST}, got {text}")
    return int(text)


def positive(text: str) -> float:
    if not 0 < float(text) < math.inf:
        raise argparse.ArgumentTypeError(f"must be positive, got {text}")
    return float(text)


def passes(text: str) -> float:
    """Over the data; each is of at least one step, of which there are so many at most."""
    if not 0 < float(text) <= LARGEST:
        raise argparse.ArgumentTypeError(f"must be above 0 and at most {LARGEST}, got {text}")
    return float(text)


def share(text: str) -> float:
    if not 0 <= float(text) < 1:
        raise argparse.ArgumentTypeError(f"must be at least 0 and below 1, got {text}")
    return float(text)


def finite(text: str) -> float:
    if not math.isfinite(float(text)):
        raise argparse.ArgumentTypeError(f"must be finite, got {text}")
    return float(text)


def seed_number(text: str) -> int:
    if not 0 <= int(text) < 2**63:
        raise argparse.ArgumentTypeError(f"must be from 0 to {2**63 - 1}, got {text}")
    return int(text)


def device(text: str) -> torch.device:
    """One that can hold a number here; a GPU is only counted, since each use takes memory of it."""
    try:
        wanted = torch.device(text)
        if wanted.type == "cuda":
            is_here = (wanted.index or 0) < torch.cuda.device_count()
        else:
            torch.zeros((), device=wanted).item()
            is_here = True
    except (RuntimeError, AssertionError, ImportError):  # as different kinds of device say no
        is_here = False
    if not is_here:
        n_gpus = torch.cuda.device_count()
        known = f"cpu or cuda:0 to cuda:{n_gpus - 1}" if n_gpus else "cpu, as there is no GPU here"
        raise argparse.ArgumentTypeError(f"must be {known}; got {text!r}")
    return wanted


def best_last_or_step(text: str) -> str | int:
    """ "best", "last" or the number of a step."""
    if text in ("best", "last"):
        return text
    try:
        return whole(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be best, last or a step, got {text!r}") from None


_LETTERS: Mapping[Any, str | None] = {whole: "N", seed_number: "N", share: "P", device: None}


# What several commands share

Device = Annotated[
    torch.device | None, Option("default: the GPU if there is one", device, free=True)
]
OnBadLine = Annotated[OnBad, Option("lines that are empty, too long or not UTF-8")]


@dataclass(frozen=True)
class Decoding:
    """How sentences are translated, by default as ``translate`` does; its str goes with scores."""

    beam_size: Annotated[int, Option("1 is greedy", free=True)] = 4
    length_penalty: Annotated[
        float, Option("of beam search: more prefers longer sentences", free=True)
    ] = 0.6
    max_len: int | None = None

    def __str__(self) -> str:
        at_most = f", at most {self.max_len} tokens" if self.max_len else ""
        if self.beam_size == 1:
            return f"greedy{at_most}"
        return f"beam {self.beam_size}, length penalty {self.length_penalty:g}{at_most}"


@dataclass(frozen=True)
class Translating(Decoding):
    """The same, of as many sentences at once as are asked for."""

    max_len: Annotated[
        int | None, Option("of a translation, in tokens (default: 50 more than the source)")
    ] = None
    batch_size: Annotated[int, Option("sentences at once")] = 32
