"""What the film is made from: the weights of its translator, and the plane of its first steps.

Its translator is one of the ten that chapter 9 stores, and was chosen by its result: chapter 12.6
shows that in this one the row of *the* alone decides between *le* and *la*.
"""

import json
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import normalize

from transformer.data.grammar import grammar_vocabularies
from transformer.data.grammar.alignment import starts_with_vowel
from transformer.data.grammar.lexicon import NOUNS, Noun
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
    """Rows in many sentences, and what is known of their nouns."""

    noun: Tensor  # (B, 64), as it goes in
    the: Tensor  # (3, B, 64): as it goes in, after its first look, and at the encoder's end
    feminine: Tensor  # (B,)
    many: Tensor  # (B,)


@torch.inference_mode()
def rows(nouns: list[Noun]) -> Rows:
    """The rows of each noun in each frame, for one and for several."""
    model, (english, _) = trained(SEED).cpu(), grammar_vocabularies()
    told = [(noun, i, frame[i]) for noun in nouns for frame in FRAMES for i in (0, 1)]
    kept: list[Tensor] = []
    first, second = model.encoder.layers
    parts = (model.src_embedding, first.get_submodule("residual_1"), second)
    for part in parts:
        part.register_forward_hook(lambda *given: kept.append(given[-1][0, :2]))
    for noun, i, rest in told:
        sentence = f"the {noun.english[i]} {rest}"
        model.encode(torch.tensor([[*english.encode(sentence), EOS_ID]]))
    stages = torch.stack(kept).unflatten(0, (-1, 3)).transpose(0, 1)  # (3, B, 2, 64)
    feminine = torch.tensor([noun.feminine for noun, _, _ in told])
    return Rows(
        stages[0, :, 1], stages[:, :, 0], feminine, torch.tensor([i for _, i, _ in told]) > 0
    )


def directions(nouns: list[Noun]) -> Tensor:
    """Feminine less masculine, several less one: two rows of length 1 at a right angle, (2, 64).

    Each is the mean of three differences: of the nouns as they go in, and of *the* after its first
    look and at the end. Gender is that of single ones, as French has *les* for both.
    """
    found = rows(nouns)

    def apart(which: Tensor, among: Tensor) -> Tensor:
        every = torch.stack([found.noun, *found.the[1:]])
        between = every[:, among & which].mean(dim=1) - every[:, among & ~which].mean(dim=1)
        return normalize(normalize(between, dim=1).mean(dim=0), dim=0)

    gender = apart(found.feminine, ~found.many)
    number = apart(found.many, torch.ones_like(found.many))
    return torch.stack([gender, normalize(number - (gender @ number) * gender, dim=0)])


def plane() -> dict[str, Any]:
    """Two directions, their middle and the nouns, as ``plane.js`` has them.

    They are made from every second noun; the others test them (``tests/site/test_film.py``).
    """
    axes, found = directions(ONE_WORD[::2]), rows(ONE_WORD[::2])
    at, single = found.noun @ axes.T, ~found.many
    kinds = ((found.feminine & single, ~found.feminine & single), (found.many, single))
    ends = [[at[which, i].mean() for which in pair] for i, pair in enumerate(kinds)]
    return {
        "axes": [[round(x, 5) for x in axis.tolist()] for axis in axes],
        "middle": [round(float(a + b) / 2, 3) for a, b in ends],
        "nouns": [{"forms": noun.english, "feminine": noun.feminine} for noun in ONE_WORD],
        "followed": [form for noun in FOLLOWED for form in noun.english],
    }


def write_film_files(folder: Path) -> None:
    """Writes ``weights.safetensors`` and ``plane.js``."""
    shutil.copyfile(WEIGHTS / f"seed-{SEED}.safetensors", folder / "weights.safetensors")
    text = json.dumps(plane(), separators=(",", ":"))
    module = f"// Written by website/extensions/film_files.py.\nexport default {text};\n"
    (folder / "plane.js").write_text(module, encoding="utf-8")
