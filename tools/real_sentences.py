"""Train chapter 11's models on Multi30k and store what they reach: ``make real-sentences``.

The models are the chapter's own: its cells ``imports…`` and ``recipe…`` are run, which leave
``learn_pieces``, ``build`` and ``train``, and a dictionary ``stored_recipes``, the page's first.
Each recipe is trained with the rates of ``RATES``, one seed each, and judged on the dev set; the
best rate is trained with the other seeds. All else that is chosen, the length penalty and how many
checkpoints are averaged, is chosen on the dev set, too; the test is met once a run.

Weights are not stored, and translations only in the folder that ``--keep`` names.
"""

import argparse
import dataclasses
import json
import platform
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import nbformat
import sacrebleu
import torch
from sacrebleu.metrics import BLEU

from tools.chapters import ROOT, code_cells
from tools.imports import python_of_cell
from tools.translator_so_far import commit
from transformer.data.parallel import encode_pairs
from transformer.decoding.translate import translate
from transformer.files import replace_file
from transformer.metrics import bleu, chrf
from transformer.runtime import default_device
from transformer.training.checkpoint import average_checkpoints, checkpoints
from transformer_book.real_sentences.bootstrap import bleu_counts, paired_bootstrap
from transformer_book.real_sentences.candidates import candidates, pick
from transformer_book.real_sentences.results import RESULTS, Scores

CHAPTER = ROOT / "chapters" / "11_translation.ipynb"
RATES = {
    "Transformer": (0.0025, 0.005, 0.007, 0.01),
    "attention RNN": (0.004, 0.008, 0.012, 0.016, 0.024),
}  # what is not named here is trained at the rate of its recipe
N_SEEDS = {"Transformer": 3, "attention RNN": 3}
ALPHAS = (0.0, 0.6, 1.0, 1.4, 1.8, 2.2, 2.6, 3.0)
AVERAGED = {"twenty minutes": (1, 2, 4, 8)}


def names_of(path: Path) -> SimpleNamespace:
    """What the cells ``imports…`` and ``recipe…`` of a notebook define.

    Raises ValueError where they leave no ``stored_recipes``.
    """
    names: dict = {"__name__": path.stem}
    for cell in code_cells(nbformat.read(path, as_version=4)):
        if cell.id.startswith(("imports", "recipe")):
            exec(compile(python_of_cell(cell.source), f"{path.name}, {cell.id}", "exec"), names)
    if not names.get("stored_recipes"):
        raise ValueError(f"{path.name} must fill stored_recipes in a cell recipe…, got none")
    return SimpleNamespace(**names)


def scores(hypotheses: list[str], references: list[str]) -> Scores:
    whole = BLEU(force=True).corpus_score(hypotheses, [references])
    both = {"hypotheses": hypotheses, "references": references}
    return Scores(bleu(**both).score, chrf(**both).score, whole.sys_len / whole.ref_len)


@dataclasses.dataclass
class Trained:
    """A model that has learnt, its pieces, and the CPU seconds that it took."""

    model: torch.nn.Module
    pieces: object
    seconds: float
    averaged: dict[int, float]

    def translate(self, sentences: list[str]) -> list[str]:
        return translate(sentences, self.model, self.pieces, self.pieces, beam_size=1)


class Bench:
    """The chapter's functions on the data, and the folder that translations are kept in."""

    def __init__(self, names: SimpleNamespace, keep: Path):
        self.names, self.keep, self.data = names, keep, names.multi30k()
        self.german, self.english = ({s: [p[i] for p in getattr(self.data, s)]
                                      for s in ("dev", "test")} for i in (0, 1))  # fmt: skip
        keep.mkdir(parents=True, exist_ok=True)

    def train(self, name: str, recipe: dict, seed: int) -> Trained:
        names, averaged = self.names, {}
        pieces = names.learn_pieces(self.data.train, recipe)
        examples, _ = encode_pairs(self.data.train, pieces, pieces, max_len=256)
        torch.manual_seed(seed)
        model = names.build(recipe, len(pieces))
        counts = AVERAGED.get(name, ())
        with tempfile.TemporaryDirectory() as run:
            saving = {
                "run": run,
                "keep": max(counts, default=1),
                "save_every": recipe["steps"] // 20,
            }
            start = time.process_time()
            names.train(model, examples, recipe, seed, **(saving if counts else {}))
            done = Trained(model, pieces, time.process_time() - start, averaged)
            kept = {n: average_checkpoints(checkpoints(run)[-n:]) for n in counts}
        for n, done.model in kept.items():
            averaged[n] = self.dev_bleu(done)
        if counts:
            done.model = kept[max(averaged, key=averaged.__getitem__)].to(default_device())
        return done

    def dev_bleu(self, done: Trained) -> float:
        return scores(done.translate(self.german["dev"]), self.english["dev"]).bleu

    def tune(self, name: str, recipe: dict) -> tuple[dict[float, float], dict[float, Trained]]:
        """Each rate with its BLEU on the dev set, and what was trained with it."""
        models = {}
        for rate in RATES.get(name, (recipe["peak"],)):
            models[rate] = self.train(name, recipe | {"peak": rate}, 0)
            found = self.dev_bleu(models[rate])
            print(f"{name}, rate {rate}: {found:.2f}, {models[rate].seconds:.0f} s", flush=True)
            models[rate].dev = found
        return {rate: each.dev for rate, each in models.items()}, models

    def run(self, name: str, seed: int, done: Trained, first: str) -> dict:
        """What is stored of one run."""
        greedy = {s: done.translate(self.german[s]) for s in ("dev", "test")}
        search = {s: candidates(done.model, self.german[s], done.pieces, done.pieces)
                  for s in ("dev", "test")}  # fmt: skip
        alphas = {a: scores(pick(search["dev"], a), self.english["dev"]).bleu for a in ALPHAS}
        alpha = max(alphas, key=alphas.__getitem__)
        written = {"greedy": greedy["test"], "beam": pick(search["test"], alpha)}
        for way, lines in written.items():
            self.file(name, seed, way).write_text("\n".join(lines) + "\n", encoding="utf-8")
        return {
            "seed": seed,
            "seconds": round(done.seconds, 1),
            "dev_greedy": rounded(scores(greedy["dev"], self.english["dev"])),
            **{way: rounded(scores(lines, self.english["test"])) for way, lines in written.items()},
            "alphas": {str(a): round(found, 2) for a, found in alphas.items()},
            "alpha": alpha,
            "against": self.against(name, seed, first),
        }

    def file(self, name: str, seed: int, way: str) -> Path:
        return self.keep / f"{name.replace(' ', '-')}-{seed}.{way}.en"

    def against(self, name: str, seed: int, first: str) -> list[float] | None:
        """How far the first recipe's run of this seed is ahead, if it was kept."""
        files = [self.file(each, seed, "greedy") for each in (first, name)]
        if name == first or not all(file.exists() for file in files):
            return None
        lines = [file.read_text(encoding="utf-8").split("\n")[:-1] for file in files]
        counts = [bleu_counts(each, self.english["test"]) for each in lines]
        return [round(x, 2) for x in paired_bootstrap(*counts)]

    def row(self, name: str) -> dict:
        """What is stored of a recipe."""
        recipe, first = self.names.stored_recipes[name], next(iter(self.names.stored_recipes))
        tried, models = self.tune(name, recipe)
        recipe = recipe | {"peak": max(tried, key=tried.__getitem__)}
        done, runs = models[recipe["peak"]], []
        size = sum(p.numel() for p in done.model.parameters())
        for seed in range(N_SEEDS.get(name, 1)):
            done = self.train(name, recipe, seed) if seed else done
            runs.append(self.run(name, seed, done, first))
            print(f"{name}, seed {seed}: {runs[-1]}", flush=True)
        reference = {"hypotheses": self.english["dev"], "references": self.english["dev"]}
        return {
            "name": name,
            "recipe": recipe,
            "tried": {str(rate): round(found, 2) for rate, found in tried.items()},
            "averaged": {str(n): round(x, 2) for n, x in models[recipe["peak"]].averaged.items()},
            "n_parameters": size,
            "runs": runs,
            "signatures": [bleu(**reference).signature, chrf(**reference).signature],
            "made": made(),
        }


def rounded(found: Scores) -> dict[str, float]:
    return {name: round(x, 3) for name, x in dataclasses.asdict(found).items()}


def made() -> dict[str, str]:
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "sacrebleu": sacrebleu.__version__,
        "device": default_device().type,
        "threads": str(torch.get_num_threads()),
        "date": time.strftime("%Y-%m-%d"),
        "commit": commit(),
    }


def save(row: dict, order: list[str]) -> None:
    """In the place of the row of this name; all rows in the chapter's order."""
    old = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else []
    rows = [*(each for each in old if each["name"] != row["name"]), row]
    rows = sorted((r for r in rows if r["name"] in order), key=lambda r: order.index(r["name"]))
    replace_file(RESULTS, json.dumps(rows, ensure_ascii=False, indent=1) + "\n")


def main(arguments: list[str] | None = None) -> int:
    about = __doc__.splitlines()[0]
    parser = argparse.ArgumentParser(prog="make real-sentences", description=about)
    parser.add_argument("--only", metavar="NAME", help="of the recipes, this one alone")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where translations stay")
    parser.add_argument("notebook", nargs="?", type=Path, default=CHAPTER, metavar="NOTEBOOK")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    names = names_of(options.notebook)
    order = list(names.stored_recipes)
    if options.only not in (None, *order):
        parser.error(f"--only must be one of {order}, got {options.only}")
    with tempfile.TemporaryDirectory() as temporary:
        bench = Bench(names, options.keep or Path(temporary))
        for name in order if options.only is None else [options.only]:
            save(bench.row(name), order)
    return 0


if __name__ == "__main__":
    sys.exit(main())
