"""Chapter 0: the page's Transformer with all shares of attention equal."""

from functools import partial
from typing import Any

from torch import Tensor, nn

from transformer.config import TransformerConfig
from transformer.model import Transformer
from transformer.multihead import MultiHeadAttention
from transformer_book.experiments import Make, Measures, Plan, chapter, experiment
from transformer_book.experiments.translator.learning import judge, train_translator
from transformer_book.experiments.translator.teaching import pairs_of


def with_equal_shares(config: TransformerConfig) -> Transformer:
    """Makes the queries zero, so that all scores are 0 and softmax makes equal shares of them."""
    model = Transformer(config)
    for part in model.modules():
        if isinstance(part, MultiHeadAttention):
            unasked: Any = partial(_unasked, part.attend)
            part.attend = unasked  # type: ignore[method-assign]
    return model


def _unasked(attend: Any, q: Tensor, *others: Any) -> Tensor:
    return attend(0 * q, *others)


def learn(model: nn.Module, plan: Plan, n_steps: int) -> Measures:
    """Shares of sentences without a fault, of pairs with both right, of pairs with one French."""
    train_translator(model, lr=plan.lr, seed=plan.seed, n_steps=n_steps)
    found = judge(model, pairs_of(plan))
    names = "exact", "both_right", "same_for_both"
    return {name: getattr(found, name) for name in names}


@experiment(
    "What does a Transformer translate whose words look at all others alike?",
    measure="exact",
    scale=1.0,
    learn=learn,
    rates=(0.003, 0.005, 0.008),
    steps=(800,),
)
def shares() -> dict[str, Make]:
    """Its control is "the whole Transformer", which is stored with the translators."""
    config = chapter(0, "imports*", "sentences", "model").names().config
    return {"equal shares": partial(with_equal_shares, config)}
