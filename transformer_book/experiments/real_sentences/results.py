"""What chapter 11's models reach on Multi30k, a table of the stored experiment, for it."""

from dataclasses import dataclass
from functools import cache

from transformer_book.experiments import STORED, Results
from transformer_book.experiments.real_sentences.bootstrap import Difference
from transformer_book.experiments.results import Row, row_of
from transformer_book.experiments.runs import Run

RESULTS = STORED / "real_sentences.json"


@dataclass(frozen=True)
class Scores:
    """BLEU and chrF between 0 and 100, and the words written for each word of the references."""

    bleu: float
    chrf: float
    ratio: float


@dataclass(frozen=True)
class Scored:
    """One seed's scores on the test, greedy and with beams; on dev those that were chosen by.

    ``plain``, beams without a penalty, and ``lead`` are of the page's own recipe alone.
    """

    run: Run

    @property
    def seed(self) -> int:
        return self.run.seed or 0

    @property
    def seconds(self) -> float:
        """The CPU's, of training alone."""
        return self.run.seconds or 0.0

    @property
    def dev_greedy(self) -> Scores:
        return self._scores("dev greedy")

    @property
    def greedy(self) -> Scores:
        return self._scores("greedy")

    @property
    def plain(self) -> Scores:
        return self._scores("plain")

    @property
    def beam(self) -> Scores:
        return self._scores("beam")

    @property
    def alphas(self) -> dict[float, float]:
        """BLEU on the dev set with four beams for each length penalty."""
        return {float(alpha): score for alpha, score in self._named("alpha").items()}

    @property
    def alpha(self) -> float:
        """The best of them."""
        return self.run.measured("alpha")

    @property
    def lead(self) -> Difference:
        """How far ``beam`` is ahead of ``greedy``."""
        return Difference(*map(self.run.measured, ("lead", "lead low", "lead high")))

    @property
    def groups(self) -> dict[str, float]:
        """BLEU of groups of the test's sentences."""
        return self._named("bleu")

    @property
    def faults(self) -> dict[str, float]:
        """How many sentences have one."""
        return self._named("faults")

    def _named(self, name: str) -> dict[str, float]:
        """What is stored as this name and another, such as "alpha 0.6", by the other."""
        names = (key for key in self.run.curve[self.run.n_steps] if key.startswith(f"{name} "))
        return {key.removeprefix(f"{name} "): self.run.measured(key) for key in names}

    def _scores(self, way: str) -> Scores:
        return Scores(*(self.run.measured(f"{way} {name}") for name in ("bleu", "chrf", "ratio")))


class Recipe(Row):
    """A recipe at the best of the rates ``tried``, each with its BLEU on the dev set."""

    @property
    def recipe(self) -> dict[str, int | float]:
        return self.facts["recipe"] | {"peak": self.lr}

    @property
    def runs(self) -> tuple[Scored, ...]:
        return tuple(map(Scored, self.finals))


@cache
def all_measured() -> tuple[Recipe, ...]:
    """Every recipe, the page's own first."""
    return Results(path=RESULTS, measure="dev greedy bleu").rows(Recipe)


def measured(name: str) -> Recipe:
    """The recipe of this name. Raises ValueError, which lists the names, for another."""
    return row_of(all_measured(), name)
