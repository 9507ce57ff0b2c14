"""The same parts as GPT, BERT and a model of today (chapters 14 and 15)."""

from transformer.family.config import FamilyConfig
from transformer.family.decoder_only import DecoderOnly
from transformer.family.encoder_only import EncoderOnly

__all__ = ["DecoderOnly", "EncoderOnly", "FamilyConfig"]
