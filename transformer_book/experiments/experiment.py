"""What an experiment is: arms that are compared, each at the best of several learning rates.

An arm is trained with each of its rates and a tuning seed (the sweep); then with the best rate and
the seeds that are reported. Where the best rate is the least or the greatest that was tried, its
half or its double is tried, too, until it has a worse one on both sides.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import nn

from transformer_book.experiments.results import Results
from transformer_book.experiments.runs import Measures, Run

MOST_WIDENED = 6  # rates beyond those that an arm begins with; then the edge stays, and is told


@dataclass(frozen=True)
class Plan:
    """One training that is wanted: its rate and seed, and after which steps it is measured.

    ``sweep``: it chooses the rate, so it is judged on data that the others are not judged on, but
    for made-up questions that all runs are asked alike (docs/experiments.md).
    ``keep`` is a folder for what is no number, such as translations; it may not be there yet.
    """

    lr: float
    seed: int
    steps: tuple[int, ...]
    sweep: bool
    keep: Path = Path(".experiments")


Make = Callable[[], nn.Module]
Learn = Callable[[Make, Plan], Iterable[tuple[int, Measures]]]


@dataclass(frozen=True, kw_only=True)
class Arm:
    """How a model is made and how it learns.

    ``make`` makes a new model, after the seed was set. ``learn`` trains it and gives, for each of
    the plan's ``steps``, what it measured. ``steps``: where the curve is measured; the last is the
    budget. ``code`` is the hash of all that computes the arm. ``seeds`` are the experiment's, where
    nothing else is said. ``about``: facts that are stored.
    """

    make: Make
    learn: Learn
    rates: tuple[float, ...]
    steps: tuple[int, ...]
    code: str
    chapter: int
    seeds: tuple[int, ...] | None = None
    about: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Experiment(Results):
    """A question, and the arms that answer it; their runs are read as :class:`Results` says.

    ``arms`` is called when something is to be run or listed, as it may run a chapter's cells. With
    ``rate_for_each_step`` each number of steps has a best rate of its own. Without ``widens`` no
    other rates are tried than those that an arm names, and of one there is no sweep. ``seconds`` is
    what a run is thought to take where none is stored yet.
    """

    question: str
    arms: Callable[[], dict[str, Arm]]
    seeds: tuple[int, ...] = (0, 1, 2)
    tuning_seeds: tuple[int, ...] = (100,)
    widens: bool = True
    rate_for_each_step: bool = False
    packages: tuple[str, ...] = ()
    seconds: float = 60.0

    def wanted(self, arm: Arm, runs: Iterable[Run]) -> list[Plan]:
        """What ``runs``, those that are stored of ``arm``, lack next.

        First what the sweep lacks; the rest is known when the sweep has ended.
        """
        runs = list(runs)
        return self._sweep(arm, runs) or list(self._finals(arm, runs))

    def n_wanted(self, arm: Arm, runs: Iterable[Run]) -> int:
        """How many runs are lacking, as far as is known before the sweep has ended."""
        runs = list(runs)
        swept = self._sweep(arm, runs)
        return len(swept) + len(self._seeds(arm)) if swept else len(list(self._finals(arm, runs)))

    def _seeds(self, arm: Arm) -> tuple[int, ...]:
        return self.seeds if arm.seeds is None else arm.seeds

    def _has_sweep(self, arm: Arm) -> bool:
        return self.widens or len(arm.rates) > 1

    def _is_complete(self, arm: Arm, runs: list[Run]) -> bool:
        """Whether each best rate lies inside of what was tried, and has all its seeds.

        Then nothing is wanted, even if the definition has got other rates since.
        """
        for at in arm.steps if self.rate_for_each_step else arm.steps[-1:]:
            tried = self._swept(runs, at)
            if not tried or not min(tried) < self.best(runs, at) < max(tried):
                return False
        return not any(self._finals(arm, runs))

    def _sweep(self, arm: Arm, runs: list[Run]) -> list[Plan]:
        if not self._has_sweep(arm) or self._is_complete(arm, runs):
            return []
        longest = max(arm.steps)
        plans = []
        for lr, until in sorted(self._rates_to_try(arm, runs).items()):
            steps = _up_to(arm.steps, until) if self.rate_for_each_step else (longest,)
            for seed in self.tuning_seeds:
                plan = Plan(lr, seed, steps, sweep=True)
                if not _is_done(plan, runs):
                    plans.append(plan)
        return plans

    def _rates_to_try(self, arm: Arm, runs: list[Run]) -> dict[float, int]:
        """Rates that no tuning seed has, or not all have, and up to how many steps.

        These are the arm's own; then the half and the double of the best for each number of steps.
        """
        longest = max(arm.steps)
        tried = self._swept(runs, longest)
        missing = {lr: longest for lr in arm.rates if lr not in tried}
        if missing or not self.widens or len(tried) >= len(arm.rates) + MOST_WIDENED:
            return missing
        for at in arm.steps if self.rate_for_each_step else (longest,):
            tried = self._swept(runs, at)
            best = self.best((run for run in runs if run.lr in tried), at)
            missing |= {
                lr: at
                for lr in (best / 2, best * 2)
                if not any((lr < best) == (other < best) for other in tried - {best})
            }
        return missing

    def _swept(self, runs: list[Run], at: int) -> set[float]:
        """The rates that every tuning seed was judged with after ``at`` steps."""
        return {
            lr
            for lr in self.marks(runs, at)
            if all(_is_done(Plan(lr, s, (at,), sweep=True), runs) for s in self.tuning_seeds)
        }

    def _finals(self, arm: Arm, runs: list[Run]) -> Iterator[Plan]:
        if not self._has_sweep(arm):
            best = {max(arm.steps): arm.rates[0]}
        else:
            points = arm.steps if self.rate_for_each_step else (max(arm.steps),)
            best = {at: self.best(runs, at) for at in points}
        for lr in sorted(set(best.values())):
            steps = _up_to(arm.steps, max(at for at in best if best[at] == lr))
            for seed in self._seeds(arm):
                plan = Plan(lr, seed, steps, sweep=False)
                if not _is_done(plan, runs):
                    yield plan


def _up_to(steps: tuple[int, ...], longest: int) -> tuple[int, ...]:
    return tuple(n for n in steps if n <= longest)


def _is_done(plan: Plan, runs: Iterable[Run]) -> bool:
    """Whether a run holds all that the plan asks for; one of no known seed stands for all."""
    return any(
        run.sweep == plan.sweep
        and run.lr == plan.lr
        and run.seed in (plan.seed, None)
        and set(plan.steps) <= set(run.curve)
        for run in runs
    )
