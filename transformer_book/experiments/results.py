"""What an experiment's arms reached, read from its file: what chapters ask."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any, TypeVar

from transformer_book.experiments.plateau import Plateau, plateau
from transformer_book.experiments.runs import Measures, Run, Stored, read

Order = tuple[float, ...]


@dataclass(frozen=True)
class Row:
    """An arm as a line of a table: its facts, and a run of each seed at its best rate.

    ``tried`` holds each rate of the sweep with the mean of what was judged by.
    """

    name: str
    facts: Mapping[str, Any]
    lr: float
    tried: dict[float, float]
    finals: tuple[Run, ...]

    @property
    def n_steps(self) -> int:
        return self.finals[0].n_steps

    @property
    def n_parameters(self) -> int:
        return self.finals[0].n_parameters

    @property
    def seconds(self) -> float:
        """The CPU's, the mean over the seeds."""
        return mean(run.seconds for run in self.finals if run.seconds is not None)

    def values(self, measure: str) -> tuple[float, ...]:
        """A measure of each seed after the last step."""
        return tuple(run.measured(measure) for run in self.finals)


R = TypeVar("R", bound=Row)


def row_of(rows: Iterable[R], name: str) -> R:
    """The row of this name. Raises ValueError, which lists the names, for another."""
    by_name = {row.name: row for row in rows}
    if name not in by_name:
        raise ValueError(f"name must be one of {', '.join(by_name)}, got {name!r}")
    return by_name[name]


@dataclass(frozen=True, kw_only=True)
class Results:
    """The stored runs of an experiment, in ``path``.

    ``judged_by`` are the measures that a rate is chosen by in the sweep, the second where the first
    is equal, and without them ``measure``, which is what is asked for where no other is named;
    ``scale`` is what its plateau is measured by.
    """

    path: Path
    measure: str
    judged_by: tuple[str, ...] = ()
    lower_is_better: bool = False
    scale: float | None = None

    @property
    def name(self) -> str:
        return self.path.stem

    def stored(self) -> Stored:
        return read(self.path)

    def runs(self, arm: str) -> tuple[Run, ...]:
        """Those of an arm. Raises ValueError, which lists the arms, for one that has none."""
        stored = self.stored().runs
        own = tuple(run for run in stored if run.arm == arm)
        if not own:
            names = ", ".join(dict.fromkeys(run.arm for run in stored))
            raise ValueError(f"arm must be one of {names}, got {arm!r}")
        return own

    def rows(self, kind: type[R]) -> tuple[R, ...]:
        """A row for each arm that has been run at its best rate, in the order of the arms."""
        own = ((name, facts) for name, facts in self.stored().arms.items() if self.finals(name))
        return tuple(
            kind(name, facts, self.rate(name), self.tried(name), self.finals(name))
            for name, facts in own
        )

    def tried(self, arm: str, at: int | None = None) -> dict[float, float]:
        """Each rate of the sweep, with the mean of what was judged by; NaN: it was no number."""
        marks = self.marks(self.runs(arm), at)
        return {lr: math.nan if first is None else first for lr, (first, *_) in marks.items()}

    def rate(self, arm: str, at: int | None = None) -> float:
        """The best of the rates that were tried, for the last number of steps or ``at`` another."""
        return self.best(self.runs(arm), at)

    def at_edge(self, arm: str) -> bool:
        """Whether the best rate is the least or the greatest that was tried."""
        tried = self.tried(arm)
        return len(tried) > 1 and self.rate(arm) in (min(tried), max(tried))

    def finals(self, arm: str) -> tuple[Run, ...]:
        """The runs with the best rate that are no part of the sweep, by their seeds."""
        runs = self.runs(arm)
        lr, longest = self.best(runs), max(run.n_steps for run in runs)
        own = (r for r in runs if not r.sweep and r.lr == lr and r.n_steps == longest)
        return tuple(sorted(own, key=lambda run: -1 if run.seed is None else run.seed))

    def values(self, arm: str, measure: str = "", *, at: int | None = None) -> tuple[float, ...]:
        """A measure of each seed after the last step, or ``at`` another.

        Raises ValueError for an arm that has no run of its best rate, and for what is no number.
        """
        runs = self.finals(arm)
        if not runs:
            raise ValueError(f"arm must have runs at its best rate, got none of {arm!r}")
        return tuple(run.measured(measure or self.measure, at) for run in runs)

    def mean(self, arm: str, measure: str = "", *, at: int | None = None) -> float:
        return mean(self.values(arm, measure, at=at))

    def spread(self, arm: str, measure: str = "", *, at: int | None = None) -> tuple[float, float]:
        """The lowest and the highest of a measure over the seeds."""
        values = self.values(arm, measure, at=at)
        return min(values), max(values)

    def n_steps(self, arm: str) -> int:
        return self.finals(arm)[0].n_steps

    def n_parameters(self, arm: str) -> int:
        return self.finals(arm)[0].n_parameters

    def plateau(self, arm: str) -> Plateau:
        """How the measure of this arm ends; see :mod:`transformer_book.experiments.plateau`."""
        runs = self.finals(arm)
        curves = [{n: point.get(self.measure) for n, point in run.curve.items()} for run in runs]
        return plateau(curves, scale=self.scale)

    def flat(self, arm: str) -> bool:
        """Whether more steps of this arm would change little; False where that is not known."""
        return self.plateau(arm) == "flat"

    def marks(self, runs: Iterable[Run], at: int | None = None) -> dict[float, list[float | None]]:
        """The means of what was judged by, for each rate of the sweep; None: a seed has no number.

        ``at``: after so many steps, by default the most; a run that was not judged then does not
        count.
        """
        swept = [run for run in runs if run.sweep]
        last = max((run.n_steps for run in swept), default=0) if at is None else at
        by_rate: dict[float, list[Measures]] = {}
        for run in sorted(swept, key=lambda run: run.lr):
            if last in run.curve:
                by_rate.setdefault(run.lr, []).append(run.curve[last])
        return {lr: [_mean(own, name) for name in self._judges] for lr, own in by_rate.items()}

    def best(self, runs: Iterable[Run], at: int | None = None) -> float:
        """The rate with the best marks; of equal ones the middle, or that which was trained on.

        Many are equal where all answers are right; the middle one has most room on both sides. An
        arm of one rate has no sweep. Raises ValueError where there are no runs.
        """
        runs = list(runs)
        finals = {run.lr for run in runs if not run.sweep}
        marks = {lr: self._order(found) for lr, found in self.marks(runs, at).items()}
        if not marks and not finals:
            raise ValueError("runs must hold a sweep, or runs of one rate, got none")
        top = max(marks.values(), default=())
        equal = [lr for lr, order in marks.items() if order == top] or sorted(finals)
        trained = [lr for lr in equal if lr in finals]
        return trained[0] if trained else equal[len(equal) // 2]

    @property
    def _judges(self) -> tuple[str, ...]:
        return self.judged_by or (self.measure,)

    def _order(self, marks: list[float | None]) -> Order:
        """Greater is better; what is no number is worse than any."""
        sign = -1 if self.lower_is_better else 1
        return tuple(float("-inf") if mark is None else sign * mark for mark in marks)


def _mean(points: list[Measures], measure: str) -> float | None:
    """None where one of them has no number of this measure."""
    numbers = [x for x in (point.get(measure) for point in points) if x is not None]
    return mean(numbers) if len(numbers) == len(points) else None
