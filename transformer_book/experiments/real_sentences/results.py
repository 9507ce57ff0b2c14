"""What chapter 11's models reach on Multi30k, a view of the stored experiment, for it."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from transformer_book.experiments.real_sentences.bootstrap import Difference
from transformer_book.experiments.results import Results
from transformer_book.experiments.runs import Made
from transformer_book.experiments.runs import Run as StoredRun

RESULTS = Path(__file__).with_name("real_sentences.json")


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
    the best. ``plain``: beams without a penalty, ``lead``: how far ``beam`` is ahead of ``greedy``
    on the test, ``groups``: BLEU of groups of its sentences, and ``faults``: how many have one; of
    the page's own recipe alone.
    """

    seed: int
    seconds: float
    dev_greedy: Scores
    greedy: Scores
    alphas: dict[float, float]
    alpha: float
    beam: Scores
    plain: Scores | None
    lead: Difference | None
    groups: dict[str, float]
    faults: dict[str, float]


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
    made: Made

    @property
    def seconds(self) -> float:
        """Of training, the mean over the runs."""
        return sum(run.seconds for run in self.runs) / len(self.runs)


@cache
def all_measured() -> tuple[Row, ...]:
    """Every row, the page's own first."""
    results = Results(path=RESULTS, measure="dev greedy bleu")
    arms = {name: facts for name, facts in results.stored().arms.items() if results.finals(name)}
    return tuple(_row(results, name, facts) for name, facts in arms.items())


def measured(name: str) -> Row:
    """The row of this name. Raises ValueError, which lists the names, for another."""
    for row in all_measured():
        if row.name == name:
            return row
    names = ", ".join(row.name for row in all_measured())
    raise ValueError(f"name must be one of {names}, got {name!r}")


def _row(results: Results, name: str, facts: dict[str, Any]) -> Row:
    own, rate = results.finals(name), results.rate(name)
    return Row(
        name=name,
        recipe=facts["recipe"] | {"peak": rate},
        tried=results.tried(name) or {rate: results.values(name)[0]},
        averaged={int(n): score for n, score in _named(own[0], "averaged").items()},
        n_parameters=results.n_parameters(name),
        runs=tuple(_run(run) for run in own),
        signatures=tuple(facts["signatures"]),
        made=own[0].made,
    )


def _run(run: StoredRun) -> Run:
    lead = ("lead", "lead low", "lead high")
    own = "lead" in run.curve[run.n_steps]
    return Run(
        seed=run.seed or 0,
        seconds=run.seconds or 0.0,
        dev_greedy=_scores(run, "dev greedy"),
        greedy=_scores(run, "greedy"),
        alphas={float(alpha): score for alpha, score in _named(run, "alpha").items()},
        alpha=run.measured("alpha"),
        beam=_scores(run, "beam"),
        plain=_scores(run, "plain") if own else None,
        lead=Difference(*map(run.measured, lead)) if own else None,
        groups=_named(run, "bleu"),
        faults=_named(run, "faults"),
    )


def _scores(run: StoredRun, way: str) -> Scores:
    return Scores(*(run.measured(f"{way} {name}") for name in ("bleu", "chrf", "ratio")))


def _named(run: StoredRun, name: str) -> dict[str, float]:
    """What is stored as this name and another, such as "alpha 0.6", by the other."""
    names = (key for key in run.curve[run.n_steps] if key.startswith(f"{name} "))
    return {key.removeprefix(f"{name} "): run.measured(key) for key in names}
