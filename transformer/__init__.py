"""The Transformer, executed: one room for each part of the model; this is the front door."""

from transformer.config import TransformerConfig
from transformer.decoding.search import beam_search, greedy_decode, sample
from transformer.model import Transformer
from transformer.multihead import MultiHeadAttention
from transformer.saved import load_model, save_model
from transformer.training.loop import fit

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
