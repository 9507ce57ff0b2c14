"""The translators that chapters 1 to 9 and 14 build, and those of chapter 9 that are kept.

The models are the chapters' own. A chapter's cells ``imports…`` and ``translator-model…`` are run,
which leave a dictionary ``translators``: from a name to what makes a new model, the chapter's own
translator first, then its controls. Each is trained with several learning rates and judged on the
sentences to tune by, then trained anew with the best rate and judged on the test. An entry that is
a pair, of what makes a model and a number of steps, is trained for so many instead of 800.
"""

import dataclasses
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from pathlib import Path

from torch import nn

from transformer.model import Transformer
from transformer.recurrent import EncoderDecoder
from transformer_book.experiments.cells import Cells
from transformer_book.experiments.experiment import Arm, Experiment, Make, Plan
from transformer_book.experiments.runs import Measures
from transformer_book.experiments.translator.data import corpus
from transformer_book.experiments.translator.learning import N_STEPS, judge, train_translator
from transformer_book.experiments.translator.results import RESULTS, stored
from transformer_book.experiments.translator.teaching import pairs_of
from transformer_book.experiments.translator.trained_models import (
    WEIGHTS,
    store_my_weights,
    store_trained,
)
from transformer_book.notebooks import CHAPTERS, chapter_path

RATES = (0.002, 0.003, 0.005, 0.008, 0.012, 0.018)
RECURRENT_RATES = (0.0015, 0.003, 0.005, 0.01, 0.02, 0.03)
KEPT = 9  # the chapter whose own translator later chapters open
PATTERNS = ("imports*", "translator-model*")
MY_MODEL = ("imports*", "my-model*")


def learn(make: Make, plan: Plan) -> Iterator[tuple[int, Measures]]:
    """One training for each number of steps; judged in the sweep on the sentences to tune by."""
    pairs = pairs_of(plan)
    for n_steps in plan.steps:
        model, seconds = _trained(make, plan, n_steps)
        scores = dataclasses.asdict(judge(model, pairs))
        yield n_steps, {name: round(x, 4) for name, x in scores.items()} | {"seconds": seconds}


def learn_and_keep(make: Make, plan: Plan) -> Iterator[tuple[int, Measures]]:
    """The same, and the weights are stored as ``trained(seed)`` finds them."""
    model = yield from _learn_one(make, plan)
    if not isinstance(model, Transformer):
        raise ValueError(f"make must make a Transformer, got a {type(model).__name__}")
    store_trained(model, plan.seed)


def learn_and_keep_mine(make: Make, plan: Plan) -> Iterator[tuple[int, Measures]]:
    """The same, and the weights are stored as ``my_weights()`` finds them."""
    store_my_weights((yield from _learn_one(make, plan)))


def _learn_one(make: Make, plan: Plan) -> Generator[tuple[int, Measures], None, nn.Module]:
    """What :func:`learn` gives; returns the model that it has trained."""

    def made() -> nn.Module:
        models.append(make())
        return models[-1]

    models: list[nn.Module] = []
    yield from learn(made, plan)
    (model,) = models
    return model


def _trained(make: Make, plan: Plan, n_steps: int) -> tuple[nn.Module, float]:
    """A new model, trained; and the CPU's seconds of its training."""
    model = make()
    _ = corpus().examples  # made before the clock starts
    start = time.process_time()
    train_translator(model, lr=plan.lr, seed=plan.seed, n_steps=n_steps)
    return model, time.process_time() - start


def translators(path: Path) -> dict[str, tuple[Callable[[], nn.Module], int]]:
    """What the cells of the notebook ``path`` call so, each with its number of training steps.

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
            make=make,
            learn=learn,
            rates=RECURRENT_RATES if isinstance(make(), EncoderDecoder) else RATES,
            steps=(n_steps,),
            code=Cells(path, PATTERNS).code("transformer_book.experiments.translator.experiment"),
            chapter=int(path.name[:2]),
            about={"control": i > 0},
        )
        for path in paths
        for i, (name, (make, n_steps)) in enumerate(translators(path).items())
    }


def kept_arm(path: Path) -> dict[str, Arm]:
    """Chapter 9's own translator, at the rate that was best for it."""
    name, (make, n_steps) = next(iter(translators(path).items()))
    code = Cells(path, PATTERNS).code("transformer_book.experiments.translator.experiment")
    return {
        name: Arm(
            make=make,
            learn=learn_and_keep,
            rates=(stored(name).lr,),
            steps=(n_steps,),
            code=code,
            chapter=KEPT,
        )
    }


def my_arm(path: Path) -> dict[str, Arm]:
    """The model of chapter 8, as its reader makes it and the page of chapter 9 trains it."""
    cells = Cells(path, MY_MODEL)
    vocabularies = len(corpus().english), len(corpus().french)
    return {
        "MyTransformer, trained longer": Arm(
            make=lambda: cells.names().MyTransformer(*vocabularies),
            learn=learn_and_keep_mine,
            rates=(stored("the whole Transformer").lr,),
            steps=(2000,),
            seeds=(0,),
            code=cells.code("transformer_book.experiments.translator.experiment"),
            chapter=KEPT,
        )
    }


def all_kept() -> dict[str, Arm]:
    path = chapter_path(KEPT)
    return kept_arm(path) | my_arm(path)


TRANSLATORS = Experiment(
    path=RESULTS,
    question="How far does the translator of each chapter come?",
    measure="exact",
    scale=1.0,
    judged_by=("exact", "bleu"),
    arms=lambda: arms_of(sorted(CHAPTERS.glob("*.ipynb"))),
    seeds=tuple(range(5)),
    tuning_seeds=(100, 101),
    widens=False,
    seconds=20.0,
)
TRAINED = Experiment(
    path=WEIGHTS.with_name("trained.json"),
    question="The weights of trained(seed) and my_weights(): how well do they translate?",
    measure="exact",
    scale=1.0,
    arms=all_kept,
    seeds=tuple(range(10)),
    widens=False,
    seconds=50.0,
)
