"""A translator in an experiment: trained as the chapters train theirs, and judged."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from torch import nn

from transformer.config import TransformerConfig
from transformer.data.grammar import AlignedPair
from transformer.model import Transformer
from transformer_book.experiments import Measures, Plan
from transformer_book.experiments.translator.data import corpus
from transformer_book.experiments.translator.learning import judge, train_translator


def new_translator(**changes: Any) -> Transformer:
    """The package's Transformer of the size of chapter 9's, but for ``changes`` of its config."""
    sizes: dict[str, Any] = {"d_model": 64, "n_heads": 4}
    sizes |= {"n_encoder_layers": 2, "n_decoder_layers": 2}
    sizes |= {"d_ff": 128, "dropout": 0.0, "norm": "pre", "max_len": 64} | changes
    return Transformer(TransformerConfig(len(corpus().english), len(corpus().french), **sizes))


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
