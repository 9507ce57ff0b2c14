"""Translates the lines of standard input with a trained model (chapter 11).

    echo "ein Hund schläft" | python -m transformer translate runs/de-en

A translation is written as soon as its batch is read; at a terminal, line by line. An empty line
gives an empty line, and no input gives no output.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator

from transformer.commands.options import add_on_bad, add_translating
from transformer.commands.run_folder import LoadedRun, add_run, load_to_translate
from transformer.data.parallel import OnBad, read_lines
from transformer.data.text import clean_line
from transformer.decoding.translate import translate

USAGE = "%(prog)s RUN [options] < SENTENCES > TRANSLATIONS"


def add_options(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    add_translating(parser.add_argument_group("decoding"))
    add_on_bad(parser, "lines that are too long or not UTF-8; skip leaves their translation empty")


def execute(args: argparse.Namespace) -> None:
    if sys.stdin is None:
        raise ValueError("standard input must be open, got none")
    run, decoding = load_to_translate(args)
    sentences = read_sentences(sys.stdin.buffer, run, on_bad=args.on_bad)
    for batch in _batches(sentences, 1 if sys.stdin.isatty() else args.batch_size):
        translations = translate(
            batch,
            run.model,
            *run.tokenizers,
            max_len=decoding.max_len,
            beam_size=decoding.beam_size,
            length_penalty=decoding.length_penalty,
            early_stopping=decoding.early_stopping,
        )
        for translation in translations:
            print(translation)
        sys.stdout.flush()


def read_sentences(
    stdin: Iterable[bytes], run: LoadedRun, *, on_bad: OnBad = "error"
) -> Iterator[str]:
    """The lines as the model has learned to read them, each as soon as it is there.

    Raises ValueError, which names the line, for one that is not UTF-8 or too long for the model;
    with ``on_bad`` "skip" that is told on standard error, and the line is empty.
    """
    for number, (line, fault) in enumerate(read_lines(stdin), start=1):
        text = clean_line(line, lowercase=run.lowercase)
        n_tokens, limit = len(run.tokenizers[0].encode(text)) + 1, run.model.max_len  # with <eos>
        if n_tokens > limit:
            fault = f"must have no more than {limit} tokens, got {n_tokens}"
        if fault:
            message = f"standard input, line {number}: {fault}"
            if on_bad == "error":
                raise ValueError(message)
            print(f"{message}; skipped", file=sys.stderr)
            text = ""
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
