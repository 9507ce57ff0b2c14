"""The translators that chapters 1 to 9 and 14 build, and those of chapter 9 that are kept.

The models are the chapters' own. A chapter's cells ``imports…`` and ``translator-model…`` are run,
which leave a dictionary ``translators``: from a name to what makes a new model, the chapter's own
translator first, then its controls. Each is trained with several learning rates and judged on the
sentences to tune by, then trained anew with the best rate and judged on the test. An entry that is
a pair, of what makes a model and a number of steps, is trained for so many instead of 800.
"""

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from torch import nn

from transformer.model import Transformer
from transformer.recurrent import EncoderDecoder
from transformer_book.experiments import Arm, Cells, Measures, Plan, experiment
from transformer_book.experiments.translator.data import corpus
from transformer_book.experiments.translator.learning import N_STEPS, train_translator
from transformer_book.experiments.translator.results import stored
from transformer_book.experiments.translator.teaching import scores
from transformer_book.experiments.translator.trained_models import store_my_weights, store_trained
from transformer_book.notebooks import CHAPTERS, chapter_path

RATES = (0.002, 0.003, 0.005, 0.008, 0.012, 0.018)
RECURRENT_RATES = (0.0015, 0.003, 0.005, 0.01, 0.02, 0.03)
KEPT = 9  # the chapter whose own translator later chapters open
PATTERNS = ("imports*", "translator-model*")
MY_MODEL = ("imports*", "my-model*")


def learn(model: nn.Module, plan: Plan, n_steps: int) -> Measures:
    """All scores of the judge, and the CPU's seconds of training alone."""
    _ = corpus().examples  # made before the clock starts
    start = time.process_time()
    train_translator(model, lr=plan.lr, seed=plan.seed, n_steps=n_steps)
    seconds = time.process_time() - start
    return scores(model, plan) | {"seconds": seconds}


def learn_and_keep(model: Any, plan: Plan, n_steps: int) -> Measures:
    """What :func:`learn` measures; the weights are stored as ``trained(seed)`` finds them."""
    if not isinstance(model, Transformer):
        raise ValueError(f"make must make a Transformer, got a {type(model).__name__}")
    found = learn(model, plan, n_steps)
    store_trained(model, plan.seed)
    return found


def learn_and_keep_mine(model: nn.Module, plan: Plan, n_steps: int) -> Measures:
    """What :func:`learn` measures; the weights are stored as ``my_weights()`` finds them."""
    found = learn(model, plan, n_steps)
    store_my_weights(model)
    return found


def entries_of(path: Path) -> dict[str, tuple[Callable[[], nn.Module], int]]:
    """What cells of the notebook ``path`` call ``translators``, each with its number of steps.

    Empty where the notebook has no such cell. Raises ValueError where the cells fill in nothing.
    """
    cells = Cells(path, PATTERNS)
    if not any(name.startswith("translator-model") for name, _ in cells.sources()):
        return {}
    entries = getattr(cells.names(), "translators", {})
    if not entries:
        raise ValueError(f"{path.name} must fill translators in a cell translator-model, got none")
    return {
        name: entry if isinstance(entry, tuple) else (entry, N_STEPS)
        for name, entry in entries.items()
    }


def arms_of(paths: Iterable[Path]) -> dict[str, Arm]:
    """Every translator of these notebooks, each chapter's own before its controls."""
    return {
        name: Arm(
            make,
            rates=RECURRENT_RATES if isinstance(make(), EncoderDecoder) else RATES,
            steps=(n_steps,),
            chapter=int(path.name[:2]),
            about={"control": i > 0},
        )
        for path in paths
        for i, (name, (make, n_steps)) in enumerate(entries_of(path).items())
    }


@experiment(
    "How far does the translator of each chapter come?",
    measure="exact",
    scale=1.0,
    judged_by=("exact", "bleu"),
    learn=learn,
    seeds=tuple(range(5)),
    tuning_seeds=(100, 101),
    widens=False,
)
def translators() -> dict[str, Arm]:
    return arms_of(sorted(CHAPTERS.glob("*.ipynb")))


def kept_arm(path: Path) -> dict[str, Arm]:
    """Chapter 9's own translator, at the rate that was best for it."""
    name, (make, n_steps) = next(iter(entries_of(path).items()))
    return {name: Arm(make, learn=learn_and_keep, rates=(stored(name).lr,), steps=(n_steps,))}


def _mine() -> nn.Module:
    """The model of chapter 8, as its reader makes it and the page of chapter 9 trains it."""
    mine = Cells(chapter_path(KEPT), MY_MODEL).names()
    return mine.MyTransformer(len(corpus().english), len(corpus().french))


@experiment(
    "The weights of trained(seed) and my_weights(): how well do they translate?",
    measure="exact",
    scale=1.0,
    chapter=KEPT,
    seeds=tuple(range(10)),
    widens=False,
)
def trained() -> dict[str, Arm]:
    _mine()
    mine = Arm(
        _mine,
        learn=learn_and_keep_mine,
        rates=(stored("the whole Transformer").lr,),
        steps=(2000,),
        seeds=(0,),
    )
    return kept_arm(chapter_path(KEPT)) | {"MyTransformer, trained longer": mine}
