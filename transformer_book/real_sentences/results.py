"""What chapter 11's models reach on Multi30k, as ``make real-sentences`` has measured it."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from transformer_book.real_sentences.bootstrap import Difference

RESULTS = Path(__file__).with_name("results.json")


@dataclass(frozen=True)
class Scores:
    """BLEU and chrF between 0 and 100, and the words written for each word of the references."""

    bleu: float
    chrf: float
    ratio: float


@dataclass(frozen=True)
class Run:
    """One seed: CPU seconds of training alone, and scores on the test, greedy and with beams.

    ``alphas``: BLEU on the dev set with four beams for each length penalty, of which ``alpha`` is
    the best. ``against``: how far the first row's run of this seed is ahead, both greedy.
    """

    seed: int
    seconds: float
    dev_greedy: Scores
    greedy: Scores
    alphas: dict[float, float]
    alpha: float
    beam: Scores
    against: Difference | None


@dataclass(frozen=True)
class Row:
    """A recipe at the best of the rates ``tried``, each with its BLEU on the dev set.

    ``averaged``: BLEU on the dev set of the mean of so many last checkpoints, where tried.
    """

    name: str
    recipe: dict[str, int | float]
    tried: dict[float, float]
    averaged: dict[int, float]
    n_parameters: int
    runs: tuple[Run, ...]
    signatures: tuple[str, str]
    made: dict[str, str]

    @property
    def seconds(self) -> float:
        """Of training, the mean over the runs."""
        return sum(run.seconds for run in self.runs) / len(self.runs)


@cache
def all_measured() -> tuple[Row, ...]:
    """Every row, the page's own first."""
    rows = json.loads(RESULTS.read_text(encoding="utf-8"))
    return tuple(_row(row) for row in rows)


def measured(name: str) -> Row:
    """The row of this name. Raises ValueError, which lists the names, for another."""
    for row in all_measured():
        if row.name == name:
            return row
    names = ", ".join(row.name for row in all_measured())
    raise ValueError(f"name must be one of {names}, got {name!r}")


def _row(row: dict) -> Row:
    return Row(
        name=row["name"],
        recipe=row["recipe"],
        tried={float(rate): bleu for rate, bleu in row["tried"].items()},
        averaged={int(n): bleu for n, bleu in row["averaged"].items()},
        n_parameters=row["n_parameters"],
        runs=tuple(_run(run) for run in row["runs"]),
        signatures=tuple(row["signatures"]),
        made=row["made"],
    )


def _run(run: dict) -> Run:
    scores = {name: Scores(**run[name]) for name in ("dev_greedy", "greedy", "beam")}
    alphas = {float(alpha): bleu for alpha, bleu in run["alphas"].items()}
    against = Difference(*run["against"]) if run["against"] else None
    return Run(**{**run, **scores, "alphas": alphas, "against": against})
