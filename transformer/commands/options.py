"""What the options of several commands share: their kinds of values, and how to decode."""

import argparse
import math
from dataclasses import dataclass
from typing import get_args

import torch

from transformer.data.parallel import OnBad

_LARGEST = 2**31 - 1


def whole(text: str) -> int:
    """A size or a number of steps."""
    if not 1 <= int(text) <= _LARGEST:
        raise argparse.ArgumentTypeError(f"must be from 1 to {_LARGEST}, got {text}")
    return int(text)


def positive(text: str) -> float:
    if not 0 < float(text) < math.inf:
        raise argparse.ArgumentTypeError(f"must be positive, got {text}")
    return float(text)


def share(text: str) -> float:
    if not 0 <= float(text) < 1:
        raise argparse.ArgumentTypeError(f"must be at least 0 and below 1, got {text}")
    return float(text)


def finite(text: str) -> float:
    if not math.isfinite(float(text)):
        raise argparse.ArgumentTypeError(f"must be finite, got {text}")
    return float(text)


def seed(text: str) -> int:
    if not 0 <= int(text) < 2**63:
        raise argparse.ArgumentTypeError(f"must be from 0 to {2**63 - 1}, got {text}")
    return int(text)


def device(text: str) -> torch.device:
    """One that can hold a number here; a GPU is only counted, since each use takes memory of it."""
    try:
        found = torch.device(text)
        if found.type == "cuda":
            is_here = (found.index or 0) < torch.cuda.device_count()
        else:
            torch.zeros((), device=found).item()
            is_here = True
    except (RuntimeError, AssertionError, ImportError):  # as different kinds of device say no
        is_here = False
    if not is_here:
        n_gpus = torch.cuda.device_count()
        known = f"cpu or cuda:0 to cuda:{n_gpus - 1}" if n_gpus else "cpu, as there is no GPU here"
        raise argparse.ArgumentTypeError(f"must be {known}; got {text!r}")
    return found


def checkpoint(text: str) -> str | int:
    """ "best", "last" or the number of a step."""
    if text in ("best", "last"):
        return text
    try:
        return whole(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be best, last or a step, got {text!r}") from None


@dataclass(frozen=True)
class Decoding:
    """How sentences are translated, by default as ``translate`` does; its str goes with scores."""

    beam_size: int = 4
    length_penalty: float = 0.6
    max_len: int | None = None

    def __str__(self) -> str:
        at_most = f", at most {self.max_len} tokens" if self.max_len else ""
        if self.beam_size == 1:
            return f"greedy{at_most}"
        return f"beam {self.beam_size}, length penalty {self.length_penalty:g}{at_most}"


def add_decoding(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("decoding")
    group.add_argument(
        "--beam-size",
        type=whole,
        default=Decoding.beam_size,
        metavar="N",
        help="1 is greedy (default: %(default)s)",
    )
    group.add_argument(
        "--length-penalty",
        type=finite,
        default=Decoding.length_penalty,
        metavar="X",
        help="of beam search: more prefers longer sentences (default: %(default)s)",
    )


def add_run(parser: argparse.ArgumentParser) -> None:
    """Which model, and where it runs; ``args`` then has what ``RunFolder.load`` takes."""
    parser.add_argument("run", metavar="RUN", help="the folder that train wrote")
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument(
        "--checkpoint",
        type=checkpoint,
        default="best",
        metavar="best|last|STEP",
        help="best: the one of lowest loss on the dev set (default: %(default)s)",
    )
    chosen.add_argument(
        "--average",
        type=whole,
        metavar="N",
        help="the mean of the last N checkpoints, as train --keep N leaves them",
    )
    parser.add_argument(
        "--max-len",
        type=whole,
        metavar="N",
        help="of a translation, in tokens (default: 50 more than the source)",
    )
    parser.add_argument(
        "--batch-size", type=whole, default=32, metavar="N", help="default: %(default)s"
    )
    parser.add_argument("--device", type=device, help="default: the GPU if there is one")


def add_on_bad(group: argparse._ActionsContainer) -> None:
    group.add_argument(
        "--on-bad",
        choices=get_args(OnBad),
        default="error",
        help="lines that are empty, too long or not UTF-8 (default: %(default)s)",
    )
