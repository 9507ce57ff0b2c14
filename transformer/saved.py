"""A model in a folder of its own, or on the Hugging Face Hub: one call each way.

- ``config.json``: its class and the sizes that it was made with;
- ``model.safetensors``: its weights.

Checkpoints, from which a training goes on, are in ``transformer.training.checkpoint``.
"""

import json
import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar, cast, get_type_hints

import torch
from torch import Tensor, nn

from transformer.files import flush
from transformer.tensors import (
    check_like,
    copy_tensors,
    named_tensors,
    open_tensors,
    save_tensors,
)

FORMAT = "transformer.saved 1"
_CONFIG, _WEIGHTS = "config.json", "model.safetensors"
# the models, and where they stand: read at first use, for they stand on this module
_HOMES = {
    "Transformer": "transformer.model",
    "DecoderOnly": "transformer.family.decoder_only",
    "EncoderOnly": "transformer.family.encoder_only",
}
Model = TypeVar("Model")


class Pretrained:
    """What a model has for the Hugging Face Hub, by the names that are usual there.

    Only weights in safetensors are fetched, and never a pickle.
    """

    config: Any

    @classmethod
    def from_pretrained(
        cls: type[Model], name: str | Path, *, device: torch.device | str = "cpu", **download: Any
    ) -> Model:
        """The model of a folder, or of the Hub, such as "someone/a-model", in evaluation mode.

        ``download`` goes to ``huggingface_hub.snapshot_download``: revision, token, cache_dir, ….

        Raises ValueError as :func:`load_model` does, and for a model of another class; OSError
        for one that cannot be read or fetched.
        """
        folder = Path(name)
        if isinstance(name, str) and not folder.is_dir():
            from huggingface_hub import errors, snapshot_download  # a tenth of a second

            try:
                fetched = snapshot_download(name, allow_patterns=[_CONFIG, _WEIGHTS], **download)
            except errors.HFValidationError as error:
                wanted = "a folder or what a model is called on the Hub"
                raise ValueError(f"name must be {wanted}, got {name!r}") from error
            except OSError as error:
                raise OSError(f"{name} could not be fetched: {error}") from error
            folder = Path(fetched)
        model = load_model(folder, device=device)
        if type(model) is not cls:
            raise ValueError(f"{name} must hold a {cls.__name__}, got a {type(model).__name__}")
        return model

    def save_pretrained(self, folder: str | Path) -> Path:
        """The same as :func:`save_model`."""
        return save_model(self, folder)

    def push_to_hub(
        self, repo_id: str, *, private: bool | None = None, token: str | None = None, **commit: Any
    ) -> str:
        """Saves the model on the Hub as ``repo_id``, made where there is none, and says where.

        ``commit`` goes to ``huggingface_hub.HfApi.upload_folder``: commit_message, create_pr, ….
        """
        from huggingface_hub import HfApi

        api = HfApi(token=token)
        with tempfile.TemporaryDirectory() as place:
            folder = self.save_pretrained(Path(place) / "model")
            repo_id = api.create_repo(repo_id, private=private, exist_ok=True).repo_id
            return api.upload_folder(repo_id=repo_id, folder_path=folder, **commit)


def save_model(model: Pretrained, folder: str | Path) -> Path:
    """Writes a model with its configuration into ``folder``, whole or not at all; chapter 9.

    A model that was saved there before is replaced. Returns the folder, for ``load_model``.

    Raises ValueError for another class of model, and for a folder that holds anything else;
    OSError, which names the folder, where it cannot be written: what was there then stays.
    """
    kind, place = type(model).__name__, Path(folder).resolve()
    if kind not in _HOMES or type(model) is not _class_of(kind):
        raise ValueError(f"model must be one of {tuple(_HOMES)}, got {type(model)}")
    if place.exists() and not _is_ours(place):
        raise ValueError(f"folder must be new, empty or a saved model, got {folder}")
    about = {"format": FORMAT, "model": kind, "config": asdict(model.config)}
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            dir=place.parent, prefix=".saving-", ignore_cleanup_errors=True
        ) as beside:
            new, old = Path(beside) / "new", Path(beside) / "old"
            new.mkdir()
            (new / _CONFIG).write_text(json.dumps(about, indent=1), encoding="utf-8")
            save_tensors(named_tensors(cast(nn.Module, model)), new / _WEIGHTS)
            for file in new.iterdir():
                flush(file)
            try:
                if place.exists():  # a folder that holds files cannot be renamed over
                    os.rename(place, old)
                os.rename(new, place)
            except BaseException:
                if old.exists() and not place.exists():
                    os.rename(old, place)
                raise
            flush(place.parent)
    except OSError as error:
        raise OSError(f"{folder} was not saved: {error}") from error
    return Path(folder)


def load_model(folder: str | Path, *, device: torch.device | str = "cpu") -> Any:
    """The model that ``save_model`` wrote, on ``device`` and in evaluation mode; chapter 9.

    Its type is Any for type checkers: the file knows which class it is of, and they do not.

    Raises ValueError, which names the file, for one that is damaged or of another model; OSError
    for a file that cannot be read.
    """
    file = Path(folder) / _CONFIG
    about = read_json(file, FORMAT, "a model that save_model wrote", model=str, config=dict)
    if about["model"] not in _HOMES:
        raise ValueError(f"{file} must name one of {tuple(_HOMES)}, got {about['model']!r}")
    make, weights = _class_of(about["model"]), Path(folder) / _WEIGHTS
    try:
        config = get_type_hints(make.__init__)["config"](**about["config"])
    except (TypeError, ValueError) as error:
        raise ValueError(f"{file} holds no {about['model']}: {error}") from error
    model = make_model(make, config, open_tensors(weights), weights)
    return model.to(device).eval()


def make_model(
    make: Callable[[Any], nn.Module], config: Any, stored: Mapping[str, Tensor], file: Path
) -> Any:
    """``make(config)`` with the numbers ``stored`` in ``file``, held against them before it is.

    Raises ValueError, which names the file, where they do not fit.
    """
    types = {tensor.dtype for tensor in stored.values() if tensor.is_floating_point()}
    dtype = types.pop() if len(types) == 1 else torch.get_default_dtype()
    with torch.device("meta"):
        outline = make(config).to(dtype)
    check_like(stored, named_tensors(outline), file)
    model = make(config).to(dtype)
    copy_tensors(stored, model)
    return model


def read_json(file: Path, form: str | None, what: str, **kinds: type) -> dict[str, Any]:
    """The object of a JSON file whose keys are of these types, with ``format`` if it has a form.

    UTF-8 and UTF-16 are read, with a byte-order mark or without.

    Raises ValueError, which names the file and the key, for anything else.
    """
    data = file.read_bytes()
    try:
        about = json.loads(data)
        if not isinstance(about, dict):
            raise ValueError(f"its format is not that of an object, but a {type(about).__name__}")
        if form is not None and about.get("format") != form:
            raise ValueError(f"its format is not {form!r}")
        for key, kind in kinds.items():
            if type(about.get(key)) is not kind:  # True is no number here
                raise ValueError(f"its {key} must be of type {kind.__name__}")
    except (ValueError, RecursionError) as error:  # the second for brackets without end
        raise ValueError(f"{file} is not {what}: {type(error).__name__}: {error}") from error
    return about


def _class_of(kind: str) -> type[nn.Module]:
    return getattr(import_module(_HOMES[kind]), kind)


def _is_ours(folder: Path) -> bool:
    """Whether to replace a folder loses nothing but a model that was saved there."""
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else {""}
    if names != {_CONFIG, _WEIGHTS}:
        return not names
    try:
        read_json(folder / _CONFIG, FORMAT, "ours")
    except ValueError:
        return False
    return True
