"""The Transformer, executed: one room for each part of the model; this is the front door."""

import signal
import sys

# At the command line, Ctrl-C in the second that PyTorch takes to load ends it without a traceback.
if sys.argv[:1] == ["-m"] and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

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
