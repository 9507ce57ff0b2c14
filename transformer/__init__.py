"""The Transformer, executed: one room for each part of the model; this is the front door."""

from typing import TYPE_CHECKING

from transformer.doors import at_first_use

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
else:
    __getattr__, __dir__, __all__ = at_first_use(
        __name__,
        {
            "config": "TransformerConfig",
            "decoding.search": "beam_search greedy_decode sample",
            "model": "Transformer",
            "multihead": "MultiHeadAttention",
            "saved": "load_model save_model",
            "training.loop": "fit",
        },
    )
