"""Chapter 0: the page's Transformer with all shares of attention equal."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from torch import Tensor

from transformer.config import TransformerConfig
from transformer.model import Transformer
from transformer.multihead import MultiHeadAttention
from transformer_book.experiments.cells import chapter
from transformer_book.experiments.experiment import Arm, Experiment, Make, Plan
from transformer_book.experiments.runs import Measures
from transformer_book.experiments.translator.learning import judge, train_translator
from transformer_book.experiments.translator.teaching import pairs_of

HERE, ME = Path(__file__).parent, "transformer_book.experiments.chapter_00"


def with_equal_shares(config: TransformerConfig) -> Transformer:
    """With queries of zeros all scores are 0, and softmax makes equal shares of them."""
    model = Transformer(config)
    for part in model.modules():
        if isinstance(part, MultiHeadAttention):
            unasked: Any = partial(_unasked, part.attend)
            part.attend = unasked  # type: ignore[method-assign]
    return model


def _unasked(attend: Any, q: Tensor, *others: Any) -> Tensor:
    return attend(0 * q, *others)


def learn(make: Make, plan: Plan) -> Iterator[tuple[int, Measures]]:
    """Shares of sentences without a fault, of pairs with both right, of pairs with one French."""
    for n_steps in plan.steps:
        model = make()
        train_translator(model, lr=plan.lr, seed=plan.seed, n_steps=n_steps)
        judged = judge(model, pairs_of(plan))
        both, same = judged.both_right, judged.same_for_both
        yield n_steps, {"exact": judged.exact, "both_right": both, "same_for_both": same}


def arms() -> dict[str, Arm]:
    """Its control is "the whole Transformer", which is stored with the translators."""
    cells = chapter(0, "imports*", "sentences", "model")
    return {
        "equal shares": Arm(
            make=partial(with_equal_shares, cells.names().config),
            learn=learn,
            rates=(0.003, 0.005, 0.008),
            steps=(800,),
            code=cells.code(ME),
            chapter=0,
        )
    }


shares = Experiment(
    path=HERE / "shares.json",
    question="What does a Transformer translate whose words look at all others alike?",
    measure="exact",
    scale=1.0,
    arms=arms,
    seconds=17.0,
)
