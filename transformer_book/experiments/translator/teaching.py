"""A translator in an experiment: trained as the chapters train theirs, and judged."""

from collections.abc import Sequence
from dataclasses import asdict

from torch import nn

from transformer.data.grammar import AlignedPair
from transformer_book.experiments import Measures, Plan
from transformer_book.experiments.translator.data import corpus
from transformer_book.experiments.translator.learning import judge, train_translator


def pairs_of(plan: Plan) -> Sequence[AlignedPair]:
    """What a run is judged on: a sweep never sees the test."""
    return corpus().tuning if plan.sweep else corpus().test


def scores(model: nn.Module, plan: Plan) -> Measures:
    """All scores of the judge, rounded."""
    return {name: round(x, 4) for name, x in asdict(judge(model, pairs_of(plan))).items()}


def taught(model: nn.Module, plan: Plan, n_steps: int) -> Measures:
    """The share of sentences that ``model`` translates without a fault, after its training."""
    train_translator(model, lr=plan.lr, seed=plan.seed, n_steps=n_steps)
    return {"exact": judge(model, pairs_of(plan)).exact}
