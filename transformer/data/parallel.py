"""Sentence pairs from line-aligned files, and as ids; what is left out is counted (chapter 11)."""

import gzip
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from transformer.checks import check_choice
from transformer.data.text import Tokenizing, clean_line
from transformer.data.tokens import BOS_ID, EOS_ID, UNK_ID, Example, Sentence

OnBad = Literal["error", "skip"]
LONGEST_LINE = 2**14  # bytes; byte pairs are learned in a time that grows as a word's square


@dataclass(frozen=True)
class Report:
    """How many pairs were kept, which left out and why, and how many tokens are unknown."""

    kept: int
    skipped: dict[str, int]
    unknown: dict[str, tuple[int, int]] = field(default_factory=dict)  # side: (unknown, all)
    left_out: tuple[int, ...] = ()  # the numbers of the pairs that were skipped, from 1

    def __str__(self) -> str:
        reasons = ", ".join(f"{n} {reason}" for reason, n in sorted(self.skipped.items()))
        left_out = f"{sum(self.skipped.values())} left out" + (f" ({reasons})" if reasons else "")
        unknown = [f"{n} of {of} {side} tokens unknown" for side, (n, of) in self.unknown.items()]
        return "; ".join([f"{self.kept} pairs kept, {left_out}", *unknown])


def read_parallel(
    src_path: str | Path,
    tgt_path: str | Path,
    *,
    on_bad: OnBad = "error",
) -> tuple[list[tuple[str, str]], Report]:
    r"""The pairs of two UTF-8 files, line n of one translating line n of the other; chapter 11.

    A file whose name ends in .gz is gzip. Lines are split by ``read_lines`` and cleaned by
    ``clean_line``. A pair is bad if a side is empty, or has a fault that ``read_lines`` finds.

    Raises ValueError for files of different lengths, broken gzip, and no good pair at all; and for
    a bad pair unless ``on_bad`` is "skip".
    """
    check_choice(get_args(OnBad), on_bad=on_bad)
    src_lines, tgt_lines = _read_file(src_path), _read_file(tgt_path)
    pairs: list[tuple[str, str]] = []
    skipped: dict[int, str] = {}  # which, and why
    # a bad line comes first: it may be why there are not as many
    numbered = enumerate(zip(src_lines, tgt_lines, strict=False), start=1)
    for number, ((src, src_fault), (tgt, tgt_fault)) in numbered:
        fault = src_fault or tgt_fault
        if fault is None:
            pairs.append((src, tgt))
        elif on_bad == "skip":
            skipped[number] = fault
        else:
            raise ValueError(f"{src_path if src_fault else tgt_path}, line {number}: {fault}")
    if len(src_lines) != len(tgt_lines):
        raise ValueError(
            f"src_path and tgt_path must have as many lines as each other, got {len(src_lines)} "
            f"in {src_path} and {len(tgt_lines)} in {tgt_path}"
        )
    report = Report(len(pairs), dict(Counter(skipped.values())), left_out=tuple(skipped))
    if not pairs:
        raise ValueError(f"{src_path} and {tgt_path} hold no pair to learn from: {report}")
    return pairs, report


def encode_pairs(
    pairs: Iterable[tuple[Sentence, Sentence]],
    src_tokenizer: Tokenizing,
    tgt_tokenizer: Tokenizing,
    *,
    max_len: int,
    on_long: OnBad = "error",
) -> tuple[list[Example], Report]:
    """Pairs of sentences as ids: w1 … <eos> for the source, <bos> w1 … <eos> for the target.

    A pair is too long if a side has more than ``max_len`` tokens, specials included; chapter 11.

    Raises ValueError if no pair fits, and for one that does not unless ``on_long`` is "skip".
    """
    check_choice(get_args(OnBad), on_long=on_long)
    examples: list[Example] = []
    left_out: list[int] = []
    for number, (src_text, tgt_text) in enumerate(pairs, start=1):
        src = [*src_tokenizer.encode(_cleaned(src_text)), EOS_ID]
        tgt = [BOS_ID, *tgt_tokenizer.encode(_cleaned(tgt_text)), EOS_ID]
        longest = max(len(src), len(tgt))
        if longest <= max_len:
            examples.append((src, tgt))
        elif on_long == "error":
            raise ValueError(f"pair {number} must fit max_len {max_len}, got {longest} tokens")
        else:
            left_out.append(number)
    unknown = {}
    for side, sequences in zip(("source", "target"), zip(*examples, strict=True), strict=False):
        words = [i for ids in sequences for i in ids if i not in (BOS_ID, EOS_ID)]
        unknown[side] = (words.count(UNK_ID), len(words))
    skipped = {f"over {max_len} tokens": len(left_out)} if left_out else {}
    report = Report(len(examples), skipped, unknown, tuple(left_out))
    if not examples:
        raise ValueError(f"pairs must hold one of at most {max_len} tokens, got none: {report}")
    return examples, report


def read_lines(lines: Iterable[bytes]) -> Iterator[tuple[str, str | None]]:
    r"""The lines of a binary file, each as soon as it is there, and its fault; chapter 11.

    Only ``\n`` and ``\r\n`` end a line. It is cleaned by ``clean_line``; one that is not UTF-8, is
    longer than 16,384 bytes, or has a ``\r`` or a NUL inside comes as "" with the fault.
    """
    for line in lines:
        if b"\r" in line.rstrip():  # another program's end of a line: there may be many in it
            yield "", "with \\r inside, where lines must end with \\n or \\r\\n"
        elif len(line.rstrip(b"\r\n")) > LONGEST_LINE:
            yield "", f"over {LONGEST_LINE} bytes"
        elif b"\0" in line:
            yield "", "not UTF-8, for it has a NUL"
        else:
            try:
                yield clean_line(line.decode()), None
            except UnicodeDecodeError:
                yield "", "not UTF-8"


def _read_file(path: str | Path) -> list[tuple[str, str | None]]:
    """The lines of a file and their faults, of which emptiness is one."""
    try:
        with gzip.open(path) if str(path).endswith(".gz") else open(path, "rb") as file:
            return [
                (line, fault or (None if line else "empty")) for line, fault in read_lines(file)
            ]
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path} is not a whole gzip file: {error}") from error


def _cleaned(sentence: Sentence) -> Sentence:
    return clean_line(sentence) if isinstance(sentence, str) else sentence
