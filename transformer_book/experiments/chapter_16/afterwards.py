"""Chapter 16: what a cache that was not trained with does to "all heads": fewer bits, or windows.

``python -m transformer_book.experiments.chapter_16.afterwards FOLDER`` rounds the caches of the
models whose weights :mod:`transformer_book.experiments.chapter_16.caches` has put in FOLDER.
Without FOLDER it trains three models for a while, by the page's loop, some minutes each on a CPU,
and gives them windows. Both store what they find.
"""

import json
import sys
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from transformer.runtime import default_device
from transformer_book.experiments import STORED, Measures, chapter
from transformer_book.experiments.chapter_16.caches import (
    SEEDS,
    caches,
    page,
    test_texts,
    told,
    training_texts,
)
from transformer_book.experiments.chapter_16.together import Together

ARM, WINDOW, N_STEPS = "all heads", 32, 400
BITS, SINKS = (16, 8, 4, 3, 2), (None, 0, 4)  # 16 and None: as it was trained
PATH = STORED / "afterwards.json"
Weights = dict[tuple[float, int], dict[str, Tensor]]


def rounding() -> dict[int, list[Measures]]:
    """What each seed's model finds, by number of bits, as the experiment measures it."""
    return dict(zip(BITS, _stored()["bits"], strict=True))


def windowed() -> dict[int | None, list[Measures]]:
    """What each seed's model finds in windows with so many sinks, and for None without a window."""
    return dict(zip(SINKS, _stored()["sinks"], strict=True))


def _stored() -> dict[str, Any]:
    return json.loads(PATH.read_text(encoding="utf-8"))


@cache
def _own() -> Any:
    return chapter(16, *page().patterns, "rounded", "train").names()


def measured(kept: Weights, *, bits: int = 16, sinks: int | None = None) -> list[Measures]:
    """Measures of the models of the best rate, each with its weights in ``kept``."""
    own, lr = _own(), caches.rate(ARM)

    def make(seed: int) -> Any:
        model = own.RecallModel(own.attentions("ffff"))
        for block in model.blocks if bits < 16 or sinks is not None else ():
            plain = block.self_attention
            sizes = plain.d_model, plain.n_heads
            more = {"bias": False, "positions": plain.positions}
            if sinks is None:
                block.self_attention = own.Rounded(*sizes, bits=bits, **more)
            else:
                block.self_attention = own.Window(*sizes, window=WINDOW, sinks=sinks, **more)
        return model

    models = Together(make, [lr] * len(SEEDS), SEEDS)
    for name in models.weights:
        weights = torch.stack([kept[lr, seed][name].float() for seed in SEEDS])
        models.weights[name] = weights.to(default_device())
    few, many = (models.judged(test_texts(n, seed=0)) for n in (8, 48))
    return [told(*each) for each in zip(few, many, strict=True)]


def trained_for_a_while() -> Weights:
    own, lr, texts, kept = _own(), caches.rate(ARM), training_texts(N_STEPS), {}
    for seed in SEEDS:
        torch.manual_seed(seed)
        model = own.RecallModel(own.attentions("ffff"))
        order = torch.randperm(len(texts.tokens), generator=torch.Generator().manual_seed(seed))
        own.train(model, texts, N_STEPS, lr, order)
        kept[lr, seed] = model.state_dict()
    return kept


def main() -> None:
    about = _stored() | {"arm": ARM, "rate": caches.rate(ARM), "seeds": SEEDS}
    if len(sys.argv) > 1:
        kept = torch.load(Path(sys.argv[1]) / f"{ARM}.pt")
        about["bits"] = [measured(kept, bits=bits) for bits in BITS]
    else:
        kept = trained_for_a_while()
        about |= {"steps": N_STEPS, "sinks": [measured(kept, sinks=sinks) for sinks in SINKS]}
    PATH.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
