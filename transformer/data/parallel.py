"""Sentence pairs from line-aligned files, and as ids; what is left out is counted (chapter 11)."""

import codecs
import gzip
import zlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from transformer.checks import check_choice
from transformer.data.text import Tokenizing
from transformer.data.tokens import BOS_ID, EOS_ID, UNK_ID, Example, Sentence

OnBad = Literal["error", "skip"]


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
    max_words: int | None = None,
    on_bad: OnBad = "error",
) -> tuple[list[tuple[str, str]], Report]:
    r"""The pairs of two UTF-8 files, line n of one translating line n of the other; chapter 11.

    Plain or gzip, with or without a byte-order mark. Only \n and \r\n end a line; white space
    around it is dropped. A pair is bad if a side is not UTF-8, empty, or over ``max_words``.

    Raises ValueError for files of different lengths, of broken gzip, of nothing but \r where
    lines should end, or without a good pair; and for a bad pair unless ``on_bad`` is "skip".
    """
    check_choice(get_args(OnBad), on_bad=on_bad)
    paths = (src_path, tgt_path)
    src_lines, tgt_lines = map(_read_lines, paths)
    if len(src_lines) != len(tgt_lines):
        raise ValueError(
            f"src_path and tgt_path must have as many lines as each other, got {len(src_lines)} "
            f"in {src_path} and {len(tgt_lines)} in {tgt_path}"
        )
    pairs: list[tuple[str, str]] = []
    skipped: dict[int, str] = {}  # which, and why
    for number, lines in enumerate(zip(src_lines, tgt_lines, strict=True), start=1):
        faults = [_fault(line, max_words) for line in lines]
        if faults == [None, None]:
            src, tgt = (line.decode().strip() for line in lines)
            pairs.append((src, tgt))
            continue
        path, fault = next((p, f) for p, f in zip(paths, faults, strict=True) if f is not None)
        if on_bad == "error":
            raise ValueError(f"{path}, line {number}: {fault}")
        skipped[number] = fault
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
        src = [*src_tokenizer.encode(src_text), EOS_ID]
        tgt = [BOS_ID, *tgt_tokenizer.encode(tgt_text), EOS_ID]
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


def _read_lines(path: str | Path) -> list[bytes]:
    data = Path(path).read_bytes()
    if data.startswith(b"\x1f\x8b"):  # the first bytes of every gzip file
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"{path} is not a whole gzip file: {error}") from error
    elif data and str(path).endswith(".gz"):  # a page of a server, maybe, in place of the file
        raise ValueError(f"{path} is no gzip file, though it is called one")
    data = data.removeprefix(codecs.BOM_UTF8)
    if b"\n" not in data and b"\r" in data.strip():  # as before Mac OS X: all would be one line
        raise ValueError(f"{path} must end its lines with \\n or \\r\\n, got \\r alone")
    lines = data.split(b"\n")
    return lines if lines[-1] else lines[:-1]  # what follows the last \n is no line


def _fault(line: bytes, max_words: int | None) -> str | None:
    try:
        n_words = len(line.decode().split())
    except UnicodeDecodeError:
        return "not UTF-8"
    if n_words == 0:
        return "empty"
    return f"over {max_words} words" if max_words is not None and n_words > max_words else None
