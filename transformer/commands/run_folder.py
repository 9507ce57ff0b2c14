"""The folder of a training run: what lies in it, under which names, and whether it is whole.

settings.json    what the run was started with, and digests of the sentences it learns from
bpe.json         the byte pairs of both languages, or
source.json, target.json    the words of each
step-00000500    checkpoints, see transformer.training.checkpoint
results.json     what was measured at the end
"""

import json
import os
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch

from transformer.data.text import BytePairEncoding, Tokenizing, Vocabulary
from transformer.files import replace_file
from transformer.model import Transformer
from transformer.runtime import default_device
from transformer.training.checkpoint import (
    average_checkpoints,
    best_checkpoint,
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
        file = self.path / _SETTINGS
        try:
            about = json.loads(file.read_bytes())
            if about.pop("format") != _FORMAT:
                raise ValueError(f"its format is not {_FORMAT!r}")
            settings = Settings(**about)
            if not isinstance(settings.lowercase, bool) or not isinstance(
                settings.byte_pairs, bool
            ):
                raise ValueError("lowercase and byte_pairs must be true or false")
            dict(settings.digests), dict(settings.options)
        except FileNotFoundError:
            raise ValueError(
                f"{self.path} must be the folder of a run, has no {_SETTINGS}"
            ) from None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{file} is not of a training run: {error!r}") from error
        return settings

    def check_same(self, settings: Settings) -> None:
        """Raises ValueError, which says what differs, unless the run began with ``settings``."""
        before, now = self.settings(), json.loads(json.dumps(asdict(settings)))
        changed = [
            f"--{name.replace('_', '-')} was {before.options.get(name)}, is {value}"
            for name, value in now["options"].items()
            if before.options.get(name) != value
        ]
        changed += [
            f"the sentences to {name} on are not those that it began with"
            for name in sorted(now["digests"].keys() | before.digests.keys())
            if now["digests"].get(name) != before.digests.get(name)
        ]
        if changed:
            raise ValueError(f"{self.path} is a run with other settings: {'; '.join(changed)}")

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
            model, told = load_transformer(chosen[0], device=device), f"step {steps}"
        else:
            model, told = average_checkpoints(chosen, device=device), f"mean of steps {steps}"
        sizes = model.config.src_vocab_size, model.config.tgt_vocab_size
        if sizes != (len(tokenizers[0]), len(tokenizers[1])):
            raise ValueError(
                f"{self.path} must hold the tokenizers of its model, with {sizes[0]} and "
                f"{sizes[1]} tokens, got {len(tokenizers[0])} and {len(tokenizers[1])}"
            )
        return LoadedRun(model, tokenizers, settings.lowercase, told)

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
