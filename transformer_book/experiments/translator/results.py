"""What the stages of the translator reached: a table of the stored experiment, for chapters."""

from dataclasses import fields
from functools import cache

from transformer_book.experiments import STORED, Results
from transformer_book.experiments.results import Row, row_of
from transformer_book.experiments.translator.learning import N_STEPS, Judged
from transformer_book.tables import table

RESULTS = STORED / "translators.json"
HEADINGS = ("chapter", "right, %", "long, %", "BLEU", "who sees whom, %")
MEASURES = ("exact", "exact_long", "bleu", "both_right")


class Stored(Row):
    """A translator at its best learning rate, which two other seeds chose on other sentences."""

    @property
    def chapter(self) -> int:
        return self.facts["chapter"]

    @property
    def control(self) -> bool:
        return self.facts["control"]

    @property
    def judged(self) -> tuple[Judged, ...]:
        """An entry for each seed from 0."""
        columns = (self.values(field.name) for field in fields(Judged))
        return tuple(Judged(*scores) for scores in zip(*columns, strict=True))

    def spread(self, measure: str) -> tuple[float, float]:
        """The lowest and the highest of a measure over the seeds."""
        return min(self.values(measure)), max(self.values(measure))

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
    return tuple(sorted(results.rows(Stored), key=lambda row: row.chapter))


def stored(name: str) -> Stored:
    """The translator of this name. Raises ValueError, which lists the names, for another."""
    return row_of(all_stored(), name)


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
