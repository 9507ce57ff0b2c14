"""Line-aligned files as the commands learn from them and measure on them (chapter 11)."""

import hashlib
from pathlib import Path
from typing import NamedTuple

from transformer.data.parallel import OnBad, encode_pairs, read_parallel
from transformer.data.text import Tokenizing, clean_line
from transformer.data.tokens import Example

Pairs = list[tuple[str, str]]
Tokenizers = tuple[Tokenizing, Tokenizing]  # of the source and of the target


class Split(NamedTuple):
    """Sentences as they were read, and as the model reads them."""

    pairs: Pairs
    examples: list[Example]


def read_files(
    source: Path, target: Path, *, on_bad: OnBad = "error", quiet: bool = False
) -> Pairs:
    """The pairs of two files; what was skipped is printed unless it is to be ``quiet``.

    Raises ValueError for one file in two roles, whose lines would translate themselves.
    """
    if source.is_file() and target.is_file() and source.samefile(target):
        raise ValueError(f"the source and the target must be two files, got {source} as both")
    pairs, report = read_parallel(source, target, on_bad=on_bad)
    if report.skipped and not quiet:
        print(f"{source}, {target}: {report}")
    return pairs


def encode(
    pairs: Pairs, tokenizers: Tokenizers, *, lowercase: bool, max_len: int, on_bad: OnBad, name: str
) -> tuple[Split, str]:
    """The pairs that fit, and a report to be printed.

    Raises ValueError, which says ``name``, where one does not, as ``encode_pairs`` does.
    """
    read = [
        (clean_line(src, lowercase=lowercase), clean_line(tgt, lowercase=lowercase))
        for src, tgt in pairs
    ]
    try:
        examples, report = encode_pairs(read, *tokenizers, max_len=max_len, on_long=on_bad)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
    left_out = set(report.left_out)
    kept = [pair for number, pair in enumerate(pairs, start=1) if number not in left_out]
    return Split(kept, examples), str(report)


def digest(pairs: Pairs) -> str:
    """The SHA-256 by which the same sentences in the same order are known again."""
    lines = "".join(f"{src}\n{tgt}\n" for src, tgt in pairs)
    return hashlib.sha256(lines.encode()).hexdigest()
