"""Translates the lines of standard input with a trained model (chapter 11).

    echo "ein Hund schläft" | python -m transformer translate runs/de-en

A translation is written as soon as its batch is read; at a terminal, line by line. An empty line
gives an empty line, and no input gives no output.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated

from transformer.commands.options import Translating
from transformer.commands.run_folder import LoadedRun, Run
from transformer.data.parallel import read_lines
from transformer.data.text import clean_line
from transformer.decoding.translate import translate

USAGE = "%(prog)s RUN [options] < SENTENCES > TRANSLATIONS"


@dataclass(frozen=True)
class Options:
    """All that ``translate`` is told."""

    run: Run
    decoding: Annotated[Translating, "decoding"]


def execute(options: Options) -> None:
    if sys.stdin is None:
        raise ValueError("standard input must be open, got none")
    run, decoding = options.run.load(), options.decoding
    sentences = read_sentences(sys.stdin.buffer.readline, run)
    for batch in _batches(sentences, 1 if sys.stdin.isatty() else decoding.batch_size):
        translations = translate(
            batch,
            run.model,
            *run.tokenizers,
            max_len=decoding.max_len,
            beam_size=decoding.beam_size,
            length_penalty=decoding.length_penalty,
        )
        for translation in translations:
            print(translation)
        sys.stdout.flush()


def read_sentences(readline: Callable[[int], bytes], run: LoadedRun) -> Iterator[str]:
    """The lines as the model has learned to read them, each as soon as it is there.

    Raises ValueError, which names the line, for one that is not UTF-8 or too long for the model.
    """
    for number, (line, fault) in enumerate(read_lines(readline, "standard input"), start=1):
        if fault:
            raise ValueError(f"standard input, line {number}: {fault}")
        text = clean_line(line, lowercase=run.lowercase)
        n_tokens, limit = len(run.tokenizers[0].encode(text)) + 1, run.model.max_len  # with <eos>
        if n_tokens > limit:
            raise ValueError(
                f"standard input, line {number}: must have no more than {limit} tokens, "
                f"got {n_tokens}"
            )
        yield text


def _batches(sentences: Iterable[str], size: int) -> Iterator[list[str]]:
    """What was read before an error still comes."""
    batch: list[str] = []
    try:
        for sentence in sentences:
            batch.append(sentence)
            if len(batch) == size:
                yield batch
                batch = []
    except ValueError:
        if batch:
            yield batch
        raise
    if batch:
        yield batch
