"""Measures a trained model on line-aligned files, plain or gzip (chapter 11).

python -m transformer evaluate runs/de-en test.de test.en
"""

import argparse
import json
import math
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformer.commands.options import Decoding, add_decoding, add_on_bad, add_run
from transformer.commands.run_folder import LoadedRun, RunFolder, Tokenizers
from transformer.data.batches import BucketedBatches
from transformer.data.parallel import OnBad, encode_pairs, read_parallel
from transformer.data.tokens import Example
from transformer.decoding.translate import translate
from transformer.files import replace_file
from transformer.metrics import bleu, chrf
from transformer.training import evaluate_loss

Pairs = list[tuple[str, str]]


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.usage = "%(prog)s RUN SOURCE TARGET [options]"
    add_run(parser)
    parser.add_argument("source", metavar="SOURCE", type=Path)
    parser.add_argument("target", metavar="TARGET", type=Path)
    add_on_bad(parser)
    add_decoding(parser)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there, too")


def execute(args: argparse.Namespace) -> None:
    run = RunFolder(Path(args.run)).load(args.checkpoint, average=args.average, device=args.device)
    pairs, report = read_parallel(args.source, args.target, on_bad=args.on_bad)
    if report.skipped:
        print(f"{args.source}, {args.target}: {report}")
    pairs, examples, told = encode(
        pairs,
        run.tokenizers,
        lowercase=run.lowercase,
        max_len=run.model.max_len,
        on_bad=args.on_bad,
    )
    print(f"{told}\ncheckpoint: {run.checkpoint}")
    decoding = Decoding(args.beam_size, args.length_penalty, args.max_len)
    results = measure(run, pairs, examples, decoding=decoding, batch_size=args.batch_size)
    print_results(results)
    if args.json is not None:
        about = {"run": args.run, "checkpoint": run.checkpoint, **results}
        replace_file(args.json, json.dumps(about, indent=1))


def encode(
    pairs: Pairs, tokenizers: Tokenizers, *, lowercase: bool, max_len: int, on_bad: OnBad
) -> tuple[Pairs, list[Example], str]:
    """The pairs that fit, as they are and as the model reads them, and a report to be printed."""
    read = [(src.lower(), tgt.lower()) for src, tgt in pairs] if lowercase else pairs
    examples, report = encode_pairs(read, *tokenizers, max_len=max_len, on_long=on_bad)
    left_out = set(report.left_out)
    kept = [pair for number, pair in enumerate(pairs, start=1) if number not in left_out]
    return kept, examples, str(report)


def measure(
    run: LoadedRun,
    pairs: Pairs,
    examples: list[Example],
    *,
    decoding: Decoding,
    batch_size: int = 32,
) -> dict[str, Any]:
    """What the model makes of sentences that it has not learned from; ``examples`` are ``pairs``.

    BLEU and chrF compare with the references as they were read. A model of lower-cased text is
    scored without regard to case, and the signatures say so.
    """
    sources, references = (list(side) for side in zip(*pairs, strict=True))
    batches = BucketedBatches(examples, batch_size=batch_size, shuffle=False)
    loss = evaluate_loss(run.model, batches.epoch(0))
    translations = translate(
        [source.lower() for source in sources] if run.lowercase else sources,
        run.model,
        *run.tokenizers,
        max_len=decoding.max_len,
        beam_size=decoding.beam_size,
        length_penalty=decoding.length_penalty,
        batch_size=batch_size,
    )
    wanted = [line.lower() for line in references] if run.lowercase else references
    n_right = sum(_words(t) == _words(w) for t, w in zip(translations, wanted, strict=True))
    texts = {"hypotheses": translations, "references": references, "lowercase": run.lowercase}
    of_words, of_characters = bleu(**texts), chrf(**texts)
    return {
        "sentences": len(pairs),
        "loss": loss,
        "perplexity": math.exp(loss),
        "decoding": str(decoding),
        "exact match": n_right / len(pairs),
        "BLEU": of_words.score,
        "BLEU signature": of_words.signature,
        "chrF": of_characters.score,
        "chrF signature": of_characters.signature,
    }


def print_results(results: Mapping[str, Any]) -> None:
    """Each score with how it was computed."""
    decoding = results["decoding"]
    print(
        f"loss: {results['loss']:.4f} nats a token, perplexity {results['perplexity']:.2f}",
        f"exact match: {results['exact match']:.2%} of {results['sentences']}; {decoding}",
        f"BLEU: {results['BLEU']:.2f}  {decoding}; {results['BLEU signature']}",
        f"chrF: {results['chrF']:.2f}  {decoding}; {results['chrF signature']}",
        sep="\n",
    )


def _words(line: str) -> list[str]:
    """As the tokenizers read it: in normal form C, whatever the white space."""
    return unicodedata.normalize("NFC", line).split()
