"""Recurrent networks, and translation by them with and without attention (chapters 1 and 2)."""

from transformer.recurrent.cells import LSTM, RNN, Bidirectional
from transformer.recurrent.scores import AdditiveScore, DotScore, GeneralScore
from transformer.recurrent.seq2seq import AttentionSeq2Seq, EncoderDecoder, Seq2Seq

__all__ = [
    "LSTM",
    "RNN",
    "AdditiveScore",
    "AttentionSeq2Seq",
    "Bidirectional",
    "DotScore",
    "EncoderDecoder",
    "GeneralScore",
    "Seq2Seq",
]
