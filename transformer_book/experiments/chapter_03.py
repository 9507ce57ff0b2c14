"""Chapter 3: from which words a translator learns; the phrase book; rock, scissors, paper."""

from collections.abc import Callable, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from transformer.data.batches import make_batch
from transformer.data.grammar import AlignedPair
from transformer.data.tokens import PAD_ID
from transformer_book.experiments import Arm, Make, Measures, Plan, chapter, experiment
from transformer_book.experiments.translator.data import corpus
from transformer_book.experiments.translator.teaching import pairs_of, taught

SENTENCES = 150
TEST, TUNING = 1000, 2000  # the seeds of the pages that a model is judged on

# From which words a translator of attention alone learns


@torch.no_grad()
def losses_of(model: nn.Module, pairs: Sequence[AlignedPair]) -> Measures:
    """Losses in nats a word: "in_view" with all French words, "alone" with the earlier ones."""
    batch = make_batch(corpus().encode(pairs[:SENTENCES]))
    src, tgt = batch.inputs

    def loss(logits: Tensor) -> float:
        return cross_entropy(logits.mT, batch.labels, ignore_index=PAD_ID).item()

    one_by_one = [model(src, tgt[:, : t + 1])[:, -1] for t in range(tgt.size(1))]
    return {"in_view": loss(model(src, tgt)), "alone": loss(torch.stack(one_by_one, dim=1))}


def learn(model: nn.Module, plan: Plan, n_steps: int) -> Measures:
    """The two losses, and the share of sentences that are translated without a fault."""
    return taught(model, plan, n_steps) | losses_of(model, pairs_of(plan))


@experiment(
    "From which words does a translator without masks learn its next word?",
    measure="in_view",
    lower_is_better=True,
    learn=learn,
    rates=(0.003, 0.006, 0.012),
    steps=(800, 3200),
    seeds=tuple(range(5)),
)
def sources() -> dict[str, Make]:
    cell = chapter(3, "imports*", "translator-model*", definitions=("checks-8",)).names()
    return {
        "attention alone": cell.Attending,
        "without the English": cell.WithoutEnglish,
        "without the French": cell.WithoutFrench,
    }


# The phrase book


def phrase_page() -> SimpleNamespace:
    """The chapter's phrase books, its ways to guess, and its training."""
    loop = "imports", "attention", "train"
    cells = "phrase-book", "guess-run", "learn-run", "accuracy", "controls"
    return chapter(3, *loop, *cells, definitions=("checks-4", "solution-3-6")).names()


def translate(model: Any, plan: Plan, n_steps: int, *, guess: Callable[..., Tensor]) -> Measures:
    """The share of right answers on 500 new pages, after the chapter's 300 steps."""
    cell = phrase_page()
    matrices = cell.learn(guess, plan.lr, plan.seed)
    return {"right": cell.accuracy(matrices, guess, TUNING if plan.sweep else TEST)}


@experiment(
    "What does a model need to translate by phrase books that it has never seen?",
    measure="right",
    scale=1.0,
    rates=(0.01, 0.03),
    steps=(300,),
    widens=False,
)
def phrase_book() -> dict[str, Arm]:
    cell = phrase_page()
    guesses = {
        "learned attention": cell.guess,
        "equal weights": cell.guess_equal,
        "no W_Q, no W_K": cell.guess_raw,
        "keys are values": cell.guess_tied,
    }
    return {
        name: Arm(
            lambda: nn.ParameterList(cell.new_matrices()), learn=partial(translate, guess=one)
        )
        for name, one in guesses.items()
    }


# Rock, scissors, paper


def game_page() -> SimpleNamespace:
    """The chapter's game and its training."""
    return chapter(3, "imports", "attention", "train", "rps").names()


def play(model: nn.ParameterList, plan: Plan, n_steps: int) -> Measures:
    """The least weight on what is beaten, and the largest of all weights, after 200 steps."""
    cell = game_page()
    weights = cell.play(len(model), plan.seed)
    beaten = weights[range(3), cell.beaten].min().item()
    return {"beaten": beaten, "largest": weights.max().item()}


def _matrices(n: int) -> nn.Module:
    return nn.ParameterList(torch.zeros(n, 8, 8).unbind())


@experiment(
    "Do rock, scissors and paper need two matrices for queries and keys?",
    measure="beaten",
    scale=1.0,
    learn=play,
    rates=(0.05,),
    steps=(200,),
    seeds=tuple(range(5)),
    widens=False,
)
def circle() -> dict[str, Make]:
    game_page()
    return {"one matrix": partial(_matrices, 1), "two matrices": partial(_matrices, 2)}
