"""What the film is made from: the weights of its translator, and the plane of its first steps.

Its translator is one of the ten that chapter 9 stores, and was chosen by its result: chapter 12.6
shows that in this one the row of *the* alone decides between *le* and *la*.
"""

import json
import shutil
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from transformer.data.grammar import grammar_vocabularies
from transformer.data.grammar.alignment import starts_with_vowel
from transformer.data.grammar.lexicon import NOUNS
from transformer.data.tokens import EOS_ID
from transformer_book.experiments.translator import trained
from transformer_book.experiments.translator.trained_models import WEIGHTS

SEED = 3
ONE_WORD = [noun for noun in NOUNS if " " not in noun.english[0]]
# One phrase before and after the noun, for one and for several; *the* always comes first.
FRAMES = (("is beautiful", "are beautiful"), ("is behind my house", "are behind my house"))
# Those whose *the* is followed: *black* fits them, and before a vowel *le* and *la* are both *l'*.
FOLLOWED = [
    noun
    for noun in ONE_WORD
    if not starts_with_vowel(noun.french[0])
    and (noun.kind == "animal" or noun.english[0] == "queen")
]


class Rows(NamedTuple):
    """Rows of a word in many sentences, (B, 64), and what is known of its noun, (B,)."""

    noun: Tensor  # as it goes in
    the: Tensor  # as it goes in, after the first look, and at the encoder's end: (3, B, 64)
    feminine: Tensor
    many: Tensor


@torch.inference_mode()
def rows(nouns: list) -> Rows:
    """Those of each noun in each frame, for one and for several."""
    model, (english, _) = trained(SEED).cpu(), grammar_vocabularies()
    told = [(n, i, frame[i]) for n in nouns for frame in FRAMES for i in (0, 1)]
    kept = []
    parts = (model.src_embedding, model.encoder.layers[0].residual_1, model.encoder.layers[1])
    hooks = [part.register_forward_hook(lambda *given: kept.append(given[-1][0])) for part in parts]
    for noun, number, rest in told:
        sentence = f"the {noun.english[number]} {rest}"
        model.encode(torch.tensor([[*english.encode(sentence), EOS_ID]]))
    for hook in hooks:
        hook.remove()
    stages = [torch.stack([x[:2] for x in kept[i::3]]) for i in range(3)]
    return Rows(
        stages[0][:, 1],
        torch.stack([x[:, 0] for x in stages]),
        torch.tensor([noun.feminine for noun, _, _ in told]),
        torch.tensor([number == 1 for _, number, _ in told]),
    )


def directions(nouns: list) -> Tensor:
    """Feminine less masculine, several less one: two rows of length 1 at a right angle, (2, 64).

    Each is the mean of three differences: of the nouns as they go in, and of *the* after its first
    look and at the end. Gender is that of single ones, as French has *les* for both.
    """
    found = rows(nouns)

    def apart(x: Tensor, which: Tensor, among: Tensor) -> Tensor:
        between = x[among & which].mean(dim=0) - x[among & ~which].mean(dim=0)
        return between / between.norm()

    everyone = torch.ones_like(found.many)
    sources = (found.noun, *found.the[1:])
    gender = sum(apart(x, found.feminine, ~found.many) for x in sources)
    number = sum(apart(x, found.many, everyone) for x in sources)
    gender = gender / gender.norm()
    number = number - (gender @ number) * gender
    return torch.stack([gender, number / number.norm()])


def plane() -> dict:
    """Made from every second noun; the others test it (``tests/site/test_film.py``)."""
    made = ONE_WORD[::2]
    axes, found = directions(made), rows(made)
    at = found.noun @ axes.T
    halves = zip(
        (found.feminine & ~found.many, found.many),
        (~found.feminine & ~found.many, ~found.many),
        strict=True,
    )
    middle = [(at[a, i].mean() + at[b, i].mean()).item() / 2 for i, (a, b) in enumerate(halves)]
    return {
        "axes": [[round(x, 5) for x in axis.tolist()] for axis in axes],
        "middle": [round(x, 3) for x in middle],
        "nouns": [{"forms": noun.english, "feminine": noun.feminine} for noun in ONE_WORD],
        "followed": [form for noun in FOLLOWED for form in noun.english],
    }


def write_film_files(folder: Path) -> None:
    """Writes ``weights.safetensors`` and ``plane.js``."""
    shutil.copyfile(WEIGHTS / f"seed-{SEED}.safetensors", folder / "weights.safetensors")
    text = json.dumps(plane(), separators=(",", ":"))
    module = f"// Written by website/extensions/film_files.py.\nexport default {text};\n"
    (folder / "plane.js").write_text(module, encoding="utf-8")
