"""Measures a trained model on line-aligned files, plain or gzip (chapter 11).

python -m transformer evaluate runs/de-en test.de test.en
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from transformer.commands.options import Decoding, OnBadLine, Option, Translating
from transformer.commands.run_folder import LoadedRun, Run, Tokenizers
from transformer.data.batches import BucketedBatches
from transformer.data.parallel import OnBad, encode_pairs, read_parallel
from transformer.data.text import clean_line
from transformer.data.tokens import Example
from transformer.decoding.translate import translate
from transformer.files import replace_file
from transformer.metrics import bleu, chrf
from transformer.training import evaluate_loss

USAGE = "%(prog)s RUN SOURCE TARGET [options]"
Pairs = list[tuple[str, str]]


@dataclass(frozen=True)
class Options:
    """All that ``evaluate`` is told."""

    run: Run
    source: Annotated[Path, Option(metavar="SOURCE", positional=True)]
    target: Annotated[Path, Option(metavar="TARGET", positional=True)]
    decoding: Annotated[Translating, "decoding"]
    on_bad: OnBadLine = "error"
    json: Annotated[Path | None, Option("write the results there, too", metavar="FILE")] = None


def execute(options: Options) -> None:
    run = options.run.load()
    pairs = read_files((options.source, options.target), on_bad=options.on_bad)
    pairs, examples, report = encode(
        pairs,
        run.tokenizers,
        lowercase=run.lowercase,
        max_len=run.model.max_len,
        on_bad=options.on_bad,
    )
    print(f"{report}\ncheckpoint: {run.checkpoint}")
    decoding = options.decoding
    results = measure(run, pairs, examples, decoding=decoding, batch_size=decoding.batch_size)
    print_results(results)
    if options.json is not None:
        about = {"run": str(options.run.run), "checkpoint": run.checkpoint, **results}
        replace_file(options.json, json.dumps(about, indent=1))


def read_files(paths: tuple[Path, Path], *, on_bad: OnBad, quiet: bool = False) -> Pairs:
    """The pairs of two files; what was skipped is printed unless it is to be ``quiet``.

    Raises ValueError for one file in two roles, whose lines would translate themselves.
    """
    source, target = paths
    if source.is_file() and target.is_file() and source.samefile(target):
        raise ValueError(f"the source and the target must be two files, got {source} as both")
    pairs, report = read_parallel(source, target, on_bad=on_bad)
    if report.skipped and not quiet:
        print(f"{source}, {target}: {report}")
    return pairs


def encode(
    pairs: Pairs, tokenizers: Tokenizers, *, lowercase: bool, max_len: int, on_bad: OnBad
) -> tuple[Pairs, list[Example], str]:
    """The pairs that fit, as they are and as the model reads them, and a report to be printed."""
    read = [
        (clean_line(src, lowercase=lowercase), clean_line(tgt, lowercase=lowercase))
        for src, tgt in pairs
    ]
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
        [clean_line(source, lowercase=run.lowercase) for source in sources],
        run.model,
        *run.tokenizers,
        max_len=decoding.max_len,
        beam_size=decoding.beam_size,
        length_penalty=decoding.length_penalty,
        batch_size=batch_size,
    )
    wanted = [clean_line(line, lowercase=run.lowercase) for line in references]
    n_right = sum(t.split() == w.split() for t, w in zip(translations, wanted, strict=True))
    results: dict[str, Any] = {
        "sentences": len(pairs),
        "loss": loss,
        "perplexity": math.exp(loss),
        "decoding": str(decoding),
        "exact match": n_right / len(pairs),
    }
    for name, score in (("BLEU", bleu), ("chrF", chrf)):
        of = score(hypotheses=translations, references=references, lowercase=run.lowercase)
        results |= {name: of.score, f"{name} signature": of.signature}
    return results


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
