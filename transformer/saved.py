"""A model in a folder of its own, or on the Hugging Face Hub: one call each way.

- ``model.safetensors``: its weights, and in the header its class, the sizes that it was made with,
  and a digest of these and the weights;
- ``config.json``: the header's text once more, for people and for the Hub.

Checkpoints, from which a training goes on, are in ``transformer.training.checkpoint``.
"""

import hashlib
import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar, cast, get_type_hints

import torch
from safetensors.torch import save
from torch import Tensor, nn

from transformer.files import holds_only, remove_leftovers, replace_file
from transformer.tensors import check_like, named_tensors, open_with_metadata

FORMAT, _WHAT = "transformer.saved 1", "a model that save_model wrote"
_CONFIG, _WEIGHTS = "config.json", "model.safetensors"
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

    Only weights in safetensors are fetched, and never a pickle. Hugging Face's ``ModelHubMixin``
    has the same names, but takes longer to import than this package, and removes the config of a
    model before it writes the next.
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
            from huggingface_hub import snapshot_download  # a tenth of a second

            files = [_CONFIG, _WEIGHTS]
            folder = Path(snapshot_download(name, allow_patterns=files, **download))
        model = load_model(folder, device=device)
        if type(model) is not cls:
            raise ValueError(f"{name} must hold a {cls.__name__}, got a {type(model).__name__}")
        return model

    def save_pretrained(self, folder: str | Path) -> Path:
        """Does as :func:`save_model`."""
        return save_model(self, folder)

    def push_to_hub(
        self, repo_id: str, *, private: bool | None = None, token: str | None = None, **commit: Any
    ) -> str:
        """Saves the model on the Hub as ``repo_id``, made where there is none, and says where.

        ``commit`` goes to ``huggingface_hub.HfApi.upload_folder``: commit_message, create_pr, ….
        """
        from huggingface_hub import HfApi

        api = HfApi(token=token)
        with tempfile.TemporaryDirectory() as folder:
            self.save_pretrained(folder)
            repo_id = api.create_repo(repo_id, private=private, exist_ok=True).repo_id
            return api.upload_folder(repo_id=repo_id, folder_path=folder, **commit)


def save_model(model: Pretrained, folder: str | Path) -> Path:
    """Writes a model with its configuration into ``folder``, whole or not at all; chapter 9.

    A model that was saved there before is replaced. Returns the folder, for ``load_model``.

    Raises ValueError for another class of model, for one that could not be loaded again, as it
    isn't what its config makes, and for a folder that holds anything else; OSError, which names the
    file, where one cannot be written: ``load_model`` then finds the model that was there.
    """
    kind, folder = type(model).__name__, Path(folder)
    if kind not in _HOMES or type(model) is not _class_of(kind):
        raise ValueError(f"model must be one of {tuple(_HOMES)}, got {type(model)}")
    if not _is_ours(folder):
        raise ValueError(f"folder must be new, empty or a saved model, got {folder}")
    tensors = named_tensors(cast(nn.Module, model))
    with torch.device("meta"):  # which takes no memory
        like = named_tensors(type(model)(model.config))
    check_like(tensors, like, "model", "is not as its config makes it")
    about = {"format": FORMAT, "model": kind, "config": asdict(model.config)}
    text = json.dumps(about | {"digest": _digest(about, tensors)}, indent=1)
    folder.mkdir(parents=True, exist_ok=True)
    remove_leftovers(folder)
    replace_file(folder / _CONFIG, text)  # load_model goes by what the weights say, which come last
    replace_file(folder / _WEIGHTS, save(tensors, metadata={"format": "pt", _INSIDE: text}))
    return folder


def load_model(folder: str | Path, *, device: torch.device | str = "cpu") -> Any:
    """The model that ``save_model`` wrote, on ``device`` and in evaluation mode; chapter 9.

    Its type is Any for type checkers: the file knows which class it is of, and they do not.

    Raises ValueError, which names the file, for one that is damaged or of another model; OSError
    for a file that cannot be read.
    """
    file = Path(folder) / _WEIGHTS
    stored, metadata = open_with_metadata(file)
    kinds = {"model": str, "config": dict}
    if _INSIDE in metadata:
        about = parse_json(metadata[_INSIDE], file, FORMAT, _WHAT, **kinds)
    else:  # an older folder's, or a stranger's
        about = read_json(Path(folder) / _CONFIG, FORMAT, _WHAT, **kinds)
    if "digest" in about and about.pop("digest") != _digest(about, stored):
        raise ValueError(f"{file} is damaged: what it holds is not what was saved")
    if about["model"] not in _HOMES:
        raise ValueError(f"{file} must name one of {tuple(_HOMES)}, got {about['model']!r}")
    make = _class_of(about["model"])
    config = make_config(get_type_hints(make.__init__)["config"], about["config"], file)
    return make_model(make, config, stored, file).to(device).eval()


def make_config(kind: Callable[..., Any], fields: Any, file: Path) -> Any:
    """``kind(**fields)``, of fields that stand in ``file``; ValueError where they do not fit."""
    try:
        return kind(**fields)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{file} is of another model: {error}") from error


def make_model(
    make: Callable[[Any], nn.Module], config: Any, stored: Mapping[str, Tensor], file: Path
) -> Any:
    """``make(config)`` with the tensors ``stored`` in ``file``, each in its own type.

    Raises ValueError, which names the file, where they do not fit.
    """
    model = make(config)
    check_like(stored, named_tensors(model), file)
    own = dict(model.named_parameters()) | dict(model.named_buffers())
    for name, tensor in stored.items():
        own[name].data = tensor.clone()  # it may lie in the file
    return model


def _digest(about: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> str:
    """The SHA-256 of what is said about a model, and of its tensors with their names."""
    digest = hashlib.sha256(json.dumps(about).encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()


def read_json(file: Path, form: str | None, what: str, **kinds: type) -> dict[str, Any]:
    """The object of a JSON file whose keys are of these types, with ``format`` if it has a form.

    Raises ValueError, which names the file and the key, for anything else.
    """
    return parse_json(file.read_bytes(), file, form, what, **kinds)


def parse_json(
    data: bytes | str, file: Path, form: str | None, what: str, **kinds: type
) -> dict[str, Any]:
    """Does as ``read_json``, with ``data`` that was read from ``file``."""
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
    """Whether a save into a folder replaces nothing but a model that was saved there."""
    if holds_only(folder):
        return True
    try:
        read_json(folder / _CONFIG, FORMAT, _WHAT)
    except (OSError, ValueError):
        return False
    return holds_only(folder, _CONFIG, _WEIGHTS)
