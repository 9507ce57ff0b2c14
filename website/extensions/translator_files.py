"""What the translator in the page is made from: the weights of chapter 9's, and its words.

The browser reads the weights' own file. All else is written as one module, ``words.js``.
"""

import json
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import torch

from transformer.data.grammar import AlignedPair, grammar_pairs, grammar_vocabularies
from transformer.data.grammar.lexicon import ADJECTIVES
from transformer.data.tokens import BOS_ID, EOS_ID, PAD_ID, UNK_ID
from transformer.decoding import greedy_decode
from transformer_book.experiments.translator import SENTENCES, trained
from transformer_book.experiments.translator.data import MAX_LEN, corpus
from transformer_book.experiments.translator.trained_models import WEIGHTS
from transformer_book.explorer.explored import from_model
from website.extensions.grammar_rules import english_rules

SEED = 0
MEAN = "mean"  # of a layer's heads, as written.js calls it
STORED = WEIGHTS / f"seed-{SEED}.safetensors"
EXAMPLES = (
    *SENTENCES,
    "i do not eat any apples",
    "the small bird sings in front of the house",
)


def write_translator_files(folder: Path) -> None:
    """Writes ``weights.safetensors`` and ``words.js``."""
    shutil.copyfile(STORED, folder / "weights.safetensors")
    text = json.dumps(translator_words(), ensure_ascii=False, separators=(",", ":"))
    module = f"// Written by website/extensions/translator_files.py.\nexport default {text};\n"
    (folder / "words.js").write_text(module, encoding="utf-8")


@cache
def translator_words() -> dict[str, Any]:
    """The vocabularies in the order of ids, examples, one translated, a head, the grammar.

    ``learned`` is how many sentences the model was trained on; ``behind`` has the French forms of
    each adjective that comes behind its noun.
    """
    english, french = grammar_vocabularies()
    return {
        "english": english.words(range(len(english))),
        "french": french.words(range(len(french))),
        "ids": {"pad": PAD_ID, "bos": BOS_ID, "eos": EOS_ID, "unk": UNK_ID},
        "maxLen": MAX_LEN,
        "kilobytes": round(STORED.stat().st_size / 1000),
        "examples": EXAMPLES,
        "head": aligning_head(),
        "opening": opening(),
        "grammar": english_rules(),
        "learned": len(corpus().train),
        "behind": {a.english: sum(a.french, ()) for a in ADJECTIVES if not a.precedes},
    }


def aligning_head() -> dict[str, int | str]:
    """The look to begin with: the one that goes most often to the word that is translated.

    It is that of a cross-attention head, or the mean of a layer's heads. Layer and head count from
    0. How often is counted in 100 sentences of the test, as the French words at which it is largest
    at one of the English words that they are linked to.
    """
    pairs = grammar_pairs(100, seed=1, split="test")
    found = from_model(trained(SEED).cpu(), pairs, grammar_vocabularies())
    right = torch.tensor(0)
    for sentence, pair in zip(found, pairs, strict=True):
        heads = sentence.maps["cross"]
        looks = torch.cat([heads, heads.mean(dim=1, keepdim=True)], dim=1)
        looked_at = looks.argmax(dim=-1)  # (layers, heads + 1, T)
        for j in {j for _, j in pair.alignment}:
            partners = torch.tensor([i for i, word in pair.alignment if word == j])
            right = right + torch.isin(looked_at[:, :, j], partners)
    n_heads = right.size(1) - 1
    layer, head = divmod(int(right.argmax()), n_heads + 1)
    return {"layer": layer, "head": MEAN if head == n_heads else head}


def opening() -> dict[str, Any]:
    """The first example as the model translates it, as ``written.js`` shows a translation.

    ``steps[t]`` has the weights of all heads when target[t] was written: cross [layer][head][s].
    """
    model, vocabularies = trained(SEED).cpu(), grammar_vocabularies()
    english, french = vocabularies
    source = torch.tensor([[*english.encode(EXAMPLES[0]), EOS_ID]])
    [ids] = greedy_decode(model, source, bos_id=BOS_ID, eos_id=EOS_ID, max_len=MAX_LEN).tolist()
    written = french.decode(ids).split()
    pair = AlignedPair(tuple(EXAMPLES[0].split()), tuple(written), frozenset())
    [found] = from_model(model, [pair], vocabularies)
    weights = found.maps["cross"].permute(2, 0, 1, 3)  # (T, layers, heads, S)
    return {
        "source": [*found.source],
        "target": [*found.target[1:]],
        "steps": [{"cross": each} for each in weights.double().round(decimals=5).tolist()],
    }
