"""Experiments that no page has time for: what they compare, how they are run, what they reached.

An experiment is a question, and arms that answer it: each a model with its training, at the best
of several learning rates, with several seeds (:mod:`~transformer_book.experiments.arms`). A chapter
has one module here, ``chapter_NN``, which defines its experiments with the names below; docs/
experiments.md shows how. ``make experiments`` lists and runs them. Each run is stored the moment it
ends, in ``stored/NAME.json`` (:mod:`~transformer_book.experiments.runs`), and chapters read what
is stored through the experiment:

>>> from transformer_book.experiments.chapter_04 import recall
>>> recall.spread("divided")  # doctest: +SKIP
(0.998, 1.0)

No chapter's module is imported here: whoever reads one experiment loads no other.
"""

from transformer_book.experiments.arms import Arm, Experiment, Make, Plan, experiment
from transformer_book.experiments.cells import Cells, chapter
from transformer_book.experiments.learning import along
from transformer_book.experiments.results import Results
from transformer_book.experiments.runs import STORED, Measures

__all__ = [
    "STORED",
    "Arm",
    "Cells",
    "Experiment",
    "Make",
    "Measures",
    "Plan",
    "Results",
    "along",
    "chapter",
    "experiment",
]
