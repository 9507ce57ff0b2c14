"""Measures a trained model on line-aligned files, plain or gzip (chapter 11).

python -m transformer evaluate runs/de-en test.de test.en
"""

import argparse
import math
import os
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from transformer.commands.options import Decoding, add_on_bad, add_tokenize, add_translating
from transformer.commands.run_folder import LoadedRun, add_run, load_to_translate, to_json
from transformer.data.batches import BucketedBatches
from transformer.data.corpus import Split, encode, read_files
from transformer.data.text import clean_line
from transformer.decoding.translate import translate
from transformer.files import replace_file
from transformer.metrics import bleu, chrf
from transformer.saved import read_json
from transformer.training import evaluate_loss

USAGE = "%(prog)s RUN SOURCE TARGET [options]"


def add_options(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    parser.add_argument("source", type=Path, metavar="SOURCE")
    parser.add_argument("target", type=Path, metavar="TARGET")
    add_translating(parser.add_argument_group("decoding"))
    add_tokenize(parser)
    add_on_bad(parser, "lines that are empty, too long or not UTF-8")
    text = "write the results there, too, in place of earlier ones"
    parser.add_argument("--json", type=Path, metavar="FILE", help=text)


def execute(args: argparse.Namespace) -> None:
    if args.json is not None:
        _check_writable(args.json)
    run, decoding = load_to_translate(args)
    pairs = read_files(args.source, args.target, on_bad=args.on_bad)
    split, report = encode(
        pairs,
        run.tokenizers,
        lowercase=run.lowercase,
        max_len=run.model.max_len,
        on_bad=args.on_bad,
        name=f"{args.source}, {args.target}",
    )
    print(f"{report}\ncheckpoint: {run.checkpoint}")
    results = measure(
        run, split, decoding=decoding, batch_size=args.batch_size, tokenize=args.tokenize
    )
    print_results(results)
    if args.json is not None:
        about = {"run": args.run, "checkpoint": run.checkpoint, **results}
        _write(args.json, to_json(about))


def measure(
    run: LoadedRun, split: Split, *, decoding: Decoding, batch_size: int = 32, tokenize: str = "13a"
) -> dict[str, Any]:
    """What the model makes of sentences that it has not learned from.

    BLEU and chrF compare with the references as they were read; ``tokenize`` is that of BLEU. A
    model of lower-cased text is scored without regard to case, and the signatures say so.
    """
    sources, references = (list(side) for side in zip(*split.pairs, strict=True))
    batches = BucketedBatches(split.examples, batch_size=batch_size, shuffle=False)
    loss = evaluate_loss(run.model, batches.epoch(0))
    translations = translate(
        [clean_line(source, lowercase=run.lowercase) for source in sources],
        run.model,
        *run.tokenizers,
        **asdict(decoding),
        batch_size=batch_size,
    )
    wanted = [clean_line(line, lowercase=run.lowercase) for line in references]
    n_right = sum(t.split() == w.split() for t, w in zip(translations, wanted, strict=True))
    results: dict[str, Any] = {
        "sentences": len(sources),
        "loss": loss,
        "perplexity": _perplexity(loss),
        "decoding": str(decoding),
        "exact match": n_right / len(sources),
    }
    for name, score in (("BLEU", partial(bleu, tokenize=tokenize)), ("chrF", chrf)):
        of = score(hypotheses=translations, references=references, lowercase=run.lowercase)
        results |= {name: of.score, f"{name} signature": of.signature}
    return results


def print_results(results: Mapping[str, Any]) -> None:
    """Prints each score with how it was computed."""
    decoding = results["decoding"]
    print(
        f"loss: {results['loss']:.4f} nats a token, perplexity {results['perplexity']:.2f}",
        f"exact match: {results['exact match']:.2%} of {results['sentences']}; {decoding}",
        f"BLEU: {results['BLEU']:.2f}  {decoding}; {results['BLEU signature']}",
        f"chrF: {results['chrF']:.2f}  {decoding}; {results['chrF signature']}",
        sep="\n",
    )


def _perplexity(loss: float) -> float:
    try:
        return math.exp(loss)
    except OverflowError:  # of a run that has diverged
        return math.inf


def _check_writable(file: Path) -> None:
    """Raises ValueError, before the work, for a file that is not to be written or cannot be."""
    if file.is_file() and file.stat().st_size:  # of a run, maybe, or a text that is measured on
        read_json(file, None, "what --json wrote, and would be lost", decoding=str, run=str)
    if file.is_dir() or not file.resolve().parent.is_dir():
        raise ValueError(f"--json must be a file in a folder that is there, got {file}")
    if not os.access(file if file.exists() else file.resolve().parent, os.W_OK):
        raise ValueError(f"--json must be a file that can be written, got {file}")


def _write(file: Path, text: str) -> None:
    """Writes in place of a regular file or a link's target, and into a pipe or a device."""
    if file.exists() and not file.is_file():
        file.write_text(text, encoding="utf-8")
    else:
        replace_file(file.resolve(), text)
