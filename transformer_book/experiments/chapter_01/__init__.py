"""Chapter 1: an LSTM that must remember its first word, and what a code holds of its sentence."""

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from transformer.data.batches import make_batch
from transformer.data.tokens import PAD_ID
from transformer.recurrent import LSTM
from transformer_book.experiments.cells import chapter, code_of
from transformer_book.experiments.experiment import Arm, Experiment, Make, Plan
from transformer_book.experiments.imports import Import
from transformer_book.experiments.learning import along
from transformer_book.experiments.runs import Measures
from transformer_book.experiments.translator.data import corpus
from transformer_book.experiments.translator.learning import N_STEPS, write
from transformer_book.experiments.translator.results import stored

HERE, ME = Path(__file__).parent, "transformer_book.experiments.chapter_01"
KINDS, WORDS = 8, 30  # of words; in a sequence
BIASES = (0, 1, 5)
LENGTHS = {"3–4": (3, 5), "5": (5, 6), "6": (6, 7), "7": (7, 8), "8": (8, 9), "9–13": (9, 14)}
TOKENS = 9  # of the sentences whose influence is measured: eight words and <eos>


class Remembers(nn.Module):
    """Says after a sequence which word was its first."""

    def __init__(self, forget_bias: float):
        super().__init__()
        self.embedding = nn.Embedding(KINDS, 16)
        self.network = LSTM(16, 32, forget_bias=forget_bias)
        self.output = nn.Linear(32, KINDS)

    def forward(self, words: Int[Tensor, "B S"]) -> Float[Tensor, "B kinds"]:
        return self.output(self.network(self.embedding(words))[0][:, -1])


def remember(make: Make, plan: Plan) -> Iterable[tuple[int, Measures]]:
    """The share of 500 new sequences of random words whose first word is named."""
    model = make()
    new = torch.randint(KINDS, (500, WORDS), generator=torch.Generator().manual_seed(plan.seed))

    def loss_of(step: int) -> Tensor:
        words = torch.randint(KINDS, (32, WORDS))
        return cross_entropy(model(words), words[:, 0])

    def measure() -> Measures:
        return {"right": (model(new).argmax(dim=-1) == new[:, 0]).float().mean().item()}

    return along(loss_of, model.parameters(), measure, plan).items()


def remember_arms() -> dict[str, Arm]:
    arm = partial(
        Arm,
        learn=remember,
        rates=(0.003, 0.01, 0.03),
        steps=(120, 1000),
        code=code_of([], [Import(ME)]),
        chapter=1,
    )
    return {f"forget bias {bias}": arm(make=partial(Remembers, float(bias))) for bias in BIASES}


def shares_right(model: nn.Module) -> Measures:
    """Of the test's sentences of each length: whole ones that are right, and single words.

    A word is predicted after the true ones before it.
    """
    pairs = corpus().test
    batch, n = make_batch(corpus().encode(pairs)), torch.tensor([len(p.source) for p in pairs])
    written = write(model, [" ".join(pair.source) for pair in pairs])
    whole = torch.tensor([w == " ".join(p.target) for w, p in zip(written, pairs, strict=True)])
    with torch.no_grad():
        hit = model(*batch.inputs).argmax(dim=-1) == batch.labels
    is_word = batch.labels != PAD_ID
    found: Measures = {}
    for name, (least, end) in LENGTHS.items():
        group = (n >= least) & (n < end)
        found[f"sentences of {name}"] = whole[group].float().mean().item()
        found[f"words of {name}"] = hit[group][is_word[group]].float().mean().item()
    return found


def influence(model: Any) -> Measures:
    """Of each of nine tokens on the code, as shares that add up to 1.

    The influence of a token is the length of the derivative of the code with respect to its
    embedding, here over 40 sentences of eight words.
    """
    of_eight = [p for p in corpus().test if len(p.source) == TOKENS - 1][:40]
    src = make_batch(corpus().encode(of_eight)).src
    x = model.src_embedding(src).detach()

    def code(x: Tensor) -> Tensor:
        return model.encoder(x)[1].sum(dim=0)  # the sentences of a batch do not mix

    J = torch.autograd.functional.jacobian(code, x, vectorize=True)  # (128, 40, 9, 64)
    lengths = J.movedim(2, 0).flatten(start_dim=1).norm(dim=1)
    return {f"token {t + 1}": x.item() for t, x in enumerate(lengths / lengths.sum())}


def hand_over(make: Make, plan: Plan, *, cell: SimpleNamespace) -> Iterator[tuple[int, Measures]]:
    """A new translator and a trained one, by the page's own loop."""
    model = make()
    for n_steps in plan.steps:
        if n_steps:
            cell.train(model, cell.shift_solution, lr=plan.lr, n_steps=n_steps, seed=plan.seed)
        yield n_steps, shares_right(model) | influence(model)


def code_arms() -> dict[str, Arm]:
    cells = chapter(
        1, "imports*", "translator-model*", definitions=("train", "solution-your-turn-shift")
    )
    cell = cells.names()
    return {
        "one code vector": Arm(
            make=cell.Translator,
            learn=partial(hand_over, cell=cell),
            rates=(stored("one code vector").lr,),
            steps=(0, N_STEPS),
            code=cells.code(ME),
            chapter=1,
        )
    }


first_word = Experiment(
    path=HERE / "first_word.json",
    question="With which forget bias does an LSTM learn to name the first of 30 words?",
    measure="right",
    scale=1.0,
    arms=remember_arms,
    widens=False,
    seconds=15.0,
)
code = Experiment(
    path=HERE / "code.json",
    question="What does one code hold of short and long sentences, and of their first words?",
    measure="token 1",
    arms=code_arms,
    seeds=tuple(range(5)),
    widens=False,
    seconds=12.0,
)
