"""What an experiment is: arms that are compared, each at the best of several learning rates.

An arm is trained with each of its rates and a tuning seed (the sweep); then with the best rate and
the seeds that are reported. Where the best rate is the least or the greatest that was tried, its
half or its double is tried, too, until it has a worse one on both sides.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

from torch import nn

from transformer_book.experiments.results import Results
from transformer_book.experiments.runs import STORED, Measures, Run

MOST_WIDENED = 6  # rates beyond those that an arm begins with; then the edge stays, and is told


@dataclass(frozen=True)
class Plan:
    """One training that is wanted: its rate and seed, and after which steps it is measured.

    ``sweep``: it chooses the rate, so it is judged on data that the others are not judged on, but
    for made-up questions that all runs are asked alike (docs/experiments.md).
    """

    lr: float
    seed: int
    steps: tuple[int, ...]
    sweep: bool


Make = Callable[[], nn.Module]
Learn = Callable[[Any, Plan, int], Measures]
Curve = Callable[[Any, Plan], Mapping[int, Measures]]


@dataclass(frozen=True)
class Arm:
    """How a model is made, and where its training differs from the experiment's other arms.

    ``make`` makes a new model, after the seed was set. All else that is not given is the
    experiment's: see :class:`Experiment`. ``about``: facts that are stored.
    """

    make: Make
    _: KW_ONLY
    learn: Learn | None = None
    curve: Curve | None = None
    rates: tuple[float, ...] = ()
    steps: tuple[int, ...] = ()
    seeds: tuple[int, ...] = ()
    chapter: int | None = None
    about: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Experiment(Results):
    """A question, and the arms that answer it; their runs are read as :class:`Results` says.

    ``define`` returns the arms by their names, each an :class:`Arm` or just what makes its model;
    it is called when something is to be run or listed, as it may run a chapter's cells.

    ``learn(model, plan, n_steps)`` trains a new model for so many steps, and returns what it
    measured: one training for each of ``steps``, the last of which is the budget. So a rate that
    falls to zero does so in each of them; halfway through a longer training, a model is worse than
    one that was to stop there. Where the rate is constant, ``curve(model, plan)`` may be given
    instead, which measures one training after each of the plan's steps.

    With ``rate_for_each_step`` each number of steps has a best rate of its own. Without ``widens``
    no other ``rates`` are tried than those that are named, and of one there is no sweep.
    """

    question: str
    define: Callable[[], Mapping[str, Arm | Make]]
    learn: Learn | None = None
    curve: Curve | None = None
    rates: tuple[float, ...] = ()
    steps: tuple[int, ...] = ()
    seeds: tuple[int, ...] = (0, 1, 2)
    tuning_seeds: tuple[int, ...] = (100,)
    widens: bool = True
    rate_for_each_step: bool = False
    packages: tuple[str, ...] = ()
    chapter: int | None = None

    def arms(self) -> dict[str, Arm]:
        """Every arm with all that it takes from the experiment.

        Raises ValueError for one of which neither says how it learns, at which rates, for how long.
        """
        return {name: self._whole(name, made) for name, made in self.define().items()}

    def _whole(self, name: str, made: Arm | Make) -> Arm:
        arm = made if isinstance(made, Arm) else Arm(made)
        if not (arm.learn or arm.curve):
            arm = replace(arm, learn=self.learn, curve=self.curve)
        arm = replace(
            arm,
            rates=arm.rates or self.rates,
            steps=arm.steps or self.steps,
            seeds=arm.seeds or self.seeds,
            chapter=self.chapter if arm.chapter is None else arm.chapter,
        )
        if not ((arm.learn or arm.curve) and arm.rates and arm.steps):
            raise ValueError(
                f"{self.name} must have a learn or a curve, rates and steps for {name!r}, got "
                f"{arm.learn or arm.curve}, {arm.rates} and {arm.steps}"
            )
        return arm

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
        return len(swept) + len(arm.seeds) if swept else len(list(self._finals(arm, runs)))

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
            for seed in arm.seeds:
                plan = Plan(lr, seed, steps, sweep=False)
                if not _is_done(plan, runs):
                    yield plan


def experiment(
    question: str, *, kind: type[Experiment] = Experiment, **options: Any
) -> Callable[[Callable[[], Mapping[str, Arm | Make]]], Any]:
    """Makes an experiment of the function below it, which returns the arms.

    The function's name is the experiment's, and the number in its module's name the chapter's;
    ``options`` are what else an :class:`Experiment` has.
    """

    def made(define: Callable[[], Mapping[str, Arm | Make]]) -> Experiment:
        number = re.search(r"chapter_(\d+)", define.__module__)
        known = {"chapter": int(number[1])} if number else {}
        path = STORED / f"{define.__name__}.json"
        return kind(question=question, define=define, path=path, **known | options)

    return made


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
