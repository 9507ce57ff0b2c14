"""Chapter 16: the control's cache in fewer bits, and what is still found.

``python -m transformer_book.experiments.chapter_16.rounding FOLDER`` measures the models whose
weights :mod:`transformer_book.experiments.chapter_16.caches` has put there, and stores what it
finds.
"""

import json
import sys
from pathlib import Path
from typing import Any

import torch

from transformer.runtime import default_device
from transformer_book.experiments.cells import chapter
from transformer_book.experiments.chapter_16 import HERE
from transformer_book.experiments.chapter_16.caches import SEEDS, caches, page, test_texts, told
from transformer_book.experiments.chapter_16.together import Together
from transformer_book.experiments.runs import Measures

ARM, BITS = "all heads", (16, 8, 4, 3, 2)  # 16: as it is kept
PATH = HERE / "rounding.json"


def rounding() -> dict[int, list[Measures]]:
    """For each number of bits what each seed's model finds, as the experiment measures it."""
    stored = json.loads(PATH.read_text(encoding="utf-8"))
    return {int(bits): found for bits, found in stored["found"].items()}


def measured(kept: dict[tuple[float, int], dict[str, torch.Tensor]], bits: int) -> list[Measures]:
    """Of the models of the best rate, each with its weights in ``kept``."""
    own, lr = chapter(16, *page().patterns, "rounded").names(), caches.rate(ARM)

    def make(seed: int) -> Any:
        model = own.Reader(own.attentions("ffff"))
        for block in model.blocks if bits < 16 else ():
            plain = block.self_attention
            block.self_attention = own.Rounded(
                plain.d_model, plain.n_heads, bits=bits, bias=False, positions=plain.positions
            )
        return model

    models = Together(make, [lr] * len(SEEDS), SEEDS)
    for name in models.weights:
        weights = torch.stack([kept[lr, seed][name].float() for seed in SEEDS])
        models.weights[name] = weights.to(default_device())
    few, many = (models.judged(test_texts(n, seed=0)) for n in (8, 48))
    return [told(*each) for each in zip(few, many, strict=True)]


def main() -> None:
    kept = torch.load(Path(sys.argv[1]) / f"{ARM}.pt")
    found = {bits: measured(kept, bits) for bits in BITS}
    about = {"arm": ARM, "rate": caches.rate(ARM), "seeds": SEEDS, "found": found}
    PATH.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
