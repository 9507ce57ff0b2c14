"""A model in a folder of its own: ``save_model`` and ``load_model``, one call each way.

config.json          its class and the sizes that it was made with
model.safetensors    its weights

Checkpoints, from which a training goes on, are in ``transformer.training.checkpoint``.
"""

import json
import secrets
from collections.abc import Mapping
from dataclasses import MISSING, asdict, fields
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn

from transformer.files import remove, whole_folder
from transformer.tensors import (
    check_layout,
    copy_tensors,
    layout,
    named_tensors,
    read_tensors,
    save_tensors,
)

if TYPE_CHECKING:
    from transformer.family import DecoderOnly, EncoderOnly
    from transformer.model import Transformer

FORMAT = "transformer.saved 1"
_CONFIG, _WEIGHTS = "config.json", "model.safetensors"


class _Home(NamedTuple):
    """Where a class of models stands, and that of its configuration: read at first use."""

    module: str
    config_module: str
    config: str


_HOMES = {
    "Transformer": _Home("transformer.model", "transformer.config", "TransformerConfig"),
    "DecoderOnly": _Home(
        "transformer.family.decoder_only", "transformer.family.config", "FamilyConfig"
    ),
    "EncoderOnly": _Home(
        "transformer.family.encoder_only", "transformer.family.config", "FamilyConfig"
    ),
}


def save_model(model: "Transformer | DecoderOnly | EncoderOnly", folder: str | Path) -> Path:
    """Writes a model with its configuration into ``folder``, whole or not at all; chapter 9.

    A model that was saved there before is replaced. Returns the folder, for ``load_model``.

    Raises ValueError for another class of model, and for a folder that holds anything else;
    OSError, which names the folder, where it cannot be written: what was there then stays.
    """
    kind, place = type(model).__name__, Path(folder).absolute()
    if kind not in _HOMES or type(model) is not _class_of(kind):
        raise ValueError(f"model must be one of {tuple(_HOMES)}, got {type(model)}")
    if place.exists() and not _is_ours(place):
        raise ValueError(f"folder must be new, empty or a saved model, got {folder}")
    about = {"format": FORMAT, "model": kind, "config": asdict(model.config)}
    drawn = secrets.token_hex(4)
    temporary, old = (place.with_name(f".{place.name}.{drawn}.{end}") for end in ("new", "old"))
    with whole_folder(place, temporary, old):
        (temporary / _CONFIG).write_text(json.dumps(about, indent=1), encoding="utf-8")
        save_tensors(named_tensors(model), temporary / _WEIGHTS)
    if old.exists():
        remove(old)
    return Path(folder)


def load_model(folder: str | Path, *, device: torch.device | str = "cpu") -> Any:
    """The model that ``save_model`` wrote, on ``device`` and in evaluation mode; chapter 9.

    Its type is Any for type checkers: the file knows which class it is of, and they do not.

    Raises ValueError, which names the file, for one that is damaged or of another model, and for
    a model that is too large for the memory; OSError for a file that cannot be read.
    """
    file = Path(folder) / _CONFIG
    about = read_json(file, FORMAT, "a model that save_model wrote", model=str, config=dict)
    if about["model"] not in _HOMES:
        raise ValueError(f"{file} must name one of {tuple(_HOMES)}, got {about['model']!r}")
    model = make_model(about["model"], about["config"], Path(folder) / _WEIGHTS)
    return model.to(device).eval()


def make_model(kind: str, config: Mapping[str, Any], weights: Path) -> Any:
    """A model of the class named ``kind``, with the numbers of the file ``weights``.

    Its sizes are held against the file's header, and against the memory, before it is made.

    Raises ValueError, which names the file, where they do not fit.
    """
    kind_of_config = getattr(import_module(_HOMES[kind].config_module), _HOMES[kind].config)
    try:
        made = kind_of_config(**check_fields(kind_of_config, config))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{weights.parent} holds no {kind}: {error}") from error
    stored = layout(weights)
    _check_sizes(_class_of(kind), made, weights, stored)
    model = _in_type_of(stored, _class_of(kind)(made))
    copy_tensors(read_tensors(weights, named_tensors(model)), model)
    return model


def check_fields(kind: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a dataclass with the defaults of those that are younger than ``values``.

    Raises ValueError, which names them, for fields that ``kind`` does not have or that it wants.
    """
    defaults = {f.name: f.default for f in fields(kind) if f.default is not MISSING}
    names = {f.name for f in fields(kind)}
    if unknown := sorted(values.keys() - names):
        raise ValueError(f"{kind.__name__} has no field {', '.join(unknown)}")
    if missing := sorted(names - values.keys() - defaults.keys()):
        raise ValueError(f"{kind.__name__} must have a value of {', '.join(missing)}")
    return defaults | dict(values)


def read_json(file: Path, form: str, what: str, **kinds: type) -> dict[str, Any]:
    """The object of a JSON file whose ``format`` is ``form``, and whose keys are of these types.

    Raises ValueError, which names the file and the key, for anything else.
    """
    data = file.read_bytes()
    try:
        about = json.loads(data)
        if not isinstance(about, dict) or about.get("format") != form:
            raise ValueError(f"its format is not {form!r}")
        for key, kind in kinds.items():
            if type(about.get(key)) is not kind:  # True is no number here
                raise ValueError(f"its {key} must be of type {kind.__name__}")
    except (ValueError, RecursionError) as error:  # the second for brackets without end
        raise ValueError(f"{file} is not {what}: {error!r}") from error
    return about


def _check_sizes(
    kind: type[nn.Module], config: Any, file: Path, stored: Mapping[str, Tensor]
) -> None:
    """Raises ValueError unless ``config`` makes tensors as ``stored``; makes none with numbers."""
    stacks = {f.name: getattr(config, f.name) for f in fields(config) if f.name.endswith("layers")}
    if sum(stacks.values()) > len(stored):  # of which even an outline would take long
        raise ValueError(f"{file} is of another model: {len(stored)} tensors are not of {stacks}")
    with torch.device("meta"):
        outline = _in_type_of(stored, kind(config))
    check_layout(file, named_tensors(outline))


def _in_type_of(stored: Mapping[str, Tensor], model: nn.Module) -> nn.Module:
    """A model that was saved in half or double precision is one again."""
    types = {tensor.dtype for tensor in stored.values() if tensor.is_floating_point()}
    return model.to(types.pop()) if len(types) == 1 else model


def _class_of(kind: str) -> type:
    return getattr(import_module(_HOMES[kind].module), kind)


def _is_ours(folder: Path) -> bool:
    """Whether to replace a folder loses nothing but a model that was saved there."""
    return folder.is_dir() and {path.name for path in folder.iterdir()} <= {_CONFIG, _WEIGHTS}
