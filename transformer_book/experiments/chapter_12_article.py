"""Chapter 12: what *the* knows of its noun's gender, and who decides, in ten pre-LN translators."""

from collections.abc import Iterator
from functools import partial
from statistics import mean
from types import SimpleNamespace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from transformer.data.grammar.alignment import starts_with_vowel
from transformer.data.grammar.lexicon import NOUNS
from transformer.data.tokens import BOS_ID, EOS_ID
from transformer_book.experiments import Make, Measures, Plan, chapter, experiment
from transformer_book.experiments.translator import corpus, trained
from transformer_book.experiments.translator.teaching import new_translator

CELLS = (
    "imports*", "your-turn-remove", "solution-your-turn-remove", "remove-in-use", "without",
    "swap-how", "couples", "your-turn-patch", "solution-your-turn-patch", "patch",
    "roads-how",
)  # fmt: skip
ASKED = tuple(  # of one English word; before a vowel, le and la are both l'
    noun for noun in NOUNS if " " not in noun.english[0] and not starts_with_vowel(noun.french[0])
)
FEMININE = torch.tensor([noun.feminine for noun in ASKED])
FRAMES = {  # two subjects, two objects; with the French in front of the article
    "the {} is beautiful": "",
    "the {} is behind my house": "",
    "she sees the {}": "elle voit",
    "we do not look for the {}": "nous ne cherchons pas",
}


class Round(NamedTuple):
    """A frame with each of the nouns, where the article is about to be written."""

    src: Tensor  # (B, S)
    tgt: Tensor  # (B, T)
    feminine: Tensor  # (B)
    the: int  # its place in the English sentence; the noun is the next word


def rounds() -> Iterator[Round]:
    english, french = corpus().english, corpus().french
    for frame, before in FRAMES.items():
        sentences = [frame.format(noun.english[0]) for noun in ASKED]
        src = torch.tensor([[*english.encode(text), EOS_ID] for text in sentences])
        tgt = torch.tensor([[BOS_ID, *french.encode(before)]] * len(ASKED))
        yield Round(src, tgt, FEMININE, frame.split().index("the"))


def blind(model: nn.Module, page: SimpleNamespace, one: Round) -> Any:
    """A copy in which no head of the encoder may look from *the* to its noun."""
    return page.with_weights(model, page.everyone[:8], partial(page.no_look, the=one.the))


def right(is_la: Tensor, feminine: Tensor) -> float:
    """The share of right articles (..., B), the mean of both genders: for la alone it is half."""
    hit = (is_la == feminine).float()
    return (hit[..., feminine].mean().item() + hit[..., ~feminine].mean().item()) / 2


def rows_of_the(model: Any, one: Round) -> Tensor:
    """(3, B, d_model): before *the* looks at any word, after its first look, in the memory."""
    memory = model.encode(one.src)
    layer, x = model.encoder.layers[0], model.src_embedding(one.src)
    looked = layer.residual_1(x, lambda x: layer.self_attention(x, x, x, memory.mask))
    return torch.stack([x, looked, memory.vectors])[:, :, one.the]


def on_its_side(rows: Tensor, feminine: Tensor) -> float:
    """How often a row of (frames, nouns, d_model) is nearer to the mean of its noun's gender.

    The means are made by half of the nouns, and the other half is asked; over eight such splits.
    """
    found = []
    for seed in range(8):
        g = torch.Generator().manual_seed(seed)
        made = torch.zeros_like(feminine)
        for nouns in (feminine.nonzero()[:, 0], (~feminine).nonzero()[:, 0]):
            made[nouns[torch.randperm(len(nouns), generator=g)[: len(nouns) // 2]]] = True
        she, he = (rows[:, made & gender].mean(dim=(0, 1)) for gender in (feminine, ~feminine))
        nearer = (rows - (she + he) / 2) @ (she - he) > 0
        found.append(right(nearer[:, ~made], feminine[~made]))
    return mean(found)


def deciders(model: Any, page: SimpleNamespace, one: Round) -> dict[str, float]:
    """How often the article follows an exchanged row, and is right where a look is forbidden."""
    src, tgt, feminine, the = one
    le, la, *_ = page.articles

    def is_la(words: Tensor) -> Tensor:  # (B, T, V)
        return words[:, -1, la] > words[:, -1, le]

    ours, others = (feminine[:, None] != feminine).nonzero().unbind(dim=1)  # all such pairs
    found = {}
    for name, place in {"the": the, "noun": the + 1}.items():
        new = page.patch(model, src[ours], src[others], [place], tgt[ours])
        found[f"follows {name}"] = right(is_la(new), feminine[others])
    cut = blind(model, page, one)
    ways: dict[str, tuple[nn.Module, list[int]]] = {
        "no look": (cut, []),
        "noun hidden": (model, [the + 1]),
        "both closed": (cut, [the + 1]),
    }
    for name, (asked, hidden) in ways.items():
        found[name] = right(is_la(page.hide_vector(asked, hidden, src, tgt)), feminine)
    return found


def page() -> SimpleNamespace:
    """What the page closes, exchanges and forbids."""
    return chapter(12, *CELLS).names()


@torch.no_grad()
def learn(model: nn.Module, plan: Plan, n_steps: int) -> Measures:
    """Asks a translator that is stored already; the mean of the frames."""
    model, cell = trained(plan.seed).eval(), page()
    each = [deciders(model, cell, one) for one in rounds()]
    found = {name: mean(x[name] for x in each) for name in each[0]}
    for part, own in (("subjects", each[:2]), ("objects", each[2:])):
        found[f"follows the, {part}"] = mean(x["follows the"] for x in own)
    seeing = [rows_of_the(model, one) for one in rounds()]
    not_seeing = [rows_of_the(blind(model, cell, one), one) for one in rounds()]
    for way, rows in (("", seeing), (", no look", not_seeing)):
        for when, x in zip(("before", "first look", "memory"), torch.stack(rows, 1), strict=True):
            found[f"side, {when}{way}"] = on_its_side(x, FEMININE)
    return {name: round(x, 4) for name, x in found.items()}


@experiment(
    "Who decides between le and la: the row of the, or that of its noun?",
    measure="follows the",
    scale=1.0,
    learn=learn,
    rates=(0.008,),
    steps=(2000,),
    seeds=tuple(range(10)),
    widens=False,
)
def article() -> dict[str, Make]:
    return {"pre-LN": new_translator}
