"""Chapter 1: an LSTM that must remember its first word, and what a code holds of its sentence."""

from functools import partial
from types import SimpleNamespace
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from transformer.cache import Memory
from transformer.data.batches import make_batch
from transformer.data.tokens import PAD_ID
from transformer.recurrent import LSTM, Seq2Seq
from transformer_book.experiments import Arm, Make, Measures, Plan, along, chapter, experiment
from transformer_book.experiments.translator.data import corpus
from transformer_book.experiments.translator.experiment import learn
from transformer_book.experiments.translator.learning import N_STEPS, write
from transformer_book.experiments.translator.results import stored

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


def remember(model: Any, plan: Plan) -> dict[int, Measures]:
    """The share of 500 new sequences of random words whose first word is named."""
    new = torch.randint(KINDS, (500, WORDS), generator=torch.Generator().manual_seed(plan.seed))

    def loss_of(step: int) -> Tensor:
        words = torch.randint(KINDS, (32, WORDS))
        return cross_entropy(model(words), words[:, 0])

    def measure() -> Measures:
        return {"right": (model(new).argmax(dim=-1) == new[:, 0]).float().mean().item()}

    return along(loss_of, model.parameters(), measure, plan)


@experiment(
    "With which forget bias does an LSTM learn to name the first of 30 words?",
    measure="right",
    scale=1.0,
    curve=remember,
    rates=(0.003, 0.01, 0.03),
    steps=(120, 1000),
    widens=False,
)
def first_word() -> dict[str, Make]:
    return {f"forget bias {bias}": partial(Remembers, float(bias)) for bias in BIASES}


def shares_right(model: nn.Module) -> Measures:
    """Shares of the test's sentences of each length: whole ones that are right, and single words.

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
    """The influence of each of nine tokens on the code, as shares that add up to 1.

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


def page() -> SimpleNamespace:
    """The chapter's translator, its loop, and the solution that the loop asks for."""
    solutions = "train", "solution-your-turn-shift"
    return chapter(1, "imports*", "translator-model*", definitions=solutions).names()


def hand_over(model: Any, plan: Plan, n_steps: int) -> Measures:
    """What a new translator does, or one that the page's own loop has trained."""
    cell = page()
    if n_steps:
        cell.train(model, cell.shift_solution, lr=plan.lr, n_steps=n_steps, seed=plan.seed)
    return shares_right(model) | influence(model)


@experiment(
    "What does one code hold of short and long sentences, and of their first words?",
    measure="token 1",
    learn=hand_over,
    steps=(0, N_STEPS),
    seeds=tuple(range(5)),
    widens=False,
)
def code() -> dict[str, Arm]:
    name = "one code vector"
    return {name: Arm(page().Translator, rates=(stored(name).lr,))}


class Narrow(Seq2Seq):
    """Hands over as much as the page's translator: 64 numbers of h and 64 of c, the rest is 0."""

    def encode(self, src: Int[Tensor, "B S"]) -> Memory:
        code = super().encode(src).vectors
        place = torch.arange(code.size(-1), device=code.device) % (code.size(-1) // 2)
        return Memory(code * (place < 64))  # in h, and again in c


@experiment(
    "Does a translator through one code gain by a wider code?",
    measure="exact",
    scale=1.0,
    judged_by=("exact", "bleu"),
    learn=learn,
    rates=(0.0025, 0.005, 0.01),
    steps=(N_STEPS,),
)
def neck() -> dict[str, Make]:
    sizes: dict[str, Any] = {"d_model": 64, "hidden_size": 256}
    words = len(corpus().english), len(corpus().french)
    return {
        "state of 256": partial(Seq2Seq, *words, **sizes),
        "state of 256, 64 of it handed over": partial(Narrow, *words, **sizes),
    }
