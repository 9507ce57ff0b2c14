"""The folder of a training run: what lies in it, under which names, and whether it is whole.

settings.json         what the run was started with, digests of its sentences, and its vocabulary:
                      the byte pairs of both languages, or the words of each
step-….pt            checkpoints, see transformer.training.checkpoint
results.json          what was measured at the end
"""

import argparse
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple, get_origin, get_type_hints

import torch

from transformer.commands.options import (
    Decoding,
    add_device,
    add_number,
    best_last_or_step,
    folder,
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
    label_of,
    load_transformer,
    step_of,
)

_FORMAT = "transformer.commands.run_folder 3"
_SETTINGS, _RESULTS = "settings.json", "results.json"


@dataclass(frozen=True)
class Settings:
    """What a run was started with and must go on with."""

    lowercase: bool
    digests: dict[str, str]  # of the sentences to train and to measure on
    options: dict[str, Any]
    vocabulary: dict[str, Any]  # by as_json


class LoadedRun(NamedTuple):
    """A trained model, with all that it takes to translate with it."""

    model: Transformer
    tokenizers: Tokenizers
    lowercase: bool
    checkpoint: str  # which weights these are, to be told


def add_run(parser: argparse.ArgumentParser) -> None:
    """Options: which model of which run, and where it works."""
    text = "the folder that train wrote"
    parser.add_argument("run", type=folder, metavar="RUN", help=text)
    weights = parser.add_mutually_exclusive_group()
    text = "best: the one of lowest loss on the dev set; default: best"
    words: dict[str, Any] = {"type": best_last_or_step, "metavar": "best|last|STEP"}
    weights.add_argument("--checkpoint", default="best", help=text, **words)
    text = "the mean of the last N, as train --keep N leaves them"
    add_number(weights, "--average", whole, text=text)
    add_device(parser)


def load_run(args: argparse.Namespace) -> LoadedRun:
    run = RunFolder(Path(args.run))
    return run.load(args.checkpoint, average=args.average, device=args.device)


def load_to_translate(args: argparse.Namespace) -> tuple[LoadedRun, Decoding]:
    """Raises ValueError for what the model cannot decode with."""
    run = load_run(args)
    how = args.beam_size, args.length_penalty, args.max_len, args.early_stopping
    decoding = Decoding(*how)
    decoding.check(max_len=run.model.max_len, tgt_vocab_size=run.model.tgt_vocab_size)
    return run, decoding


@dataclass(frozen=True)
class RunFolder:
    """Reads and writes the folder. What is not as it should be is a ValueError of one line."""

    path: Path

    def is_run(self) -> bool:
        return (self.path / _SETTINGS).exists()

    def check_new(self) -> None:
        """Raises ValueError unless there is nothing yet, an empty folder, or what a kill left."""
        if not holds_only(self.path):
            raise ValueError(f"--out must be a new folder or that of a run, got {self.path}")

    def create(self, settings: Settings) -> None:
        """Makes it a run by one file, which is there whole or not at all; its lock is held.

        Raises BlockingIOError if it has become one since ``check_new``.
        """
        if self.is_run():
            raise BlockingIOError(f"another process has begun a run in {self.path}")
        self.check_new()
        remove_leftovers(self.path, _SETTINGS)
        about = {"format": _FORMAT, **asdict(settings)}
        replace_file(self.path / _SETTINGS, json.dumps(about, indent=1))

    def settings(self) -> Settings:
        """Raises ValueError for a folder without settings."""
        file, hints = self.path / _SETTINGS, get_type_hints(Settings)
        kinds = {name: get_origin(kind) or kind for name, kind in hints.items()}
        try:
            about = read_json(file, _FORMAT, "of a training run", **kinds)
        except FileNotFoundError:
            raise ValueError(
                f"{self.path} must be the folder of a run, has no {_SETTINGS}"
            ) from None
        return Settings(**{name: about[name] for name in kinds})

    def check_options(self, options: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
        """Raises ValueError, which says what differs, unless the run began with ``options``.

        An option that is younger than the run was at its default.
        """
        before = {**defaults, **self.settings().options}
        for latest in checkpoints(self.path)[-1:]:
            self.check_label(latest)
        self._refuse(
            f"--{name.replace('_', '-')} was {before.get(name)}, is {value}"
            for name, value in options.items()
            if before.get(name) != value
        )

    def check_digests(self, digests: Mapping[str, str]) -> None:
        """Raises ValueError, which names them, for sentences that the run did not begin with."""
        before = self.settings().digests
        self._refuse(
            f"the sentences to {name} on are not those that it began with"
            for name in sorted(digests.keys() | before.keys())
            if digests.get(name) != before.get(name)
        )

    def label(self) -> str:
        """What checkpoints keep, by which their settings, and so the words, are known again.

        With another vocabulary each id would mean another word.
        """
        # of what they say: git may have changed the ends of lines
        said = json.dumps(json.loads((self.path / _SETTINGS).read_bytes()), indent=1)
        return hashlib.sha256(said.encode()).hexdigest()

    def check_label(self, checkpoint: Path) -> None:
        """Raises ValueError where the settings are not those that the weights were learned with."""
        if label_of(checkpoint) != self.label():
            wanted = f"is not the one that {checkpoint.name} was trained with"
            raise ValueError(f"{self.path / _SETTINGS} {wanted}")

    def _refuse(self, changes: Iterable[str]) -> None:
        if changed := "; ".join(changes):
            raise ValueError(f"{self.path} is a run with other settings: {changed}")

    def tokenizers(self) -> Tokenizers:
        vocabulary = self.settings().vocabulary
        try:
            if "byte pairs" in vocabulary:
                shared = BytePairEncoding.from_json(json.dumps(vocabulary["byte pairs"]))
                return shared, shared
            return Vocabulary(vocabulary["source"]), Vocabulary(vocabulary["target"])
        except (ValueError, TypeError, KeyError) as error:
            raise ValueError(f"{self.path / _SETTINGS} holds no vocabulary: {error!r}") from error

    def last_step(self) -> int | None:
        saved = checkpoints(self.path)
        return step_of(saved[-1]) if saved else None

    def load(
        self,
        checkpoint: str | int = "best",
        *,
        average: int | None = None,
        device: torch.device | None = None,
    ) -> LoadedRun:
        """The weights of one checkpoint, or the mean of the last ``average``."""
        settings, tokenizers = self.settings(), self.tokenizers()
        chosen = self._choose(checkpoint, average)
        for path in chosen:
            self.check_label(path)
        steps = ", ".join(str(step_of(path)) for path in chosen)
        device = device or default_device()
        if average is None:
            model, name = load_transformer(chosen[0], device=device), f"step {steps}"
        else:
            model, name = average_checkpoints(chosen, device=device), f"mean of steps {steps}"
        return LoadedRun(model, tokenizers, settings.lowercase, name)

    def write_results(self, results: dict[str, Any]) -> None:
        replace_file(self.path / _RESULTS, to_json(results))

    def _choose(self, checkpoint: str | int, average: int | None) -> list[Path]:
        saved = checkpoints(self.path)
        if not saved:
            raise ValueError(f"{self.path} holds no checkpoint")
        if average is not None:
            if average > len(saved):
                raise ValueError(f"{self.path} holds {len(saved)} checkpoints, not {average}")
            return saved[-average:]
        if checkpoint == "best":
            return [best_checkpoint(self.path)]
        if checkpoint == "last":
            return saved[-1:]
        by_step = {step_of(path): path for path in saved}
        if checkpoint not in by_step:
            steps = ", ".join(map(str, by_step))
            raise ValueError(f"{self.path} holds the steps {steps}, not {checkpoint}")
        return [by_step[checkpoint]]


def to_json(results: Mapping[str, Any]) -> str:
    """As JSON, which has no infinity: null stands for a perplexity that is one."""
    finite = json.loads(json.dumps(results), parse_constant=lambda _: None)
    return json.dumps(finite, indent=1)


def as_json(tokenizers: Tokenizers) -> dict[str, Any]:
    """A vocabulary to be stored: byte pairs are of both languages."""
    source, target = tokenizers
    if isinstance(source, BytePairEncoding):
        return {"byte pairs": json.loads(source.to_json())}
    pair = {"source": source, "target": target}
    return {name: side.words(range(len(SPECIALS), len(side))) for name, side in pair.items()}
