"""The folder of a training run: what lies in it, under which names, and whether it is whole.

settings.json    what the run was started with, and digests of the sentences it learns from
bpe.json         the byte pairs of both languages, or
source.json, target.json    the words of each
step-00000500.safetensors    checkpoints, see transformer.training.checkpoint
results.json     what was measured at the end
"""

import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_origin, get_type_hints

import torch
from torch import nn

from transformer.commands.options import Device, Option, best_last_or_step
from transformer.data.text import BytePairEncoding, Tokenizing, Vocabulary
from transformer.files import only_writer, replace_file
from transformer.model import Transformer
from transformer.runtime import default_device
from transformer.saved import read_json
from transformer.training.checkpoint import (
    average_checkpoints,
    best_checkpoint,
    check_config,
    checkpoints,
    load_transformer,
    step_of,
)

_FORMAT = "transformer.commands.run_folder 1"
_SETTINGS, _RESULTS = "settings.json", "results.json"
_BYTE_PAIRS, _WORDS = "bpe.json", ("source.json", "target.json")

Tokenizers = tuple[Tokenizing, Tokenizing]  # of the source and of the target


@dataclass(frozen=True)
class Settings:
    """What a run was started with and must go on with."""

    lowercase: bool
    byte_pairs: bool  # one vocabulary of both languages, rather than the words of each
    digests: dict[str, str]  # of the sentences to train and to measure on
    options: dict[str, Any]


class LoadedRun(NamedTuple):
    """A trained model, with all that it takes to translate with it."""

    model: Transformer
    tokenizers: Tokenizers
    lowercase: bool
    checkpoint: str  # which weights these are, to be told


@dataclass(frozen=True)
class Run:
    """Options: which model of which run, and where it works."""

    run: Annotated[Path, Option("the folder that train wrote", metavar="RUN", positional=True)]
    checkpoint: Annotated[
        str | int,
        Option(
            "best: the one of lowest loss on the dev set",
            best_last_or_step, "best|last|STEP", either="weights",
        ),
    ] = "best"  # fmt: skip
    average: Annotated[
        int | None,
        Option("the mean of the last N, as train --keep N leaves them", either="weights"),
    ] = None
    device: Device = None

    def load(self) -> LoadedRun:
        return RunFolder(self.run).load(self.checkpoint, average=self.average, device=self.device)


@dataclass(frozen=True)
class RunFolder:
    """Reads and writes the folder. What is not as it should be is a ValueError of one line."""

    path: Path

    def is_run(self) -> bool:
        return (self.path / _SETTINGS).exists()

    def check_new(self) -> None:
        """Raises ValueError unless there is nothing yet, or an empty folder."""
        if self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
            raise ValueError(f"--out must be a new folder or that of a run, got {self.path}")

    def create(self, settings: Settings, tokenizers: Tokenizers) -> None:
        """Makes the whole of it, or nothing."""
        self.check_new()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._create(settings, tokenizers)
        except OSError as error:  # which would name what it is called on the way
            raise OSError(error.errno, error.strerror or str(error), str(self.path)) from error

    def _create(self, settings: Settings, tokenizers: Tokenizers) -> None:
        with tempfile.TemporaryDirectory(dir=self.path.parent, prefix=".new-run-") as temporary:
            made = Path(temporary) / "run"
            made.mkdir()
            names = (_BYTE_PAIRS,) if settings.byte_pairs else _WORDS
            for name, tokenizer in zip(names, tokenizers, strict=False):
                tokenizer.save(made / name)
            about = {"format": _FORMAT, **asdict(settings)}
            replace_file(made / _SETTINGS, json.dumps(about, indent=1))
            if not self.path.exists():
                os.replace(made, self.path)
                return
            for name in (*names, _SETTINGS):  # the settings come last: they make it a run
                os.replace(made / name, self.path / name)

    def settings(self) -> Settings:
        file, wanted = self.path / _SETTINGS, get_type_hints(Settings)
        kinds = {name: get_origin(kind) or kind for name, kind in wanted.items()}
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

    def check_model(self, model: nn.Module) -> None:
        """Raises ValueError unless the last checkpoint, if there is one, is of such a model."""
        if saved := checkpoints(self.path):
            check_config(saved[-1], model)

    def check_alone(self) -> None:
        """Raises BlockingIOError if another process is training in the folder."""
        with only_writer(self.path):
            pass

    def _refuse(self, changes: Iterable[str]) -> None:
        if changed := "; ".join(changes):
            raise ValueError(f"{self.path} is a run with other settings: {changed}")

    def tokenizers(self) -> Tokenizers:
        if self.settings().byte_pairs:
            shared = BytePairEncoding.load(self.path / _BYTE_PAIRS)
            return shared, shared
        source, target = (Vocabulary.load(self.path / name) for name in _WORDS)
        return source, target

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
        steps = ", ".join(str(step_of(path)) for path in chosen)
        device = device or default_device()
        if average is None:
            model, name = load_transformer(chosen[0], device=device), f"step {steps}"
        else:
            model, name = average_checkpoints(chosen, device=device), f"mean of steps {steps}"
        sizes = model.config.src_vocab_size, model.config.tgt_vocab_size
        if sizes != (len(tokenizers[0]), len(tokenizers[1])):
            raise ValueError(
                f"{self.path} must hold the tokenizers of its model, with {sizes[0]} and "
                f"{sizes[1]} tokens, got {len(tokenizers[0])} and {len(tokenizers[1])}"
            )
        return LoadedRun(model, tokenizers, settings.lowercase, name)

    def write_results(self, results: dict[str, Any]) -> None:
        replace_file(self.path / _RESULTS, json.dumps(results, indent=1))

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
