"""How the command line reads a number or a word, and the options that several commands share.

argparse reads the options: tyro and jsonargparse would from a dataclass, but say in a box or over
many lines what is wrong, and need as much code as this to say it in one.
"""

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_args

import torch

from transformer.data.parallel import OnBad
from transformer.decoding.limits import check_length_penalty
from transformer.decoding.translate import check_beam_size
from transformer.runtime import default_device

LARGEST = 2**31 - 1


def _number(kind: type, wanted: str, allows: Callable[[Any], bool]) -> Callable[[str], Any]:
    """Reads an option whose value is a ``kind`` that ``allows`` lets through."""

    def read(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not allows(value):
            raise argparse.ArgumentTypeError(f"must be {wanted}, got {text}")
        return value

    return read


whole = _number(int, f"a whole number from 1 to {LARGEST}", lambda n: 1 <= n <= LARGEST)
seed = _number(int, f"a whole number from 0 to {2**63 - 1}", lambda n: 0 <= n < 2**63)
positive = _number(float, "positive", lambda x: 0 < x < math.inf)
not_negative = _number(float, "at least 0", lambda x: 0 <= x < math.inf)
share = _number(float, "at least 0 and below 1", lambda x: 0 <= x < 1)
finite = _number(float, "finite", math.isfinite)


def device(text: str) -> torch.device:
    """The CPU, or a GPU that is here."""
    n_gpus, kind = torch.accelerator.device_count(), default_device().type
    try:
        wanted = torch.device(text)
        is_here = wanted.type == "cpu" or (wanted.type == kind and (wanted.index or 0) < n_gpus)
    except RuntimeError:  # of a word that names no device
        is_here = False
    if not is_here:
        gpus = f"or {kind}:0 to {kind}:{n_gpus - 1}" if n_gpus else "as there is no GPU here"
        raise argparse.ArgumentTypeError(f"must be cpu, {gpus}; got {text!r}")
    return wanted


def best_last_or_step(text: str) -> str | int:
    """ "best", "last" or the number of a step."""
    if text in ("best", "last"):
        return text
    try:
        return whole(text)
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(f"must be best, last or a step, got {text!r}") from None


@dataclass(frozen=True)
class Decoding:
    """How sentences are translated, by default as ``translate`` does; its str goes with scores."""

    beam_size: int = 4
    length_penalty: float = 0.6
    max_len: int | None = None
    early_stopping: bool = False

    def check(self, *, max_len: int, tgt_vocab_size: int) -> None:
        """Raises ValueError for what a model of these sizes cannot decode with."""
        if self.max_len is not None and self.max_len > max_len:
            raise ValueError(f"--max-len must be at most {max_len}, got {self.max_len}")
        check_beam_size(self.beam_size, tgt_vocab_size)
        check_length_penalty(self.length_penalty, self.max_len or max_len)

    def __str__(self) -> str:
        at_most = f", at most {self.max_len} tokens" if self.max_len else ""
        if self.beam_size == 1:
            return f"greedy{at_most}"
        early = ", early stopping" if self.early_stopping else ""
        return f"beam {self.beam_size}, length penalty {self.length_penalty:g}{early}{at_most}"


def add_number(
    group: argparse._ActionsContainer,
    name: str,
    kind: Callable[[str], Any],
    default: int | float | None = None,
    text: str = "",
) -> None:
    """An option whose help ends in its default, if it has one."""
    numbers = (positive, not_negative, finite)
    letter = "P" if kind is share else "X" if kind in numbers else "N"
    shown = "" if default is None else f"default: {default}"
    about = "; ".join(filter(None, (text, shown)))
    group.add_argument(name, type=kind, default=default, metavar=letter, help=about)


def add_device(group: argparse._ActionsContainer) -> None:
    group.add_argument("--device", type=device, help="default: the GPU if there is one")


def add_on_bad(group: argparse._ActionsContainer, text: str) -> None:
    choices = get_args(OnBad)
    group.add_argument("--on-bad", choices=choices, default="error", help=f"{text}; default: error")


def add_decoding(group: argparse._ActionsContainer) -> None:
    add_number(group, "--beam-size", whole, 4, "1 is greedy")
    penalty = "of beam search: more prefers longer sentences; one like -1e-3 with = before it"
    add_number(group, "--length-penalty", finite, 0.6, penalty)
    early = "end when as many sentences as beams have ended: sooner, and at times worse"
    group.add_argument("--early-stopping", action="store_true", help=early)


def add_tokenize(group: argparse._ActionsContainer) -> None:
    choices = ("13a", "char", "intl", "none", "zh")  # those that need no other library or file
    text = "how BLEU splits text: zh for Chinese, char for Japanese and Thai; default: 13a"
    group.add_argument("--tokenize", choices=choices, default="13a", help=text)


def add_translating(group: argparse._ActionsContainer) -> None:
    """Adds the options of decoding, and how many sentences are decoded at once."""
    add_decoding(group)
    longest = "of a translation, in tokens (default: 50 more than the source)"
    add_number(group, "--max-len", whole, text=longest)
    add_number(group, "--batch-size", whole, 32, "sentences at once")
