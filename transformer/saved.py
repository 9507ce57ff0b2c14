"""A model in a folder of its own, or on the Hugging Face Hub: one call each way.

- ``config.json``: its class and the sizes that it was made with, and the digest of its weights;
- ``model.safetensors``: its weights, and in the header the same once more.

Checkpoints, from which a training goes on, are in ``transformer.training.checkpoint``.
"""

import json
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar, cast, get_type_hints

import torch
from safetensors.torch import save
from torch import Tensor, nn

from transformer.files import leftovers, remove_leftovers, replace_files
from transformer.tensors import (
    check_digest,
    check_like,
    digest_of,
    named_tensors,
    open_with_metadata,
)

FORMAT = "transformer.saved 1"
_CONFIG, _WEIGHTS = "config.json", "model.safetensors"
_NAMES = r"config\.json|model\.safetensors"
_INSIDE = "transformer"  # what config.json says, among the metadata of the weights
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

    Raises ValueError for another class of model, for one that could not be loaded again, as it
    isn't what its config makes, or holds a number that isn't finite, and for a folder that holds
    anything else; OSError, which names the folder, where it cannot be written: what was there then
    stays.
    """
    kind, place = type(model).__name__, Path(folder).resolve()
    if kind not in _HOMES or type(model) is not _class_of(kind):
        raise ValueError(f"model must be one of {tuple(_HOMES)}, got {type(model)}")
    if place.exists() and not _is_ours(place):
        raise ValueError(f"folder must be new, empty or a saved model, got {folder}")
    tensors = named_tensors(cast(nn.Module, model))
    like = _outline(type(model), model.config, tensors)
    check_like(tensors, like, "model", "is not as its config makes it")
    about = {"format": FORMAT, "model": kind, "config": asdict(model.config)}
    text = json.dumps(about | {"sha256": digest_of(tensors)}, indent=1)
    weights: bytes | str = save(tensors, metadata={"format": "pt", _INSIDE: text})
    try:
        place.mkdir(parents=True, exist_ok=True)
        remove_leftovers(place, _NAMES)
        # between these two it is there already: load_model then goes by what the weights say
        replace_files({place / _WEIGHTS: weights, place / _CONFIG: text})
    except OSError as error:
        raise OSError(f"{folder} was not saved: {error}") from error
    return Path(folder)


def load_model(folder: str | Path, *, device: torch.device | str = "cpu") -> Any:
    """The model that ``save_model`` wrote, on ``device`` and in evaluation mode; chapter 9.

    Its type is Any for type checkers: the file knows which class it is of, and they do not.

    Raises ValueError, which names the file, for one that is damaged or of another model; OSError
    for a file that cannot be read.
    """
    file, weights = Path(folder) / _CONFIG, Path(folder) / _WEIGHTS
    stored, inside = open_with_metadata(weights)
    about = _about(file, weights, inside.get(_INSIDE))
    if about["model"] not in _HOMES:
        raise ValueError(f"{file} must name one of {tuple(_HOMES)}, got {about['model']!r}")
    make = _class_of(about["model"])
    try:
        config = get_type_hints(make.__init__)["config"](**about["config"])
    except (TypeError, ValueError) as error:
        raise ValueError(f"{file} holds no {about['model']}: {error}") from error
    model = make_model(make, config, stored, weights)
    if "sha256" in about:  # which older folders have not
        check_digest(stored, about["sha256"], weights)
    return model.to(device).eval()


def make_model(
    make: Callable[[Any], nn.Module], config: Any, stored: Mapping[str, Tensor], file: Path
) -> Any:
    """``make(config)`` with the tensors ``stored`` in ``file``, held against them before it is.

    Raises ValueError, which names the file, where they do not fit.
    """
    check_like(stored, _outline(make, config, stored), file)
    types = Counter(tensor.dtype for tensor in stored.values() if tensor.is_floating_point())
    model = make(config).to(types.most_common(1)[0][0] if types else None)
    own = dict(model.named_parameters()) | dict(model.named_buffers())
    for name, tensor in stored.items():
        own[name].data = tensor.clone()  # it may lie in the file
    return model


def _outline(
    make: Callable[[Any], nn.Module], config: Any, stored: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """What ``make(config)`` would hold, floats in the types of ``stored``; it takes no memory."""
    with torch.device("meta"):
        like = named_tensors(make(config))
    for name in like.keys() & stored.keys():
        if like[name].is_floating_point() and stored[name].is_floating_point():
            like[name] = like[name].to(stored[name].dtype)
    return like


def _about(file: Path, weights: Path, inside: str | None) -> dict[str, Any]:
    """What was saved with the weights: by ``file``, or by the weights where it is of others.

    So a save leaves it that was stopped before its last file had its name.
    """
    what, kinds = "a model that save_model wrote", {"model": str, "config": dict}
    if inside is None:
        return read_json(file, FORMAT, what, **kinds)
    own = parse_json(inside, weights, FORMAT, what, **kinds)
    about = read_json(file, FORMAT, what, **kinds) if file.exists() else own
    return about if about.get("sha256") == own.get("sha256") else own


def read_json(file: Path, form: str | None, what: str, **kinds: type) -> dict[str, Any]:
    """The object of a JSON file whose keys are of these types, with ``format`` if it has a form.

    UTF-8 and UTF-16 are read, with a byte-order mark or without.

    Raises ValueError, which names the file and the key, for anything else.
    """
    return parse_json(file.read_bytes(), file, form, what, **kinds)


def parse_json(
    data: bytes | str, file: Path, form: str | None, what: str, **kinds: type
) -> dict[str, Any]:
    """The same of what was read from ``file``."""
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
    if not folder.is_dir():
        return False
    names = {path.name for path in {*folder.iterdir()}.difference(leftovers(folder, _NAMES))}
    if not names <= {_CONFIG, _WEIGHTS}:
        return False
    try:
        if _CONFIG in names:
            read_json(folder / _CONFIG, FORMAT, "ours")
        return _CONFIG in names or not names or _INSIDE in open_with_metadata(folder / _WEIGHTS)[1]
    except ValueError:
        return False
