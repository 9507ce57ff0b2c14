"""Chapter 11's instruments: one search for every α, the bootstrap, and what is stored."""

from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import nbformat
import numpy as np
import pytest
import torch
from sacrebleu.metrics import BLEU

from transformer import Transformer, TransformerConfig
from transformer.data.text import Vocabulary
from transformer.decoding.translate import translate
from transformer_book.experiments import Cells, Plan
from transformer_book.experiments.real_sentences import experiment
from transformer_book.experiments.real_sentences import results as real_sentences
from transformer_book.experiments.real_sentences.bootstrap import (
    bleu_counts,
    bleu_of,
    paired_bootstrap,
)
from transformer_book.experiments.real_sentences.candidates import Candidate, candidates, pick
from transformer_book.experiments.running import complete

REFERENCES = ["a cat sits on the mat .", "two dogs run in the snow .", "a man sleeps here today ."]
WRITTEN = ["a cat sits on a mat .", "two dogs run in the snow", "a man is asleep ."]


# The bootstrap


def test_bleu_of_summed_counts_is_that_of_sacrebleu():
    sums = bleu_counts(WRITTEN, REFERENCES).sum(dim=0, keepdim=True)
    expected = BLEU(force=True).corpus_score(WRITTEN, [REFERENCES]).score
    assert bleu_of(sums).item() == pytest.approx(expected)


def test_a_corpus_without_a_run_of_four_has_0():
    assert bleu_of(bleu_counts(["cat a"], ["a cat sits"])).item() == 0


def test_the_bootstrap_by_hand():
    def score(lines, rows):
        plain = BLEU(force=True, smooth_method="none")
        return plain.corpus_score([lines[i] for i in rows], [[REFERENCES[i] for i in rows]]).score

    def differences(samples):
        return [score(REFERENCES, rows) - score(WRITTEN, rows) for rows in samples]

    samples = torch.randint(3, (50, 3), generator=torch.Generator().manual_seed(5)).tolist()
    low, high = np.quantile(differences(samples), (0.025, 0.975))
    one, other = bleu_counts(REFERENCES, REFERENCES), bleu_counts(WRITTEN, REFERENCES)
    lead = paired_bootstrap(one, other, n_samples=50, seed=5)
    assert lead == pytest.approx((*differences([range(3)]), low, high))
    assert 0 < low < lead.difference < high


def test_counts_of_different_sentences_are_refused():
    counts = bleu_counts(WRITTEN, REFERENCES)
    with pytest.raises(ValueError, match=r"other must have the shape of one, \(3, 10\)"):
        paired_bootstrap(counts, counts[:2])


# One search


@pytest.fixture(scope="module")
def translator():
    torch.manual_seed(3)
    words = Vocabulary.from_sentences(REFERENCES)
    sizes = {"n_encoder_layers": 1, "n_decoder_layers": 1, "max_len": 60, "share_embeddings": False}
    model = Transformer(
        TransformerConfig(len(words), len(words), d_model=16, n_heads=2, d_ff=16, **sizes)
    )
    model.output.weight.data *= 2  # surer of itself: some sentences end, one never does
    return model, words, words


@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.0, -1.0])
def test_one_search_gives_what_a_search_with_each_penalty_gives(translator, alpha):
    sources = [*REFERENCES, "the cat", "snow ."]
    searched = candidates(translator[0], sources, *translator[1:], beam_size=3, batch_size=2)
    assert {len(some) > 1 for some in searched} == {True, False}
    options = {"beam_size": 3, "early_stopping": True, "batch_size": 2}
    expected = translate(sources, *translator, length_penalty=alpha, **options)
    assert pick(searched, alpha) == expected


def test_a_sentence_without_a_word_has_no_candidate_and_stays_empty(translator):
    sources = ["the cat", "", " "]
    searched = candidates(translator[0], sources, *translator[1:])
    assert [len(some) > 0 for some in searched] == [True, False, False]
    assert pick(searched, 0.6) == translate(sources, *translator, early_stopping=True)


# What is stored


def test_what_is_stored_is_complete():
    rows = real_sentences.all_measured()
    names = ["Transformer", "plain labels", "twenty minutes"]
    assert [row.name for row in rows] == names
    assert [len(row.runs) for row in rows] == [3, 3, 1]
    for row in rows:
        assert [run.seed for run in row.runs] == list(range(len(row.runs))), row.name
        assert all(run.seconds > 0 for run in row.runs)
        assert row.facts["signatures"][0].startswith("nrefs:1|case:mixed|eff:no|tok:13a")
        made = set(row.finals[0].made)
        assert made >= {"python", "torch", "sacrebleu", "device", "date", "commit"}


def test_what_was_chosen_on_dev_is_the_best_and_no_edge_of_what_was_tried():
    for row in real_sentences.all_measured():
        rate = row.recipe["peak"]
        if row.tried:
            assert row.tried[rate] == max(row.tried.values()), row.name
            assert min(row.tried) < rate < max(row.tried), row.name
        for run in row.runs:
            assert run.alphas[run.alpha] == max(run.alphas.values())
            assert min(run.alphas) < run.alpha < max(run.alphas)


def test_what_is_stored_was_trained_by_the_recipes_of_the_chapter():
    known = experiment.real_sentences
    arms = known.arms()
    rows = real_sentences.all_measured()
    assert list(arms) == [row.name for row in rows]
    for row in rows:
        assert row.recipe == arms[row.name].about["recipe"] | {"peak": row.recipe["peak"]}
        assert known.wanted(arms[row.name], known.runs(row.name)) == []


# The experiment

CELL = """
from types import SimpleNamespace

import torch

from transformer import Transformer, TransformerConfig
from transformer.data.text import Vocabulary

PAIRS = [("ein hund schläft im haus", "a dog sleeps in the house")]
PAIRS += [("eine katze sitzt auf dem tisch", "a cat sits on the table")]
TEST = [("der hund sitzt im haus", "the dog sits in the house")]


def multi30k():
    return SimpleNamespace(train=PAIRS, dev=PAIRS, test=TEST)


def learn_pieces(pairs, recipe):
    return Vocabulary.from_sentences([line for pair in pairs + TEST for line in pair])


def build(recipe, vocab):
    return Transformer(TransformerConfig(vocab, vocab, d_model=8, n_heads=1, d_ff=8, max_len=80))


def words(line):
    return line.split()


def is_short(line, wanted):
    return len(line) < len(wanted)


def is_loop(line):
    return line == "a"


def train(model, examples, recipe, seed, after):
    right = recipe["peak"] == 0.005
    end = "" if recipe["steps"] == 20 else " now"
    model.translate_as = {g: e + end if right else "a" for g, e in PAIRS + TEST}


SMALL = {"peak": 0.1, "steps": 20}
"""


@pytest.fixture
def cells(tmp_path, monkeypatch):
    """A chapter whose models are a phrase book at one rate."""

    def by_phrase(sentences, model, *_, **__):
        return [model.translate_as[line] for line in sentences]

    def found(model, sentences, *_):  # of dev the longer one is right, of the test the shorter
        both = (("a", model.translate_as[line]) for line in sentences)
        texts = (
            two if line in dev else two[::-1] for two, line in zip(both, sentences, strict=True)
        )
        return [[Candidate(one, -1.0, 1), Candidate(other, -1.1, 7)] for one, other in texts]

    dev = ["ein hund schläft im haus", "eine katze sitzt auf dem tisch"]
    monkeypatch.setattr(experiment, "translate", by_phrase)
    monkeypatch.setattr(experiment, "candidates", found)
    other = {"longer": {"steps": 40}}  # which adds a word
    monkeypatch.setattr(experiment, "OTHERS", other)
    monkeypatch.setitem(experiment.RATES, "longer", (0.005,))
    made = nbformat.v4.new_notebook()
    made.cells = [
        nbformat.v4.new_code_cell(CELL, id="recipe-all"),
        nbformat.v4.new_code_cell("raise SystemExit", id="another"),
    ]
    nbformat.write(made, tmp_path / "11_a_chapter.ipynb")
    return Cells(tmp_path / "11_a_chapter.ipynb", experiment.PATTERNS)


@pytest.fixture
def ran(cells, tmp_path):
    """All of it, run into a file of its own, with translations kept."""
    one = replace(
        experiment.real_sentences,
        path=tmp_path / "runs.json",
        define=lambda: experiment.arms_of(cells),
    )
    assert len(list(complete(one))) == 4 + 3 + 3
    return one


def test_the_rate_is_chosen_on_dev(ran, monkeypatch):
    monkeypatch.setattr(real_sentences, "RESULTS", ran.path)
    one, other = real_sentences.all_measured.__wrapped__()
    assert (one.name, other.name) == ("Transformer", "longer")
    assert one.recipe == {"peak": 0.005, "steps": 20}
    assert list(one.tried) == [0.0025, 0.005, 0.007, 0.01]
    assert [run.seed for run in one.runs] == [0, 1, 2]
    assert one.runs[0].greedy.chrf == pytest.approx(100)
    assert one.runs[0].greedy.ratio == 1
    assert one.runs[0].alpha > 0  # which dev wants, whatever it is on the test
    assert one.runs[0].beam.bleu < 10
    assert other.runs[0].greedy.ratio == pytest.approx(7 / 6, abs=0.001)
    assert one.runs[0].plain.bleu == pytest.approx(100)
    assert one.runs[0].lead.difference < -90
    assert one.runs[0].faults == {"worth nothing": 0, "too short": 0, "loops": 0}
    assert one.runs[0].groups["up to 8 words"] == pytest.approx(100)
    assert one.runs[0].groups["from 18 words"] == 0  # there is none
    assert (other.lr, other.tried) == (0.005, {})
    assert set(one.finals[0].made) >= {"python", "torch", "sacrebleu", "device", "date", "commit"}


def test_groups_begin_and_end_at_the_lengths_that_are_told():
    bench = object.__new__(experiment.Bench)
    never = dict.fromkeys(("is_short", "is_loop"), lambda *_: False)
    bench.names, bench.seen = SimpleNamespace(words=str.split, **never), Counter(a=21, b=20)
    inside = ["a " * 8, "a " * 8 + "z", "a " * 13, "z " * 13, "a " * 18]
    others = ["b " * 9, "a " * 14, "z " * 14, "a " * 17]
    bench.german = bench.english = {"test": inside + others}
    found = bench._faults(inside + ["wrong"] * len(others))
    groups = {name: score for name, score in found.items() if name.startswith("bleu ")}
    assert groups == pytest.approx(dict.fromkeys(groups, 100))
    assert len(groups) == 4


def test_the_sweep_does_not_meet_the_test(ran):
    for run in ran.runs("Transformer"):
        names = set(run.curve[20])
        assert ("greedy bleu" in names) is not run.sweep
        assert "dev greedy bleu" in names


def test_the_mean_of_last_checkpoints_that_is_best_on_dev_is_taken(cells, monkeypatch):
    def train(model, examples, recipe, seed, after):
        for step in range(1, 21):
            for weights in model.parameters():
                weights.data.fill_(step)
            after(step)

    def translate(sentences, model, *_, **__):
        right = all((weights == 19.5).all() for weights in model.parameters())  # the last two's
        return [model.translate_as[line] if right else "a" for line in sentences]

    names = cells.names()
    bench = experiment.Bench(names, "twenty minutes", {"peak": 0.1, "steps": 20})
    names.train = train
    monkeypatch.setattr(experiment, "translate", translate)

    def build():
        model = bench.build()
        model.translate_as = dict(names.PAIRS + names.TEST)
        return model

    plan = Plan(0.1, 0, (20,), sweep=False)
    measures = bench.learn(build(), plan)
    assert measures["averaged 2"] == measures["dev greedy bleu"] == pytest.approx(100)
    assert max(measures[f"averaged {n}"] for n in (1, 4, 8)) < 10


def test_a_chapter_without_recipes_is_named(tmp_path):
    made = nbformat.v4.new_notebook()
    made.cells = [nbformat.v4.new_code_cell("SMALL = {}", id="recipe-none")]
    nbformat.write(made, tmp_path / "11_empty.ipynb")
    with pytest.raises(ValueError, match=r"11_empty\.ipynb must leave SMALL"):
        experiment.arms_of(Cells(tmp_path / "11_empty.ipynb", experiment.PATTERNS))
