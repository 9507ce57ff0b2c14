"""The Transformer, executed: one readable room for each part of the model; this is the front door.

The names below are fetched from their modules at first use, so that whoever imports one room, as
most chapters do, loads that room alone.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformer.config import TransformerConfig as TransformerConfig
    from transformer.decoding.search import beam_search as beam_search
    from transformer.decoding.search import greedy_decode as greedy_decode
    from transformer.decoding.search import sample as sample
    from transformer.model import Transformer as Transformer
    from transformer.multihead import MultiHeadAttention as MultiHeadAttention
    from transformer.saved import load_model as load_model
    from transformer.saved import save_model as save_model
    from transformer.training.loop import fit as fit

_HOMES = {
    "MultiHeadAttention": "transformer.multihead",
    "Transformer": "transformer.model",
    "TransformerConfig": "transformer.config",
    "beam_search": "transformer.decoding.search",
    "fit": "transformer.training.loop",
    "greedy_decode": "transformer.decoding.search",
    "load_model": "transformer.saved",
    "sample": "transformer.decoding.search",
    "save_model": "transformer.saved",
}

__all__ = [
    "MultiHeadAttention",
    "Transformer",
    "TransformerConfig",
    "beam_search",
    "fit",
    "greedy_decode",
    "load_model",
    "sample",
    "save_model",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'transformer' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
