"""What chapter 11 measures with, and what its stored models reach on real sentences."""

from transformer_book.experiments.real_sentences.bootstrap import (
    bleu_counts,
    bleu_of,
    paired_bootstrap,
)
from transformer_book.experiments.real_sentences.candidates import candidates, pick
from transformer_book.experiments.real_sentences.results import measured

__all__ = ["bleu_counts", "bleu_of", "candidates", "measured", "paired_bootstrap", "pick"]
