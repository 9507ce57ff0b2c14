"""The folder of a training run, and the trained model in it.

settings.json     what the run was started with, digests of its sentences, and its vocabulary: the
                  byte pairs of both languages, or the words of each
step-….pt         checkpoints, see transformer.training.checkpoint
results.json      what was measured at the end
"""

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch

from transformer.commands.options import (
    Decoding,
    add_device,
    add_number,
    best_last_or_step,
    whole,
)
from transformer.data.corpus import Tokenizers
from transformer.data.text import BytePairEncoding, Vocabulary
from transformer.data.tokens import SPECIALS
from transformer.files import holds_only, remove_leftovers, replace_file
from transformer.model import Transformer
from transformer.runtime import default_device
from transformer.saved import read_json
from transformer.training.checkpoint import (
    average_checkpoints,
    best_checkpoint,
    checkpoints,
    load_transformer,
    step_of,
)

SETTINGS, RESULTS = "settings.json", "results.json"
_FORMAT = "transformer.commands.run_folder 3"


class Settings(NamedTuple):
    """What a run was started with and must go on with."""

    lowercase: bool
    digests: dict[str, str]  # of the sentences to train and to measure on
    options: dict[str, Any]
    tokenizers: Tokenizers


class LoadedRun(NamedTuple):
    """A trained model, with all that it takes to translate with it."""

    model: Transformer
    tokenizers: Tokenizers
    lowercase: bool
    checkpoint: str  # which weights these are, to be told


def open_run(run: Path) -> Settings | None:
    """What the run in a folder was started with; None where one can begin.

    Raises ValueError for a folder that holds something else.
    """
    if (run / SETTINGS).exists():
        return read_settings(run)
    if not holds_only(run):
        raise ValueError(f"--out must be a new folder or that of a run, got {run}")
    return None


def begin(run: Path, settings: Settings) -> None:
    """Makes a folder, whose lock is held, that of a run, by one file: whole or not at all.

    Raises BlockingIOError where another process has begun one there meanwhile.
    """
    if (run / SETTINGS).exists():
        raise BlockingIOError(f"another process has begun a run in {run}")
    source, target = settings.tokenizers
    if isinstance(source, BytePairEncoding):  # of both languages
        vocabulary = {"byte pairs": json.loads(source.to_json())}
    else:
        pair = {"source": source, "target": target}
        vocabulary = {name: x.words(range(len(SPECIALS), len(x))) for name, x in pair.items()}
    about = {"format": _FORMAT, **settings._asdict(), "vocabulary": vocabulary}
    del about["tokenizers"]
    remove_leftovers(run)
    replace_file(run / SETTINGS, json.dumps(about, indent=1))


def check_same(
    run: Path, before: Settings, *, digests: Mapping[str, str], options: Mapping[str, Any]
) -> None:
    """Raises ValueError, which says what differs, unless the run began with these.

    An option that is younger than the run is not looked at.
    """
    changes = [
        f"--{name.replace('_', '-')} was {before.options[name]}, is {value}"
        for name, value in options.items()
        if before.options.get(name, value) != value
    ]
    changes += [
        f"the sentences to {name} on are not those that it began with"
        for name in sorted(digests.keys() | before.digests.keys())
        if digests.get(name) != before.digests.get(name)
    ]
    if changes:
        raise ValueError(f"{run} is a run with other settings: {'; '.join(changes)}")


def read_settings(run: Path) -> Settings:
    """What ``begin`` wrote; ValueError for a folder without it, and for a file that is another."""
    kinds = {"lowercase": bool, "digests": dict, "options": dict, "vocabulary": dict}
    try:
        about = read_json(run / SETTINGS, _FORMAT, "of a training run", **kinds)
    except FileNotFoundError:
        raise ValueError(f"{run} must be the folder of a run, has no {SETTINGS}") from None
    vocabulary = about["vocabulary"]
    try:
        if "byte pairs" in vocabulary:
            shared = BytePairEncoding.from_json(json.dumps(vocabulary["byte pairs"]))
            tokenizers: Tokenizers = shared, shared
        else:
            tokenizers = Vocabulary(vocabulary["source"]), Vocabulary(vocabulary["target"])
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"{run / SETTINGS} holds no vocabulary: {error!r}") from error
    return Settings(about["lowercase"], about["digests"], about["options"], tokenizers)


def load(
    run: Path,
    checkpoint: str | int = "best",
    *,
    average: int | None = None,
    device: torch.device | None = None,
) -> LoadedRun:
    """The model of one checkpoint, or with the mean of the weights of the last ``average``.

    What is not as it should be is a ValueError of one line.
    """
    settings, saved = read_settings(run), checkpoints(run)
    by_step = {step_of(path): path for path in saved}
    device = device or default_device()
    if not saved:
        raise ValueError(f"{run} holds no checkpoint")
    if average is not None:
        if average > len(saved):
            raise ValueError(f"{run} holds {len(saved)} checkpoints, not {average}")
        steps = ", ".join(map(str, list(by_step)[-average:]))
        model = average_checkpoints(saved[-average:], device=device)
        return LoadedRun(model, settings.tokenizers, settings.lowercase, f"mean of steps {steps}")
    if isinstance(checkpoint, int) and checkpoint not in by_step:
        steps = ", ".join(map(str, by_step))
        raise ValueError(f"{run} holds the steps {steps}, not {checkpoint}")
    by_name = {"best": best_checkpoint(run), "last": saved[-1]}
    chosen = by_step[checkpoint] if isinstance(checkpoint, int) else by_name[checkpoint]
    model = load_transformer(chosen, device=device)
    return LoadedRun(model, settings.tokenizers, settings.lowercase, f"step {step_of(chosen)}")


def add_run(parser: argparse.ArgumentParser) -> None:
    """Adds the options that name a model of a run, and where it works."""
    text = "the folder that train wrote"
    parser.add_argument("run", metavar="RUN", help=text)
    weights = parser.add_mutually_exclusive_group()
    text = "best: the one of lowest loss on the dev set; default: best"
    words: dict[str, Any] = {"type": best_last_or_step, "metavar": "best|last|STEP"}
    weights.add_argument("--checkpoint", default="best", help=text, **words)
    text = "the mean of the last N, as train --keep N leaves them"
    add_number(weights, "--average", whole, text=text)
    add_device(parser)


def load_run(args: argparse.Namespace) -> LoadedRun:
    """The model that the options of ``add_run`` name."""
    return load(Path(args.run), args.checkpoint, average=args.average, device=args.device)


def load_to_translate(args: argparse.Namespace) -> tuple[LoadedRun, Decoding]:
    """The model that the options name, and how to decode; ValueError where these do not fit."""
    run = load_run(args)
    decoding = Decoding(args.beam_size, args.length_penalty, args.max_len, args.early_stopping)
    decoding.check(max_len=run.model.max_len, tgt_vocab_size=run.model.tgt_vocab_size)
    return run, decoding


def to_json(results: Mapping[str, Any]) -> str:
    """The results as JSON, which has no infinity: null stands for a perplexity that is one."""
    finite = json.loads(json.dumps(results), parse_constant=lambda _: None)
    return json.dumps(finite, indent=1)
