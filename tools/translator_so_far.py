"""Train the translator of each chapter and store what it reaches: ``make translators``.

The models are the chapters' own. A chapter's cells ``imports…`` and ``translator-model…`` are run,
which leave a dictionary ``translators``: from a name to what makes a new model, the chapter's own
translator first, then its controls. Each is trained with several learning rates and judged on the
sentences to tune by, then trained anew with the best rate and judged on the test. An entry that is
a pair, of what makes a model and a number of steps, is trained for so many instead of 800.

Chapter 9's own translator is the one that later chapters use: its weights are stored for ten seeds.
"""

import argparse
import dataclasses
import json
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import mean

import nbformat
import torch
from torch import nn

from tools.chapters import CHAPTERS, ROOT, code_cells
from tools.imports import python_of_cell
from transformer.data.grammar import AlignedPair
from transformer.files import replace_file
from transformer.recurrent import EncoderDecoder
from transformer.runtime import default_device
from transformer_book.translator import Judged, corpus, judge, train_translator
from transformer_book.translator.learning import N_STEPS
from transformer_book.translator.results import RESULTS
from transformer_book.translator.trained_models import store_trained

RATES = (0.002, 0.003, 0.005, 0.008, 0.012, 0.018)
RECURRENT_RATES = (0.003, 0.005, 0.01, 0.02, 0.03)
TUNING_SEEDS, SEEDS = (100, 101), range(5)
KEPT, KEPT_SEEDS = 9, range(10)  # the chapter whose models are stored, and how many
Factory = Callable[[], nn.Module]


def translators(path: Path) -> dict[str, tuple[Factory, int]]:
    """What the cells of the notebook ``path`` call so, each with its number of training steps.

    Empty where the notebook has no such cell. Raises ValueError where the cells fill in nothing.
    """
    cells = code_cells(nbformat.read(path, as_version=4))
    if not any(cell.id.startswith("translator-model") for cell in cells):
        return {}
    names: dict = {"__name__": path.stem}
    for cell in cells:
        if cell.id.startswith(("imports", "translator-model")):
            exec(compile(python_of_cell(cell.source), f"{path.name}, {cell.id}", "exec"), names)
    if not names.get("translators"):
        raise ValueError(f"{path.name} must fill translators in a cell translator-model, got none")
    entries = names["translators"].items()
    return {name: each if isinstance(each, tuple) else (each, N_STEPS) for name, each in entries}


def train(make: Factory, lr: float, seed: int, n_steps: int) -> tuple[nn.Module, float]:
    """A new model of this seed, trained; and the CPU's seconds of its training."""
    torch.manual_seed(seed)
    model = make()
    _ = corpus().examples  # made before the clock starts
    start = time.process_time()
    train_translator(model, lr=lr, seed=seed, n_steps=n_steps)
    return model, time.process_time() - start


def train_and_judge(
    make: Factory, lr: float, seed: int, pairs: list[AlignedPair], *, n_steps: int
) -> tuple[Judged, float]:
    """How well a new model of this seed translates ``pairs``, and the seconds of its training."""
    model, seconds = train(make, lr, seed, n_steps)
    return judge(model, pairs), seconds


def tune(make: Factory, n_steps: int) -> dict[float, tuple[float, float]]:
    """Each rate with the mean exact match and BLEU that it leads to."""
    tried, tuning = {}, corpus().tuning
    for lr in RECURRENT_RATES if isinstance(make(), EncoderDecoder) else RATES:
        found = [train_and_judge(make, lr, s, tuning, n_steps=n_steps)[0] for s in TUNING_SEEDS]
        tried[lr] = mean(each.exact for each in found), mean(each.bleu for each in found)
    return tried


def row_of(
    name: str, make: Factory, old: dict | None, *, chapter: int, control: bool, n_steps: int
) -> dict:
    """What is stored of one translator, at the rate of its ``old`` row or, without one, the best.

    A tie in exact match, as where nothing is right, goes to the higher BLEU.
    """
    if old is None:
        scores = tune(make, n_steps)
        lr, tried = max(scores, key=scores.__getitem__), {r: s[0] for r, s in scores.items()}
    else:
        lr, tried = old["lr"], old["tried"]
    seeds = []
    for seed in SEEDS:
        judged, seconds = train_and_judge(make, lr, seed, corpus().test, n_steps=n_steps)
        shares = {name: round(x, 4) for name, x in dataclasses.asdict(judged).items()}
        seeds.append({"seed": seed, "judged": shares, "seconds": round(seconds, 2)})
    return {
        "chapter": chapter,
        "name": name,
        "control": control,
        "lr": lr,
        "n_steps": n_steps,
        "tried": {str(rate): round(exact, 4) for rate, exact in tried.items()},
        "n_parameters": sum(p.numel() for p in make().parameters()),
        "seeds": seeds,
        "made": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "device": default_device().type,
            "date": time.strftime("%Y-%m-%d"),
            "commit": commit(),
        },
    }


def commit() -> str:
    """Of the working tree, with "-dirty" where that has changes; "unknown" outside of git."""
    if not (ROOT / ".git").exists():
        return "unknown"
    command = ["git", "--no-optional-locks", "describe", "--always", "--dirty", "--exclude=*"]
    return subprocess.run(
        command, cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.strip()


def read_rows() -> list[dict]:
    return json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else []


def save(chapter: int, rows: Iterable[dict]) -> None:
    """In the place of what was stored of this chapter."""
    kept = [row for row in read_rows() if row["chapter"] != chapter]
    rows = sorted([*kept, *rows], key=lambda row: row["chapter"])
    replace_file(RESULTS, json.dumps(rows, ensure_ascii=False, indent=1) + "\n")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make translators", description=__doc__.splitlines()[0])
    parser.add_argument("--chapter", type=int, metavar="N", help="this one alone")
    parser.add_argument("--sweep", action="store_true", help="choose all learning rates anew")
    parser.add_argument("notebooks", nargs="*", type=Path, default=CHAPTERS, metavar="NOTEBOOK")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    numbered = {int(path.name[:2]): path for path in options.notebooks}
    if options.chapter is not None and options.chapter not in numbered:
        parser.error(f"--chapter must be one of {sorted(numbered)}, got {options.chapter}")
    for chapter, path in numbered.items():
        if options.chapter not in (None, chapter):
            continue
        old = {} if options.sweep else {row["name"]: row for row in read_rows()}
        rows = []
        for i, (name, (make, n_steps)) in enumerate(translators(path).items()):
            which = {"chapter": chapter, "control": i > 0, "n_steps": n_steps}
            row = row_of(name, make, old.get(name), **which)
            exact = ", ".join(f"{seed['judged']['exact']:.3f}" for seed in row["seeds"])
            print(f"{chapter} {name}: lr {row['lr']}, right {exact}", flush=True)
            rows.append(row)
            if chapter == KEPT and i == 0:
                for seed in KEPT_SEEDS:
                    store_trained(train(make, row["lr"], seed, n_steps)[0], seed)
        save(chapter, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
