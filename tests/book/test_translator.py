"""The translator so far: what it learns from, how it is judged, what is stored of it."""

import dataclasses
import re
import sys

import jaxtyping
import pytest
import torch
from torch import nn

from tests.book.test_experiments import notebook
from tools.chapters import CHAPTERS
from transformer import Transformer, TransformerConfig
from transformer.data.batches import make_batch
from transformer.data.tokens import EOS_ID, PAD_ID
from transformer.recurrent import AttentionSeq2Seq, Seq2Seq
from transformer.runtime import default_device
from transformer_book import tables
from transformer_book.experiments import Plan, translator
from transformer_book.experiments.running import run_one
from transformer_book.experiments.runs import Run, Stored
from transformer_book.experiments.runs import write as write_runs
from transformer_book.experiments.translator import (
    SENTENCES,
    Judged,
    corpus,
    experiment,
    judge,
    learning,
    results,
    results_so_far,
    stored,
    teaching,
    train_translator,
    write,
)
from transformer_book.experiments.translator.data import mirrored_pairs
from transformer_book.experiments.translator.experiment import arms_of, entries_of

FIELDS = [field.name for field in dataclasses.fields(Judged)]


@pytest.fixture(scope="module", autouse=True)
def corpus_made_unchecked():
    """The grammar writes 27,000 sentences: the check of every annotation would take a minute."""
    jaxtyping.config.update("jaxtyping_disable", True)
    assert corpus().examples
    jaxtyping.config.update("jaxtyping_disable", False)


class Phrasebook(nn.Module):
    """Writes what its table has for a source, and <eos> for what it has not."""

    def __init__(self, pairs):
        super().__init__()
        self.table = {tuple(src): tgt for src, tgt in corpus().encode(pairs)}

    def forward(self, src, tgt):
        logits = torch.zeros(*tgt.shape, len(corpus().french))
        for row, ids in zip(logits, src.tolist(), strict=True):
            known = self.table.get(tuple(i for i in ids if i != PAD_ID), [])
            for t, scores in enumerate(row):
                scores[known[t + 1] if t + 1 < len(known) else EOS_ID] = 1.0
        return logits


class Called(nn.Module):
    """Another model by its ``forward`` alone."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, src, tgt):
        return self.model(src, tgt)


class Counts(nn.Module):
    """A model so small that training it costs nothing."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(len(corpus().french), len(corpus().french))

    def forward(self, src, tgt):
        return self.table(tgt)


def everything():
    return [*corpus().test, *(pair for two in corpus().mirrored for pair in two)]


def long(pair):
    return len(pair.source) >= 8


# The corpus


def test_nothing_that_is_asked_was_learnt():
    words = corpus()
    learnt = {pair.source for pair in words.train}
    asked = [pair.source for pair in (*everything(), *words.tuning)]
    asked += [tuple(sentence.split()) for sentence in SENTENCES]
    assert learnt.isdisjoint(asked)
    assert {p.source for p in words.tuning}.isdisjoint(p.source for p in words.test)
    sizes = len(words.train), len(words.test), len(words.tuning), len(words.mirrored)
    assert sizes == (26_000, 600, 300, 100)


def test_mirrored_sentences_exchange_subject_and_object():
    for one, other in corpus().mirrored:
        _, x, sees, the, y = one.source
        assert sees == "sees"
        assert other.source == ("the", y, sees, the, x)
        assert "voit" in one.target
        assert one.target != other.target


def test_a_mirrored_pair_is_left_out_if_either_was_learnt():
    one, other = mirrored_pairs([])[:2]
    left = mirrored_pairs([one[0], other[1]])
    assert one not in left
    assert other not in left
    assert len(left) == len(mirrored_pairs([])) - 2
    # all that is stored was judged by the same hundred
    assert corpus().mirrored[0][0].source == ("the", "woman", "sees", "the", "dog")


# Training


def test_the_rate_rises_for_50_steps_and_falls_straight_to_zero(monkeypatch):
    seen = {}
    monkeypatch.setattr(learning, "minimise", lambda *_, **options: seen.update(options) or [])
    train_translator(Counts(), lr=0.5, seed=0)
    rate = seen["lr"]
    assert seen["clip_norm"] == 1.0
    assert seen["n_steps"] == 800
    assert rate(0) == pytest.approx(0.01)
    assert rate(49) == max(map(rate, range(800))) == pytest.approx(0.5)
    assert rate(800) == pytest.approx(0.0, abs=1e-12)
    falls = torch.tensor([rate(i) for i in range(50, 800)]).diff()
    assert falls.allclose(falls.mean(), rtol=1e-3)
    assert falls[0] < 0


def test_a_step_takes_32_sentences_whose_padding_has_no_loss(monkeypatch):
    monkeypatch.setattr(learning, "minimise", lambda loss_of, *_, **__: [loss_of(0).item()])

    def unsorted(examples, *, batch_size, seed):
        assert batch_size == 32
        return lambda step: make_batch(examples[:batch_size])

    class Certain(Phrasebook):
        def forward(self, src, tgt):
            assert (tgt == PAD_ID).any()
            return 100 * super().forward(src, tgt)  # after the end: <eos>, and never <pad>

    monkeypatch.setattr(learning, "BucketedBatches", unsorted)
    model = Certain(corpus().train[:32])
    model.weight = torch.nn.Parameter(torch.ones(1))  # which says where the model is
    assert train_translator(model, lr=0.1, seed=0)[0] < 1e-5


# The judge


def test_who_knows_all_is_right_in_all():
    found = judge(Phrasebook(everything()))
    assert dataclasses.astuple(found) == pytest.approx((1, 1, 100, 1, 0))


def test_long_sentences_are_those_of_eight_words_and_more():
    test = corpus().test
    found = judge(Phrasebook([pair for pair in everything() if not long(pair)]))
    assert found.exact == pytest.approx(1 - sum(map(long, test)) / len(test))
    assert found.exact_long == 0
    assert found.bleu < 100
    assert judge(Phrasebook([pair for pair in everything() if long(pair)])).exact_long == 1


def test_both_are_right_only_if_both_are():
    one_of_each = [two[i % 2] for i, two in enumerate(corpus().mirrored)]
    halfway = [pair for two in corpus().mirrored[:50] for pair in two]
    found = judge(Phrasebook(one_of_each))
    assert (found.both_right, found.same_for_both, found.exact) == (0, 0, 0)
    found = judge(Phrasebook(halfway))  # of the other half it writes nothing, twice
    assert (found.both_right, found.same_for_both) == (0.5, 0.5)
    assert judge(Phrasebook(one_of_each[:1])).same_for_both == 0.99  # padded to other lengths


@pytest.mark.parametrize("kind", [Seq2Seq, AttentionSeq2Seq])
def test_who_never_ends_a_sentence_is_stopped_and_decoding_needs_forward_alone(kind):
    torch.manual_seed(0)
    model = kind(len(corpus().english), len(corpus().french), d_model=8, hidden_size=8)
    with torch.no_grad():
        model.output.bias[EOS_ID] = -1.0  # else most are empty
    written = write(model, SENTENCES)
    assert write(Called(model), SENTENCES) == written
    assert len(set(written)) > 1
    assert max(len(sentence.split()) for sentence in written) <= 32


def test_written_sentences_are_french():
    known = [p for p in everything() if len(p.source) < 6][:3]
    sources = [" ".join(pair.source) for pair in known]
    assert write(Phrasebook(known), sources) == [" ".join(pair.target) for pair in known]


def test_a_word_that_the_grammar_does_not_have_is_named():
    with pytest.raises(ValueError, match="of the grammar's words, got 'unicorn'"):
        write(Counts(), ["the cat sleeps", "the black unicorn sleeps"])
    with pytest.raises(ValueError, match="sentences must be a list of sentences, got the str"):
        write(Counts(), "the cat sleeps")


# What is stored


def row(chapter, name, *, control=False, exact=(0.1, 0.2), seconds=(4.0, 6.0), n_steps=800):
    """An arm's name, its facts and its runs."""
    common = {"arm": name, "n_parameters": 91_644, "n_steps": n_steps, "made": {}}
    judged = dict.fromkeys(FIELDS, 0.25) | {"bleu": 34.4}

    def run(lr, seed, x, s):
        curve = {n_steps: judged | {"exact": x}}
        return Run(lr=lr, seed=seed, sweep=seed is None, curve=curve, seconds=s, **common)

    swept = [run(lr, None, x, None) for lr, x in ((0.01, 0.2), (0.02, 0.1))]
    runs = [run(0.01, i, x, s) for i, (x, s) in enumerate(zip(exact, seconds, strict=True))]
    return name, {"chapter": chapter, "control": control}, [*swept, *runs]


@pytest.fixture
def store(tmp_path, monkeypatch):
    """Stores rows for the time of a test."""
    path = tmp_path / "translators.json"
    monkeypatch.setattr(results, "RESULTS", path)

    def put(*rows):
        arms = {name: facts for name, facts, _ in rows}
        write_runs(path, Stored(arms, tuple(run for _, _, runs in rows for run in runs)))
        results.all_stored.cache_clear()

    put(
        row(1, "a code"),
        row(1, "a <b>", control=True, n_steps=8000),
        row(2, "looking up", exact=(0.5, 0.5)),
    )
    yield put
    results.all_stored.cache_clear()


def test_the_table_ends_with_the_chapter_and_has_its_controls_on_request(store, monkeypatch):
    def shown(chapter, **options):
        results_so_far(chapter, **options)
        return seen["text/plain"].splitlines()[1:]

    seen = {}
    monkeypatch.setattr(tables, "display", lambda data, raw: seen.update(data))
    own = "1 a code (92k parameters, 5 s)  10–20  25  34  25"
    assert shown(1) == [own]
    assert shown(2) == [own, "2 looking up (92k parameters, 5 s)  50  25  34  25"]
    assert shown(2, controls=True) == shown(2)
    assert shown(1, controls=True)[1].startswith("– a <b> (92k parameters, 8,000 steps, 5 s)  ")
    assert (
        "<td>\u2060–\u2060 a &lt;b&gt; (92k parameters, 8,000 steps, 5 s)</td>" in seen["text/html"]
    )
    with pytest.raises(ValueError, match=re.escape("chapter must be one of [1, 2], got 3")):
        results_so_far(3)


def test_a_row_is_found_by_its_name(store):
    found = stored("a code")
    assert found.spread("exact") == (0.1, 0.2)
    assert (found.lr, found.tried, found.seconds) == (0.01, {0.01: 0.2, 0.02: 0.1}, 5.0)
    with pytest.raises(ValueError, match="one of a code, a <b>, looking up, got 'no such'"):
        stored("no such")


@pytest.mark.parametrize(
    ("exact", "holds"), [(0.04, False), (0.06, True), (0.24, True), (0.26, False)]
)
def test_a_run_agrees_within_the_margin(store, exact, holds):
    found = dataclasses.replace(stored("a code").judged[0], exact=exact)
    assert stored("a code").agrees(found, margin=0.05) is holds


def test_a_model_that_has_learnt_nothing_agrees_with_none_that_has(store):
    nothing = dataclasses.replace(stored("a code").judged[0], exact=0.0)
    assert not stored("a code").agrees(nothing, margin=1.0)


def test_what_is_stored_is_complete():
    rows = results.all_stored()
    assert len({row.name for row in rows}) == len(rows) > 30
    for chapter in {row.chapter for row in rows}:
        controls = [row.control for row in rows if row.chapter == chapter]
        assert controls == [False] + [True] * (len(controls) - 1)
    for row in rows:
        runs = row.finals
        assert [run.seed for run in runs] == list(range(5)), row.name
        assert all(run.seconds > 0 and set(run.curve[row.n_steps]) == set(FIELDS) for run in runs)
        assert row.n_parameters > 0


def test_the_rate_that_is_stored_is_the_best_and_no_edge_of_the_sweep():
    for row in results.all_stored():
        assert row.tried[row.lr] == max(row.tried.values()), row.name
        if row.tried[row.lr] > 0.05:  # else no rate helps
            assert min(row.tried) < row.lr < max(row.tried), row.name


# The model of chapter 9


@pytest.fixture
def weights(tmp_path, monkeypatch):
    """Stores models for the time of a test."""
    module = sys.modules["transformer_book.experiments.translator.trained_models"]
    monkeypatch.setattr(module, "WEIGHTS", tmp_path / "weights")
    return module


def small_model(seed):
    torch.manual_seed(seed)
    return Transformer(TransformerConfig.tiny(7, 9, d_ff=8, max_len=16))


def test_a_stored_model_comes_back_ready_to_translate(weights):
    model = small_model(1)
    weights.store_trained(model, 3)
    found = weights.trained(3)
    assert found.config == model.config
    assert not found.training
    assert next(found.parameters()).device.type == default_device().type
    for new, old in zip(found.cpu().parameters(), model.parameters(), strict=True):
        assert new.dtype == torch.float32
        assert torch.equal(new, old.half().float())


def test_ten_models_are_stored_and_translate_as_their_row_says():
    (path,) = (path for path in CHAPTERS if path.name.startswith("09_"))
    make, _ = next(iter(entries_of(path).values()))
    found = {seed: translator.trained(seed) for seed in range(10)}
    assert all(model.config == make().config for model in found.values())
    assert len({found[seed].output.weight.sum().item() for seed in found}) == 10
    own = next(row for row in results.all_stored() if row.chapter == 9 and not row.control)
    for seed in (0, 1, 9):
        judged = judge(found[seed])
        assert own.agrees(judged, margin=0.01), seed
        assert judged.both_right > 0.97


# The experiment


@pytest.fixture
def trained(monkeypatch):
    """Training takes no time, and who judges tells the test from the sentences to tune by."""
    calls = []

    def train(model, *, lr, seed, n_steps):
        calls.append((lr, seed, n_steps))

    def judged(model, pairs):
        return Judged(0.9 if pairs is corpus().tuning else 0.75, 0.0, 1.0, 0.0, 0.0)

    for module in (experiment, teaching):
        monkeypatch.setattr(module, "train_translator", train)
    monkeypatch.setattr(teaching, "judge", judged)
    return calls


def test_arms_are_what_the_chapter_calls_translators(tmp_path):
    model = "translators = {'three': lambda: nn.Linear(2, 2), 'slow': lambda: Seq2Seq(5, 5)}"
    path = notebook(
        tmp_path / "03_a_chapter.ipynb",
        imports="from torch import nn\nfrom transformer.recurrent import Seq2Seq",
        another="raise SystemExit",
        translator_model=model,
        translator_model_controls="translators |= {'long': (lambda: nn.Linear(1, 1), 8000)}",
    )
    without = notebook(tmp_path / "07_another.ipynb", imports="raise SystemExit")
    arms = arms_of([path, without])
    assert {name: arm.steps for name, arm in arms.items()} == {
        "three": (800,), "slow": (800,), "long": (8000,)
    }  # fmt: skip
    assert [arm.about["control"] for arm in arms.values()] == [False, True, True]
    assert {arm.chapter for arm in arms.values()} == {3}
    assert arms["three"].rates == experiment.RATES
    assert arms["slow"].rates == experiment.RECURRENT_RATES


def test_the_sweep_is_judged_on_the_sentences_to_tune_by_and_the_rest_on_the_test(trained):
    for sweep, right in ((True, 0.9), (False, 0.75)):
        plan = Plan(0.008, 100, (800,), sweep=sweep)
        assert experiment.learn(Counts(), plan, 800)["exact"] == right
        assert teaching.taught(Counts(), plan, 800) == {"exact": right}
    assert trained == [(0.008, 100, 800)] * 4


def test_the_model_of_chapter_9_is_kept(trained, weights, store, tmp_path):
    store(row(9, "own"))
    path = notebook(
        tmp_path / "09_a_chapter.ipynb",
        imports="from tests.book.test_translator import small_model",
        translator_model="translators = {'own': (lambda: small_model(0), 900)}",
    )
    (arm,) = experiment.kept_arm(path).values()
    assert (arm.rates, arm.steps) == ((0.01,), (900,))  # the rate that is stored
    run = run_one("own", arm, Plan(0.01, 7, (900,), sweep=False))
    assert run.curve[900]["exact"] == 0.75
    assert torch.equal(weights.trained(7).output.weight, small_model(0).output.weight.half())
    with pytest.raises(ValueError, match="make must make a Transformer, got a Linear"):
        experiment.learn_and_keep(nn.Linear(1, 1), Plan(0.1, 0, (9,), sweep=False), 9)


def test_a_chapter_that_fills_no_translators_is_named(tmp_path):
    path = notebook(tmp_path / "03_empty.ipynb", translator_model="translators = {}")
    with pytest.raises(ValueError, match=r"03_empty\.ipynb must fill translators"):
        arms_of([path])
