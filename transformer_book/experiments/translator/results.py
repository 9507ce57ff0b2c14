"""What the stages of the translator reached: a view of the stored experiment, for chapters."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from statistics import mean
from typing import Any

from transformer_book.experiments import STORED, Results
from transformer_book.experiments.translator.learning import N_STEPS, Judged
from transformer_book.tables import table

RESULTS = STORED / "translators.json"
HEADINGS = ("chapter", "right, %", "long, %", "BLEU", "who sees whom, %")
MEASURES = ("exact", "exact_long", "bleu", "both_right")


@dataclass(frozen=True)
class Stored:
    """A translator at its best learning rate: ``judged`` has an entry for each seed from 0.

    ``tried`` holds each rate and the mean exact match that two other seeds reach with it on other
    sentences. ``seconds`` are the CPU's on one thread, of training alone, the mean over the seeds.
    """

    name: str
    chapter: int
    control: bool
    lr: float
    n_steps: int
    tried: dict[float, float]
    n_parameters: int
    judged: tuple[Judged, ...]
    seconds: float

    def spread(self, measure: str) -> tuple[float, float]:
        """The lowest and the highest of a measure over the seeds."""
        values = [getattr(judged, measure) for judged in self.judged]
        return min(values), max(values)

    def agrees(self, other: Judged, *, margin: float = 0.1) -> bool:
        """Whether the exact match of ``other`` is no further than ``margin`` outside the seeds'.

        Below half of the lowest it does not agree, whatever the margin.
        """
        lowest, highest = self.spread("exact")
        return max(lowest - margin, lowest / 2) <= other.exact <= highest + margin


@cache
def all_stored() -> tuple[Stored, ...]:
    """Every translator, chapter by chapter, each chapter's own before its controls."""
    results = Results(path=RESULTS, measure="exact", judged_by=("exact", "bleu"))
    arms = {name: facts for name, facts in results.stored().arms.items() if results.finals(name)}
    rows = [_row(results, name, facts) for name, facts in arms.items()]
    return tuple(sorted(rows, key=lambda row: row.chapter))


def stored(name: str) -> Stored:
    """The translator of this name. Raises ValueError, which lists the names, for another."""
    for row in all_stored():
        if row.name == name:
            return row
    names = ", ".join(row.name for row in all_stored())
    raise ValueError(f"name must be one of {names}, got {name!r}")


def results_so_far(chapter: int, *, controls: bool = False) -> None:
    """Display a row for each chapter's translator up to this one, and its controls on request.

    Raises ValueError for a ``chapter`` that has no translator.
    """
    chapters = sorted({row.chapter for row in all_stored()})
    if chapter not in chapters:
        raise ValueError(f"chapter must be one of {chapters}, got {chapter}")
    rows = [
        row
        for row in all_stored()
        if (row.chapter <= chapter and not row.control) or (controls and row.chapter == chapter)
    ]
    table(HEADINGS, [[_title(row), *(_percent(row, name) for name in MEASURES)] for row in rows])


def _title(row: Stored) -> str:
    steps = "" if row.n_steps == N_STEPS else f"{row.n_steps:,} steps, "
    size = f"{row.n_parameters / 1000:.0f}k parameters, {steps}{row.seconds:.0f} s"
    return f"{'–' if row.control else row.chapter} {row.name} ({size})"


def _percent(row: Stored, measure: str) -> str:
    """The seeds' lowest and highest; BLEU is a number between 0 and 100 already."""
    factor = 1 if measure == "bleu" else 100
    lowest, highest = (f"{factor * value:.0f}" for value in row.spread(measure))
    return lowest if lowest == highest else f"{lowest}–{highest}"


def _row(results: Results, name: str, facts: Mapping[str, Any]) -> Stored:
    runs = results.finals(name)
    seconds = [run.seconds for run in runs if run.seconds is not None]
    scores = [field.name for field in fields(Judged)]
    return Stored(
        name=name,
        chapter=facts["chapter"],
        control=facts["control"],
        lr=results.rate(name),
        n_steps=results.n_steps(name),
        tried=results.tried(name),
        n_parameters=results.n_parameters(name),
        judged=tuple(Judged(**{score: run.measured(score) for score in scores}) for run in runs),
        seconds=mean(seconds),
    )
