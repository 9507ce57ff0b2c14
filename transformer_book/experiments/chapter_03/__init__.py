"""Chapter 3: what a translator of attention alone has learned, and from which words."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from transformer.data.batches import make_batch
from transformer.data.grammar import AlignedPair
from transformer.data.tokens import PAD_ID
from transformer_book.experiments.cells import chapter
from transformer_book.experiments.experiment import Arm, Experiment, Make, Plan
from transformer_book.experiments.learning import one_for_each
from transformer_book.experiments.runs import Measures
from transformer_book.experiments.translator.data import corpus
from transformer_book.experiments.translator.teaching import pairs_of, taught

HERE, ME = Path(__file__).parent, "transformer_book.experiments.chapter_03"
PATTERNS, CELLS = ("imports*", "translator-model*"), ("checks-8",)
RATES = (0.003, 0.006, 0.012)
STEPS = (800, 3200)
SENTENCES = 150


@torch.no_grad()
def losses_of(model: nn.Module, pairs: Sequence[AlignedPair]) -> Measures:
    """In nats a word: "in_view" with all French words, "alone" with the earlier ones only."""
    batch = make_batch(corpus().encode(pairs[:SENTENCES]))
    src, tgt = batch.inputs

    def loss(logits: Tensor) -> float:
        return cross_entropy(logits.mT, batch.labels, ignore_index=PAD_ID).item()

    one_by_one = [model(src, tgt[:, : t + 1])[:, -1] for t in range(tgt.size(1))]
    return {"in_view": loss(model(src, tgt)), "alone": loss(torch.stack(one_by_one, dim=1))}


def learn(make: Make, plan: Plan) -> Iterator[tuple[int, Measures]]:
    """The two losses, and the share of sentences that are translated without a fault."""

    def train(model: nn.Module, n_steps: int) -> Measures:
        return taught(model, plan, n_steps) | losses_of(model, pairs_of(plan))

    yield from one_for_each(make, plan, train)


def arms() -> dict[str, Arm]:
    cells = chapter(3, *PATTERNS, definitions=CELLS)
    names = cells.names()
    arm = partial(Arm, learn=learn, rates=RATES, steps=STEPS, code=cells.code(ME), chapter=3)
    return {
        "attention alone": arm(make=names.Attending),
        "without the English": arm(make=names.WithoutEnglish),
        "without the French": arm(make=names.WithoutFrench),
    }


sources = Experiment(
    path=HERE / "sources.json",
    question="From which words does a translator without masks learn its next word?",
    measure="in_view",
    lower_is_better=True,
    arms=arms,
    seeds=tuple(range(5)),
    seconds=60.0,
)
