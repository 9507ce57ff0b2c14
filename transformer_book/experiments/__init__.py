"""Experiments that no page has time for: what they compare, how they are run, what they reached.

:mod:`~transformer_book.experiments.experiment` says what an experiment is: arms, each a model with
its training, at the best of several learning rates, with several seeds. ``make experiments`` lists
and runs them; each run is stored the moment it ends, in one schema
(:mod:`~transformer_book.experiments.runs`), beside the module that defines the experiment, so that
a chapter is made stale by its own runs alone. Chapters read what is stored through the experiment:

>>> from transformer_book.experiments.chapter_04 import recall
>>> recall.spread("divided")  # doctest: +SKIP
(0.998, 1.0)

Nothing is imported here: whoever reads one experiment loads no other.
"""
