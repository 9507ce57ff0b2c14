"""The translator so far: one corpus, one training and one test for the book's growing model."""

from transformer.book.translator.data import SENTENCES, Corpus, corpus
from transformer.book.translator.learning import Judged, judge, train_translator, write
from transformer.book.translator.results import Stored, results_so_far, stored
from transformer.book.translator.trained import trained

__all__ = [
    "SENTENCES",
    "Corpus",
    "Judged",
    "Stored",
    "corpus",
    "judge",
    "results_so_far",
    "stored",
    "train_translator",
    "trained",
    "write",
]
