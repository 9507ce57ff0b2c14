"""Chapter 12: who decides between le and la, in each of the ten stored pre-LN translators."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import mean
from types import SimpleNamespace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from transformer.cache import Memory
from transformer.data.grammar.alignment import starts_with_vowel
from transformer.data.grammar.lexicon import NOUNS
from transformer.data.tokens import BOS_ID, EOS_ID
from transformer_book.experiments.cells import Cells, chapter
from transformer_book.experiments.chapter_12 import STEPS, translator
from transformer_book.experiments.experiment import Arm, Experiment, Make, Plan
from transformer_book.experiments.runs import Measures
from transformer_book.experiments.translator import corpus, trained

HERE, ME = Path(__file__).parent, "transformer_book.experiments.chapter_12.article"
CELLS = (
    "imports*", "your-turn-remove", "solution-your-turn-remove", "remove-in-use", "without",
    "swap-how", "couples", "your-turn-patch", "solution-your-turn-patch", "patch",
    "roads-how",
)  # fmt: skip
ASKED = tuple(  # of one English word; before a vowel, le and la are both l'
    noun for noun in NOUNS if " " not in noun.english[0] and not starts_with_vowel(noun.french[0])
)
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
    the: int  # its place in the English sentence
    noun: int


def rounds() -> Iterator[Round]:
    english, french = corpus().english, corpus().french
    feminine = torch.tensor([noun.feminine for noun in ASKED])
    for frame, before in FRAMES.items():
        sentences = [frame.format(noun.english[0]) for noun in ASKED]
        src = torch.tensor([[*english.encode(text), EOS_ID] for text in sentences])
        tgt = torch.tensor([[BOS_ID, *french.encode(before)]] * len(ASKED))
        the = frame.split().index("the")
        yield Round(src, tgt, feminine, the, the + 1)


def no_look(weights: Tensor, mask: Tensor, *, askers: list[int], noun: int) -> Tensor:
    """Other words share what these would give to the noun."""
    cut = weights.clone()
    cut[..., askers, noun] = 0
    return cut / cut.sum(dim=-1, keepdim=True)


def only(place: int, memory: Memory, n_rounds: int) -> Memory:
    """In the last of the decoder's rounds no other place may be looked at."""
    assert memory.mask is not None
    mask = memory.mask.expand(-1, -1, n_rounds, -1).clone()  # (B, 1, T, S)
    mask[:, :, -1] = False
    mask[:, :, -1, place] = True
    return Memory(memory.vectors, mask)


def right(is_la: Tensor, feminine: Tensor) -> float:
    """The share of right articles, the mean of both genders: who always says la has half."""
    hit = (is_la == feminine).float()
    return (hit[feminine].mean().item() + hit[~feminine].mean().item()) / 2


def deciders(model: Any, page: SimpleNamespace, one: Round) -> dict[str, float]:
    """How often the article follows an exchanged row, and is right where a look is forbidden."""
    src, tgt, feminine, the, noun = one
    le, la, *_ = page.articles

    def is_la(words: Tensor) -> Tensor:  # (B, T, V)
        return words[:, -1, la] > words[:, -1, le]

    def cut(*askers: int) -> nn.Module:
        new = partial(no_look, askers=list(askers), noun=noun)
        return page.with_weights(model, page.everyone[:8], new)

    the_rest = [s for s in range(src.size(1)) if s not in (the, noun)]
    ours, others = (feminine[:, None] != feminine).nonzero().unbind(dim=1)  # all such pairs
    found = {}
    for name, places in {"the": [the], "noun": [noun], "rest": the_rest}.items():
        new = page.patch(model, src[ours], src[others], places, tgt[ours])
        found[f"follows {name}"] = right(is_la(new), feminine[others])
    alone = model.decode(tgt, only(the, model.encode(src), tgt.size(1)))
    found["the alone"] = right(is_la(alone), feminine)
    blind, deaf = cut(the), cut(the, *the_rest)
    ways: dict[str, tuple[nn.Module, list[int]]] = {
        "right": (model, []),
        "no look": (blind, []),
        "noun hidden": (model, [noun]),
        "neither": (blind, [noun]),
        "nobody": (deaf, [noun]),
    }
    for name, (asked, hidden) in ways.items():
        found[name] = right(is_la(page.hide_vector(asked, hidden, src, tgt)), feminine)
    return found


@torch.no_grad()
def learn(make: Make, plan: Plan, *, cells: Cells) -> Iterator[tuple[int, Measures]]:
    """Asks a translator that is stored already; the mean of the frames."""
    model = trained(plan.seed).eval()
    each = [deciders(model, cells.names(), one) for one in rounds()]
    found = {name: mean(x[name] for x in each) for name in each[0]}
    for part, own in (("subjects", each[:2]), ("objects", each[2:])):
        found[f"follows the, {part}"] = mean(x["follows the"] for x in own)
    yield STEPS, {name: round(x, 4) for name, x in found.items()}


def arms() -> dict[str, Arm]:
    cells = chapter(12, *CELLS)
    return {
        "pre-LN": Arm(
            make=partial(translator, "pre", "Glorot"),
            learn=partial(learn, cells=cells),
            rates=(0.008,),
            steps=(STEPS,),
            code=cells.code(ME),
            chapter=12,
            seeds=tuple(range(10)),
        )
    }


article = Experiment(
    path=HERE / "article.json",
    question="Who decides between le and la: the row of the, or that of its noun?",
    measure="follows the",
    scale=1.0,
    arms=arms,
    widens=False,
    seconds=5.0,
)
