"""Chapter 11's models on Multi30k, and what they reach on its test.

The models are the chapter's own: its cells ``imports…``, ``recipe…`` and ``rules…`` are run, which
leave ``learn_pieces``, ``build`` and ``train``, the page's own recipe ``SMALL``, and what looks for
faults, ``words``, ``is_short`` and ``is_loop``. All that is chosen, the rate, the length penalty
and how many checkpoints are averaged, is chosen on the dev set; the test is met once a run. Neither
weights nor translations are stored.
"""

import copy
import time
from collections import Counter
from functools import cache
from types import SimpleNamespace
from typing import Any

import torch
from sacrebleu.metrics import BLEU
from torch import Tensor, nn

from transformer.data.parallel import encode_pairs
from transformer.data.text import Tokenizing
from transformer.decoding.protocol import Decodable
from transformer.decoding.translate import translate
from transformer.metrics import bleu, chrf
from transformer_book.experiments import Arm, Cells, Measures, Plan, chapter, experiment
from transformer_book.experiments.real_sentences.bootstrap import (
    bleu_counts,
    bleu_of,
    paired_bootstrap,
)
from transformer_book.experiments.real_sentences.candidates import candidates, pick

CHAPTER, PATTERNS = 11, ("imports*", "recipe*", "rules*")
OTHERS: dict[str, dict[str, Any]] = {  # what is other than on the page
    "plain labels": {"smoothing": 0.0},
    "twenty minutes": {
        "pieces": 4000, "d_model": 256, "layers": 2, "dropout": 0.1,
        "peak": 2e-3, "warmup": 400, "steps": 6000,
    },
}  # fmt: skip
RATES = {
    "Transformer": (0.0025, 0.005, 0.007, 0.01),
    "plain labels": (0.0025, 0.005, 0.007, 0.01),
}  # what is not named here is trained at the rate of its recipe
ALPHAS = (0.0, 0.6, 1.0, 1.4, 1.8, 2.2, 2.6, 3.0)
AVERAGED = {"twenty minutes": (1, 2, 4, 8)}
SEEDS = {"twenty minutes": (0,)}


class Bench:
    """A recipe's training, one after the other, and what is measured of it.

    ``names``: what the chapter's cells leave.
    """

    def __init__(self, names: SimpleNamespace, name: str, recipe: dict[str, Any]):
        self.names, self.name, self.recipe = names, name, recipe
        data = names.multi30k()  # a DataMissing says where it can be had
        self.pieces: Tokenizing = names.learn_pieces(data.train, recipe)
        self.examples, _ = encode_pairs(data.train, self.pieces, self.pieces, max_len=256)
        sides = {split: list(zip(*getattr(data, split), strict=True)) for split in ("dev", "test")}
        self.german = {split: list(pairs[0]) for split, pairs in sides.items()}
        self.english = {split: list(pairs[1]) for split, pairs in sides.items()}
        self.seen = Counter(word for line, _ in data.train for word in self._letters(line))

    def build(self) -> nn.Module:
        return self.names.build(self.recipe, len(self.pieces))

    def learn(self, model: nn.Module, plan: Plan) -> Measures:
        """Scores on dev in the sweep, on dev and test otherwise; a name is "greedy bleu", say."""
        averaged, seconds = self._train(model, plan)
        if not isinstance(model, Decodable):
            raise ValueError(f"build must make what can decode, got a {type(model).__name__}")
        measures = self._scores("dev greedy", self._translate(model, "dev"), "dev") | averaged
        if not plan.sweep:
            greedy = self._translate(model, "test")
            measures |= self._scores("greedy", greedy, "test") | self._faults(greedy)
            measures |= self._beams(model, greedy)
        return measures | {"seconds": seconds}

    def _train(self, model: Any, plan: Plan) -> tuple[Measures, float]:
        """BLEU on dev for each number of averaged checkpoints, and CPU seconds."""
        counts = AVERAGED.get(self.name, ())
        kept: list[dict[str, Tensor]] = []  # the weights at the last of twenty moments

        def after(step: int) -> None:
            if counts and step % (self.recipe["steps"] // 20) == 0:
                kept.append(copy.deepcopy(model.state_dict()))
                del kept[: -max(counts)]

        start = time.process_time()
        self.names.train(model, self.examples, self.recipe | {"peak": plan.lr}, plan.seed, after)
        seconds = time.process_time() - start
        scores = {}
        for n in counts:
            model.load_state_dict(mean_of(kept[-n:]))
            scores[n] = self._scores("", self._translate(model, "dev"), "dev")["bleu"]
        if scores:
            model.load_state_dict(mean_of(kept[-max(scores, key=lambda n: scores[n] or 0.0) :]))
        return {f"averaged {n}": score for n, score in scores.items()}, seconds

    def _beams(self, model: Decodable, greedy: list[str]) -> Measures:
        """One search serves every length penalty; the best on dev is taken for the test."""
        pieces = self.pieces, self.pieces
        found = {s: candidates(model, self.german[s], *pieces) for s in ("dev", "test")}
        on_dev = {a: self._scores("", pick(found["dev"], a), "dev")["bleu"] or 0.0 for a in ALPHAS}
        alpha = max(on_dev, key=on_dev.__getitem__)
        written = pick(found["test"], alpha)
        both = (bleu_counts(lines, self.english["test"]) for lines in (written, greedy))
        lead = zip(("lead", "lead low", "lead high"), paired_bootstrap(*both), strict=True)
        choice: Measures = {f"alpha {a}": round(score, 2) for a, score in on_dev.items()}
        return (
            self._scores("plain", pick(found["test"], 0.0), "test")
            | self._scores("beam", written, "test")
            | choice
            | {"alpha": alpha, **{name: round(x, 2) for name, x in lead}}
        )

    def _faults(self, lines: list[str]) -> Measures:
        """What section 11.4 counts, and BLEU of the groups of section 11.7."""
        german, english = self.german["test"], self.english["test"]
        counts = bleu_counts(lines, english)
        length = torch.tensor([len(self._letters(line)) for line in german])
        rarest = torch.tensor(
            [min((self.seen[w] for w in self._letters(line)), default=0) for line in german]
        )
        middle = (length >= 9) & (length <= 13)
        groups = {
            "up to 8 words": length <= 8,
            "from 18 words": length >= 18,
            "one never seen": middle & (rarest == 0),
            "all seen often": middle & (rarest > 20),
        }
        faults: Measures = {
            "faults worth nothing": float((bleu_of(counts) == 0).sum()),
            "faults too short": float(sum(map(self.names.is_short, lines, english))),
            "faults loops": float(sum(map(self.names.is_loop, lines))),
        }
        for name, chosen in groups.items():
            bleu_there = bleu_of(counts[chosen].sum(dim=0, keepdim=True)).item()
            faults[f"bleu {name}"] = round(bleu_there, 2)
        return faults

    def _letters(self, line: str) -> list[str]:
        return [word for word in self.names.words(line.lower()) if word.isalpha()]

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


def mean_of(states: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    """Weight by weight, as in exercise 9.4."""
    return {name: sum(s[name] for s in states) / len(states) for name in states[0]}  # type: ignore[misc]


def arms_of(cells: Cells) -> dict[str, Arm]:
    """The page's recipe and the others. Raises ValueError where its cells leave no ``SMALL``."""
    names = cells.names()
    small = getattr(names, "SMALL", {})
    if not small:
        raise ValueError(f"{cells.path.name} must leave SMALL in a cell recipe…, got none")
    recipes = {"Transformer": small} | {name: small | other for name, other in OTHERS.items()}
    return {name: _arm(names, name, recipe) for name, recipe in recipes.items()}


def _arm(names: SimpleNamespace, name: str, recipe: dict[str, Any]) -> Arm:
    @cache
    def bench() -> Bench:  # made when a run is wanted: a list of what is stored needs no data
        return Bench(names, name, recipe)

    same = ["x"]
    return Arm(
        lambda: bench().build(),
        learn=lambda model, plan, n_steps: bench().learn(model, plan),
        rates=RATES.get(name, (recipe["peak"],)),
        steps=(recipe["steps"],),
        seeds=SEEDS.get(name, ()),
        about={
            "recipe": recipe,
            "signatures": [f(hypotheses=same, references=same).signature for f in (bleu, chrf)],
        },
    )


@experiment(
    "What does a Transformer reach that has read each caption once, or six times?",
    measure="dev greedy bleu",
    chapter=CHAPTER,
    tuning_seeds=(0,),
    widens=False,
    packages=("sacrebleu",),
)
def real_sentences() -> dict[str, Arm]:
    return arms_of(chapter(CHAPTER, *PATTERNS))
