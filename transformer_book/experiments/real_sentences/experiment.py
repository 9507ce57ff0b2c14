"""Chapter 11's models on Multi30k, and what they reach on its test.

The models are the chapter's own: its cells ``imports…`` and ``recipe…`` are run, which leave
``learn_pieces``, ``build`` and ``train``, and a dictionary ``stored_recipes``, the page's first.
All that is chosen, the rate, the length penalty and how many checkpoints are averaged, is chosen on
the dev set; the test is met once a run.

Weights are not stored. Translations stay in the plan's ``keep`` alone, where the run of another
recipe finds those of the first, with the same seed, to be compared with.
"""

import tempfile
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from sacrebleu.metrics import BLEU
from torch import nn

from transformer.data.parallel import encode_pairs
from transformer.data.text import Tokenizing
from transformer.decoding.protocol import Decodable
from transformer.decoding.translate import translate
from transformer.metrics import bleu, chrf
from transformer.runtime import default_device
from transformer.training.checkpoint import average_checkpoints, checkpoints
from transformer_book.experiments.cells import Cells, chapter
from transformer_book.experiments.experiment import Arm, Experiment, Make, Plan
from transformer_book.experiments.real_sentences.bootstrap import bleu_counts, paired_bootstrap
from transformer_book.experiments.real_sentences.candidates import candidates, pick
from transformer_book.experiments.real_sentences.results import RESULTS
from transformer_book.experiments.runs import Measures

CHAPTER, PATTERNS = 11, ("imports*", "recipe*")
RATES = {
    "Transformer": (0.0025, 0.005, 0.007, 0.01),
    "attention RNN": (0.004, 0.008, 0.012, 0.016, 0.024),
    "Transformer, equal steps": (0.0025, 0.005, 0.007, 0.01),
}  # what is not named here is trained at the rate of its recipe
ALPHAS = (0.0, 0.6, 1.0, 1.4, 1.8, 2.2, 2.6, 3.0)
AVERAGED = {"twenty minutes": (1, 2, 4, 8)}
SEEDS = {"twenty minutes": (0,)}
GREEDY_ALONE = ("Transformer, equal steps",)  # the page compares these without beams


class Bench:
    """A recipe's training, one after the other, and what is measured of it.

    ``names``: the chapter's functions; ``first``: the recipe that the others are compared with.
    """

    def __init__(self, names: SimpleNamespace, name: str, recipe: dict[str, Any], first: str):
        self.names, self.name, self.recipe, self.first = names, name, recipe, first
        data = names.multi30k()  # a DataMissing says where it can be had
        self.pieces: Tokenizing = names.learn_pieces(data.train, recipe)
        self.examples, _ = encode_pairs(data.train, self.pieces, self.pieces, max_len=256)
        sides = {split: list(zip(*getattr(data, split), strict=True)) for split in ("dev", "test")}
        self.german = {split: list(pairs[0]) for split, pairs in sides.items()}
        self.english = {split: list(pairs[1]) for split, pairs in sides.items()}

    def build(self) -> nn.Module:
        return self.names.build(self.recipe, len(self.pieces))

    def learn(self, make: Make, plan: Plan) -> Iterator[tuple[int, Measures]]:
        """Scores on dev in the sweep, on dev and test otherwise; a name is "greedy bleu", say."""
        model, averaged, seconds = self._train(make, plan)
        greedy = {"dev": self._translate(model, "dev")}
        measures: Measures = self._scores("dev greedy", greedy["dev"], "dev") | averaged
        if not plan.sweep:
            greedy["test"] = self._translate(model, "test")
            measures |= self._scores("greedy", greedy["test"], "test")
            self._keep(plan, greedy["test"], "greedy")
            measures |= self._against(plan)
            if self.name not in GREEDY_ALONE:
                measures |= self._beams(model, plan)
        yield self.recipe["steps"], measures | {"seconds": seconds}

    def _train(self, make: Make, plan: Plan) -> tuple[Decodable, Measures, float]:
        """The model, BLEU on dev for each number of averaged checkpoints, and CPU seconds."""
        model, counts = make(), AVERAGED.get(self.name, ())
        recipe = self.recipe | {"peak": plan.lr}
        with tempfile.TemporaryDirectory() as run:
            saving = {"run": run, "keep": max(counts, default=1)}
            saving["save_every"] = recipe["steps"] // 20
            start = time.process_time()
            self.names.train(model, self.examples, recipe, plan.seed, **(saving if counts else {}))
            seconds = time.process_time() - start
            kept = {n: average_checkpoints(checkpoints(run)[-n:]) for n in counts}
        scores = {
            n: self._scores("", self._translate(mean, "dev"), "dev")["bleu"]
            for n, mean in kept.items()
        }
        if scores:
            best = max(scores, key=lambda n: scores[n] or 0.0)
            model = kept[best].to(default_device())
        if not isinstance(model, Decodable):
            raise ValueError(f"build must make what can decode, got a {type(model).__name__}")
        return model, {f"averaged {n}": score for n, score in scores.items()}, seconds

    def _beams(self, model: Decodable, plan: Plan) -> Measures:
        """One search serves every length penalty; the best on dev is taken for the test."""
        pieces = self.pieces, self.pieces
        found = {s: candidates(model, self.german[s], *pieces) for s in ("dev", "test")}
        on_dev = {a: self._scores("", pick(found["dev"], a), "dev")["bleu"] or 0.0 for a in ALPHAS}
        alpha = max(on_dev, key=on_dev.__getitem__)
        written = pick(found["test"], alpha)
        self._keep(plan, written, "beam")
        choice: Measures = {f"alpha {a}": round(score, 2) for a, score in on_dev.items()}
        return self._scores("beam", written, "test") | choice | {"alpha": alpha}

    def _against(self, plan: Plan) -> Measures:
        """How far the first recipe's run of this seed is ahead, if it was kept."""
        files = [_file(plan, name, "greedy") for name in (self.first, self.name)]
        if self.name == self.first or not all(file.exists() for file in files):
            return {}
        lines = [file.read_text(encoding="utf-8").split("\n")[:-1] for file in files]
        counts = [bleu_counts(written, self.english["test"]) for written in lines]
        difference, low, high = (round(x, 2) for x in paired_bootstrap(*counts))
        return {"behind": difference, "behind low": low, "behind high": high}

    def _translate(self, model: Decodable, split: str) -> list[str]:
        return translate(self.german[split], model, self.pieces, self.pieces, beam_size=1)

    def _scores(self, prefix: str, hypotheses: list[str], split: str) -> Measures:
        """BLEU, chrF and the words written for each word of the references."""
        references = self.english[split]
        whole = BLEU(force=True).corpus_score(hypotheses, [references])
        numbers = {
            name: score(hypotheses=hypotheses, references=references).score
            for name, score in (("bleu", bleu), ("chrf", chrf))
        }
        numbers["ratio"] = whole.sys_len / whole.ref_len
        return {f"{prefix} {name}".strip(): round(x, 3) for name, x in numbers.items()}

    def _keep(self, plan: Plan, lines: list[str], way: str) -> None:
        plan.keep.mkdir(parents=True, exist_ok=True)
        text = "\n".join(lines) + "\n"
        _file(plan, self.name, way).write_text(text, encoding="utf-8")


def _file(plan: Plan, name: str, way: str) -> Path:
    return plan.keep / f"{name.replace(' ', '-')}-{plan.seed}.{way}.en"


def arms_of(cells: Cells) -> dict[str, Arm]:
    """The recipes of a chapter. Raises ValueError where its cells leave no ``stored_recipes``."""
    names = cells.names()
    recipes = getattr(names, "stored_recipes", {})
    if not recipes:
        raise ValueError(f"{cells.path.name} must fill stored_recipes in a cell recipe…, got none")
    code = cells.code("transformer_book.experiments.real_sentences.experiment")
    return {
        name: _arm(names, name, recipe, first=next(iter(recipes)), code=code)
        for name, recipe in recipes.items()
    }


def _arm(
    names: SimpleNamespace, name: str, recipe: dict[str, Any], *, first: str, code: str
) -> Arm:
    @cache
    def bench() -> Bench:  # made when a run is wanted: a list of what is stored needs no data
        return Bench(names, name, recipe, first)

    same = ["x"]
    return Arm(
        make=lambda: bench().build(),
        learn=lambda make, plan: bench().learn(make, plan),
        rates=RATES.get(name, (recipe["peak"],)),
        steps=(recipe["steps"],),
        seeds=SEEDS.get(name),
        code=code,
        chapter=CHAPTER,
        about={
            "recipe": recipe,
            "signatures": [f(hypotheses=same, references=same).signature for f in (bleu, chrf)],
        },
    )


REAL_SENTENCES = Experiment(
    path=RESULTS,
    question="What do a Transformer and a recurrent translator reach, in equal seconds and steps?",
    measure="dev greedy bleu",
    arms=lambda: arms_of(chapter(CHAPTER, *PATTERNS)),
    tuning_seeds=(0,),
    widens=False,
    packages=("sacrebleu",),
    seconds=200.0,
)
