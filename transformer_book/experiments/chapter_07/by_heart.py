"""Chapter 7: a table learnt by heart inside of a layer, with and without feed-forward networks."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn

from transformer.layers import FeedForward, LayerNorm
from transformer.multihead import MultiHeadAttention
from transformer_book import minimise
from transformer_book.experiments.cells import code_of
from transformer_book.experiments.experiment import Arm, Experiment, Make, Plan
from transformer_book.experiments.imports import Import
from transformer_book.experiments.learning import one_for_each
from transformer_book.experiments.runs import Measures

HERE, ME = Path(__file__).parent, "transformer_book.experiments.chapter_07.by_heart"
WORDS, PHRASES, WIDTH = 40, 16, 16  # 40 adjectives, 40 nouns: 1,600 pairs


class Phrases(nn.Module):
    """Adjective and noun, then one sublayer after the other (pre-LN); the noun's place answers."""

    def __init__(self, n_attentions: int, d_ff: int, *, bends: bool = True) -> None:
        super().__init__()
        self.words = nn.Embedding(2 * WORDS, WIDTH)  # a noun is another word than an adjective
        attentions = [MultiHeadAttention(WIDTH, 4) for _ in range(n_attentions)]
        self.attentions = nn.ModuleList(attentions)
        bend = torch.relu if bends else torch.positive  # without a bend: x itself
        self.feed_forward = FeedForward(WIDTH, d_ff, activation=bend) if d_ff else None
        self.norms = nn.ModuleList(LayerNorm(WIDTH) for _ in range(n_attentions + 2))
        self.read_out = nn.Linear(WIDTH, PHRASES)

    def forward(self, pairs: Tensor) -> Tensor:
        x = self.words(pairs)
        for attend, norm in zip(self.attentions, self.norms, strict=False):
            y = norm(x)
            x = x + attend(y, y, y)
        if self.feed_forward is not None:
            x = x + self.feed_forward(self.norms[-2](x))
        return self.read_out(self.norms[-1](x[:, 1]))


def learn(make: Make, plan: Plan) -> Iterator[tuple[int, Measures]]:
    """How many of 1,600 pairs have their right phrase, after all were seen at each step."""
    g = torch.Generator().manual_seed(plan.seed)
    adjectives, nouns = torch.meshgrid(torch.arange(WORDS), torch.arange(WORDS), indexing="ij")
    pairs = torch.stack([adjectives, nouns + WORDS], dim=-1).flatten(0, 1)
    phrases = torch.randint(PHRASES, (len(pairs),), generator=g)

    def train(model: nn.Module, n_steps: int) -> Measures:
        minimise(
            lambda step: nn.functional.cross_entropy(model(pairs), phrases),
            model.parameters(),
            n_steps=n_steps,
            lr=lambda step: plan.lr * (1 - step / n_steps),
        )
        with torch.no_grad():
            return {"known": (model(pairs).argmax(dim=-1) == phrases).float().mean().item()}

    yield from one_for_each(make, plan, train)


def arms() -> dict[str, Arm]:
    kinds = {
        "attention": (1, 0, True),
        "attention, 32 units": (1, 32, True),
        "attention, 32 units, no bend": (1, 32, False),
        "two attentions": (2, 0, True),
    }
    return {
        name: Arm(
            make=partial(Phrases, n_attentions, d_ff, bends=bends),
            learn=learn,
            rates=(0.01, 0.03),
            steps=(2000,),
            code=code_of([], [Import(ME)]),
            chapter=7,
        )
        for name, (n_attentions, d_ff, bends) in kinds.items()
    }


by_heart = Experiment(
    path=HERE / "by_heart.json",
    question="What does a layer know by heart with a feed-forward network, and without?",
    measure="known",
    scale=1.0,
    arms=arms,
    seconds=30.0,
)
