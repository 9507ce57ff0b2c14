"""The translator so far: one corpus, one training and one test for the book's growing model."""

from transformer_book.experiments.translator.data import SENTENCES, Corpus, corpus
from transformer_book.experiments.translator.learning import Judged, judge, train_translator, write
from transformer_book.experiments.translator.results import Stored, results_so_far, stored
from transformer_book.experiments.translator.trained_models import my_model, my_weights, trained

__all__ = [
    "SENTENCES",
    "Corpus",
    "Judged",
    "Stored",
    "corpus",
    "judge",
    "my_model",
    "my_weights",
    "results_so_far",
    "stored",
    "train_translator",
    "trained",
    "write",
]
