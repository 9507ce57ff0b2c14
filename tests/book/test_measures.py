"""What experiments choose, count and average: small examples in which a wrong choice shows.

Those of the translators, the family, chapter 11, 16 and 17 stand in files of their own.
"""

import builtins
import math
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from tests.package.unchecked import unchecked
from transformer.cache import Memory
from transformer.config import TransformerConfig
from transformer.family import DecoderOnly, FamilyConfig
from transformer.model import Transformer
from transformer.multihead import MultiHeadAttention, record_attention
from transformer_book import descent
from transformer_book.experiments import (
    Cells,
    Plan,
    chapter_00,
    chapter_02,
    chapter_03,
    chapter_04,
    chapter_05,
    chapter_06,
    chapter_07,
    chapter_08,
    chapter_09,
    chapter_10,
    chapter_13,
    chapter_14,
)
from transformer_book.experiments import chapter_12_article as article
from transformer_book.experiments import chapter_14_floor as floor
from transformer_book.experiments import chapter_14_smollm2 as smollm2
from transformer_book.experiments.catalogue import catalogue
from transformer_book.experiments.chapter_01 import Narrow
from transformer_book.experiments.chapter_07 import RATES, OverBatch, Rates
from transformer_book.experiments.chapter_15 import experts
from transformer_book.experiments.chapter_18 import parity, rewards
from transformer_book.experiments.running import run_one
from transformer_book.experiments.translator.data import Corpus, corpus


@pytest.fixture(scope="module", autouse=True)
def corpus_made_unchecked():
    """And toys stand for models."""
    with unchecked():
        assert corpus().examples
        yield


def reported(*steps, seed=0):
    return Plan(0.01, seed, steps, sweep=False)


# A rate is chosen on nothing that is reported

# Whose sweep is judged on what is reported, too. What is learnt by heart is asked itself; the
# others' questions are made up, of one seed for all runs, whose starts differ.
NO_OTHERS = (
    "by_heart",
    "experts",
    "lengths",
    "blocks",
    "scaling",
    "scaling_back",
    "rewards",
    "looking_back",
    "experts_in_text",
)
OWN_TESTS = ("real_sentences", "caches", "thinking")
SAME_RECIPES = ("translators", "recurrence", "elsewhere", "orders", "heads")  # as others here


class Told(torch.Generator):
    """Tells its seeds."""

    seeds: set[int] = set()  # noqa: RUF012

    def manual_seed(self, seed):
        self.seeds.add(seed)
        return super().manual_seed(seed)


def one_arm_of_each_recipe(known):
    arms = [arm for arm in known.arms().values() if known._has_sweep(arm)]
    recipes = {getattr(each.curve or each.learn, "func", each.learn): each for each in arms}
    return recipes.values()


SWEPT = [name for name in catalogue() if name not in NO_OTHERS + OWN_TESTS + SAME_RECIPES]


@pytest.fixture
def one_step(monkeypatch):
    """Of a training by :func:`minimise`, or by a loop of its own; and few sentences are judged."""

    def once(n, *rest):
        return builtins.range(n, *rest) if rest else builtins.range(min(n, 1))

    for module in (descent, chapter_08):
        monkeypatch.setattr(module, "range", once, raising=False)
    few = [pair for pair in corpus().tuning if len(pair.source) == 8][:4]
    monkeypatch.setitem(vars(corpus()), "tuning", few)
    monkeypatch.setitem(vars(corpus()), "mirrored", corpus().mirrored[:4])
    return once


def told(seed):
    if seed != torch.initial_seed():  # which a start may be drawn from once more
        Told().manual_seed(seed)


@pytest.fixture
def pages(monkeypatch):
    """The chapters' cells that have run."""
    found, names = [], Cells.names
    monkeypatch.setattr(Cells, "names", lambda self: found.append(names(self)) or found[-1])
    return found


@pytest.mark.parametrize("name", SWEPT)
def test_a_sweep_meets_nothing_that_is_reported(name, one_step, pages, monkeypatch):
    def met(_):
        raise AssertionError("the sweep has met the test")

    for arm in one_arm_of_each_recipe(catalogue()[name]):
        for cell in pages:
            for function in vars(cell).values():
                if "torch" in getattr(function, "__globals__", {}):
                    monkeypatch.setitem(function.__globals__, "range", one_step)
                    break
        seeds = []
        for seed, sweep in ((100, True), (0, False)):
            Told.seeds = set()
            with monkeypatch.context() as patch:
                patch.setattr(torch, "Generator", Told)
                patch.setattr(torch, "manual_seed", told)
                if sweep:
                    patch.setattr(Corpus, "test", property(met), raising=False)
                    for cell in pages:
                        patch.setattr(cell, "test_rows", None, raising=False)
                elif "test" in vars(corpus()):
                    patch.setitem(vars(corpus()), "test", corpus().tuning)
                run_one("one", arm, Plan(0.001, seed, (50,), sweep=sweep))
            seeds.append(Told.seeds)
        assert not seeds[0] & seeds[1]


# What is stored of models that need no training is measured again

AGAIN = {  # arms, steps, and parts of chapter 10's measures that need no wide search
    "reach": (("code", "attention", "equal weights"), 0),
    "code": (("one code vector",), 0),
    "agreement": (("GPT: the verb after its noun", "BERT: the noun before its verb"), 0),
    "beams": (("2,000 steps",), 2000),
    "inside": (("pre-LN",), 2000),
    "article": (("pre-LN",), 2000),
}


@pytest.mark.parametrize("name", AGAIN)
def test_what_is_stored_is_what_is_measured_now(name, monkeypatch):
    monkeypatch.setattr(chapter_10, "WIDTHS", (1, 4))
    known, (names, at) = catalogue()[name], AGAIN[name]
    arms = known.arms()
    for arm in names:
        stored = known.finals(arm)[0]
        now = run_one(arm, arms[arm], Plan(stored.lr, stored.seed, (at,), sweep=False)).curve[at]
        assert len(now) > len(stored.curve[at]) / 2
        assert now == pytest.approx({n: stored.curve[at][n] for n in now}, rel=0.02, abs=0.01)


# By hand


def test_with_equal_shares_a_word_takes_the_same_from_all_that_it_sees():
    config = TransformerConfig(9, 9, d_model=4, n_heads=2, d_ff=8)
    for make, is_equal in ((chapter_00.with_equal_shares, True), (Transformer, False)):
        model = make(config).eval()
        with record_attention(model) as maps:
            model(torch.tensor([[4, 5, 6]]), torch.tensor([[1, 4]]))
        for weights in maps.values():
            seen = (weights > 0).float()
            assert torch.allclose(weights, seen / seen.sum(dim=-1, keepdim=True)) == is_equal


def test_a_narrow_neck_lets_64_numbers_of_h_through_and_64_of_c():
    wide = Narrow(9, 9, d_model=4, hidden_size=256)
    (code,) = wide.encode(torch.tensor([[5, 6, 2]])).vectors.flatten(1)
    assert code.nonzero().flatten().tolist() == [*range(64), *range(256, 320)]


def test_what_a_writer_sees_is_not_what_it_knows_alone():
    class Peeks(nn.Module):
        """Knows the next word where it is in view, else nothing."""

        def forward(self, src, tgt):
            following = nn.functional.pad(tgt[:, 1:], (0, 1))
            known = nn.functional.one_hot(following, len(corpus().french)).float()
            return 100 * known * (following > 3)[..., None]

    found = chapter_03.losses_of(Peeks(), corpus().tuning)
    assert found["in_view"] < 0.35 * found["alone"]
    assert found["alone"] == pytest.approx(torch.tensor(len(corpus().french)).log().item())


def test_the_loss_that_is_told_is_the_mean_of_the_last_fifty(monkeypatch):
    for module in (chapter_04, chapter_06):
        monkeypatch.setattr(module, "train_translator", lambda *_, **__: [9.0] * 10 + [2.0] * 50)
        monkeypatch.setattr(module, "judge", lambda *_: SimpleNamespace(exact=0.5))
    for learn in (chapter_04.learn_with_masks, chapter_06.learn_with_leak):
        assert learn(nn.Linear(1, 1), reported(60), 60) == {"loss": 2.0, "exact": 0.5}


def test_what_is_made_of_sure_and_wrong_answers(monkeypatch):
    class Five(nn.Module):
        """Sure and right, sure and astray, unsure, astray and right by luck, sure and wrong."""

        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.zeros(1))

        def scores(self, symbols, question):
            return torch.tensor([[9.0, 0], [0, 9.0], [1.0, 0], [0, 9.0], [9.0, 0]])

        def forward(self, *given):
            return torch.eye(2)[[0, 1, 1, 0, 1]]

    def batch(g, n=32):
        symbols, numbers = torch.tensor([[4, 5]] * 5), torch.zeros(5, 2)
        return symbols, numbers, torch.full((5, 1), 4), torch.zeros(5).long()

    monkeypatch.setattr(chapter_04, "page", lambda: SimpleNamespace(recall_batch=batch))
    found = chapter_04.learn(Five(), reported(0))[0]
    wanted = {"right": 0.4, "sure": 0.8, "sure and wrong": 0.2}
    assert found == pytest.approx(found | wanted)


@pytest.mark.parametrize(
    ("places", "wanted"),
    [
        ((1,), {"on named": 1, "on missed": 0, "moves": 0}),
        ((1, 1), {"own": 1, "shared": 1}),
        ((1, -1), {"own": 1, "shared": 0}),
    ],
)
def test_where_heads_on_a_circle_look(places, wanted):
    def looking(x):  # each head has twelve numbers, which say where it looks
        parts = [1000 * x.roll(place, dims=-1) for place in places]
        return torch.cat(parts, dim=-1)

    layer = SimpleNamespace(W_q=looking, W_k=lambda x: x.repeat(1, 1, len(places)))
    layer.n_heads = len(places)
    words = SimpleNamespace(weight=torch.eye(12))
    model = SimpleNamespace(layer=layer, symbol=lambda x: torch.zeros(*x.shape, 12), place=words)
    right = torch.tensor([0.2, 0.9])  # left, right
    found = chapter_05.looks_of(model, torch.zeros(3, 12).long(), right)
    assert found == pytest.approx(wanted, abs=1e-3)


def test_where_copies_are_right(monkeypatch):
    def accuracy(model, length=24, mask=None, back=3):
        hidden = 0 if mask is None else (~mask).sum().item()
        return torch.arange(3.0, length) + 1000 * hidden  # its place, of each answer

    def ahead(length):
        return torch.arange(length) - torch.arange(length)[:, None]

    cell = SimpleNamespace(
        accuracy=accuracy, ahead=ahead, train=lambda *_: None, sequences=None,
        begun_late=lambda model, start: torch.tensor(float(start**2)),
        in_window=lambda model, length: torch.tensor(float(length)),
    )  # fmt: skip
    monkeypatch.setattr(chapter_06, "page", lambda: cell)
    found = chapter_06.learn_to_copy(None, reported(5), 5)
    assert found == {"right": 13, "beyond": (24 + 95) / 2, "window": 192}
    found = chapter_06.learn_and_hide(None, reported(5), 5)
    assert (found["right"], found["at 96"], found["flat top"]) == (13, 49, (42 + 59) / 2)
    assert found["late"] == 2688  # the mean of all starts; the best of them has 72² = 5184

    def n_hidden(hides):  # of queries and keys, by hand
        return sum(hides(k - q) for q in range(96) for k in range(96))

    four = (54, 60, -60, -66)
    hidden = {
        "no four": n_hidden(lambda d: d in four),
        "only four": n_hidden(lambda d: abs(d) > 23 and d not in four),
        "no others": n_hidden(lambda d: abs(d) in (45, 75)),
        "to 50": n_hidden(lambda d: abs(d) > 50),
    }
    assert {name: (found[name] - 49) / 1000 for name in hidden} == hidden


def test_turns_are_a_share_of_squares_and_point_at_new_places(monkeypatch):
    class Model(nn.Module):
        def __init__(self, worth):
            super().__init__()
            self.worth, self.positions = worth, nn.Module()
            self.positions.register_buffer("table", torch.eye(30, 32))

    cell = SimpleNamespace(
        train=lambda *_: None, sequences=None, ahead=None,
        place_maps=lambda model: torch.tensor([3.0, 4.0]),
        turn_part=lambda maps: torch.tensor([3.0, 0.0]),
        only_turns=lambda model: Model(10.0),
        points_back=lambda maps: torch.cat([torch.ones(24), maps.sum().expand(72)]),
        begun_late=lambda model, start: torch.tensor(start * model.worth),
        accuracy=lambda model, length: model.worth * (torch.arange(3, length) > 23).float(),
    )  # fmt: skip
    monkeypatch.setattr(chapter_06, "page", lambda: cell)
    found = chapter_06.learn_and_turn(Model(1.0), reported(5), 5)
    assert found == pytest.approx(
        {"share": 9 / 25, "points": 7, "turns point": 3, "late": 48, "turned late": 480,
         "beyond": 1, "turned beyond": 10, "eight": 48}
    )  # fmt: skip


def test_places_that_are_turned_begin_elsewhere_and_stay_neighbours():
    cell = SimpleNamespace(symbol=lambda x: torch.zeros(*x.shape, 1))
    cell.place = SimpleNamespace(weight=torch.arange(12.0)[:, None])
    torch.manual_seed(0)
    rows = [chapter_05.turned(cell).vectors(torch.zeros(1, 12))[0, :, 0] for _ in range(9)]
    assert len({row[0].item() for row in rows}) > 3
    assert all((row.diff() % 12 == 1).all() for row in rows)


def test_distances_are_foretold_by_the_clocks(monkeypatch):
    cell = SimpleNamespace(alike=lambda u, d_k, base: -(u - 40).abs().float())
    monkeypatch.setattr(chapter_06, "page", lambda: cell)
    assert chapter_06.predicted(3, 16, 10_000)[0] == 37
    assert chapter_06.predicted(20, 16, 10_000)[0] == 24  # 20 is none that is new


def test_the_best_rate_of_a_wiring_has_the_lowest_mean(monkeypatch):
    ends = {0.003: (1.0, 1.2), 0.01: (0.1, 3.0), 0.03: (0.0, None)}
    stacks = Rates(path=Path(), question="", measure="last", define=dict, lower_is_better=True)
    runs = {
        f"add, {rate:g}": [SimpleNamespace(n_steps=9, curve={9: {"last": x}}) for x in ends[rate]]
        for rate in RATES
    }
    monkeypatch.setattr(Rates, "finals", lambda self, arm: runs[arm])
    assert stacks.at("add", 0.03) == (0.0, float("inf"))
    assert stacks.at_best("add") == (1.0, 1.2)


def test_batch_norm_takes_each_feature_over_all_words_of_all_sentences():
    x = torch.arange(24.0).square().view(2, 3, 4)  # sentences, words, features
    wanted = (x - x.mean(dim=(0, 1))) / x.std(dim=(0, 1), correction=0)
    assert torch.allclose(OverBatch(4)(x), wanted, atol=1e-3)


def test_what_is_said_backwards_is_judged(monkeypatch):
    words, answers = torch.tensor([[0, 1, 2, 3]]), []
    cell = SimpleNamespace(
        train=lambda *_: [4.0, 3.0, 1.0], backwards=None, at_end=lambda losses: losses[-1],
        sentences=lambda n: answers.append(n) or words,
    )  # fmt: skip

    class Says(nn.Module):
        def __init__(self, turn):
            super().__init__()
            self.turn = turn

        def forward(self, x):
            return 100 * nn.functional.one_hot(self.turn(x), 6).float()

    monkeypatch.setattr(chapter_07, "page", lambda: cell)
    for turn, low in ((lambda x: x.flip(1), True), (lambda x: x, False)):
        found = chapter_07.learn(Says(turn), reported(3), 3)
        assert (found["loss"] < 1e-5, found["last"], found["first"]) == (low, 1.0, 4.0)


def test_tables_take_steps_so_many_times_as_large(one_step):
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.src, self.tgt = (nn.Embedding(len(corpus().french), 400) for _ in range(2))
            self.src_embedding, self.tgt_embedding = (
                SimpleNamespace(tokens=x) for x in (self.src, self.tgt)
            )
            self.output = nn.Linear(400, 400)

        def forward(self, src, tgt):
            return self.output(self.tgt(tgt) + self.src(src).mean(dim=1, keepdim=True))

    model = Two()
    before = [p.detach().clone() for p in model.parameters()]
    chapter_08.train(model, lr=0.5, seed=0, n_steps=50, times=8.0)
    moved = [
        (p - old).abs().max().item() for p, old in zip(model.parameters(), before, strict=True)
    ]
    assert moved == pytest.approx([0.08, 0.08, 0.01, 0.01], rel=0.05)


def test_what_mistakes_do_to_a_loss(monkeypatch):
    model = nn.Linear(2, 1, bias=False)

    def loop(model, batches, n_steps, rate, **mistake):
        model.weight.data += torch.tensor([0.5, -1.5])
        return [5.0] * 40 + [1.0] * 8 + [3.0] * 32 + [4.0] * 20

    cell = SimpleNamespace(loop=loop, first_tokens=lambda *_: "<bos> <bos>")
    monkeypatch.setattr(chapter_09, "loss_on", lambda model, pairs: float(len(pairs)))
    monkeypatch.setattr(chapter_09, "page", lambda: cell)
    found = chapter_09.learn_with_mistakes(model, reported(100), 100)
    assert found == {"last": 4.0, "lowest": 1.0, "test": 300.0, "moved": 1.0, "bos": 1.0}


def test_a_rate_that_rises_and_one_that_does_not(monkeypatch):
    taken = []

    def loop(model, batches, n_steps, rate, **how):
        taken.append([round(rate(step) / 0.01, 2) for step in range(n_steps)])

    monkeypatch.setattr(chapter_09, "page", lambda: SimpleNamespace(loop=loop))
    monkeypatch.setattr(chapter_09, "loss_on", lambda model, pairs: float(len(pairs)))
    for warm_up in (4, 0):
        found = chapter_09.learn_rising(nn.Linear(1, 1), reported(6), 6, warm_up=warm_up)
        assert found == {"loss": 600.0}  # the whole test
    assert taken == [[0.25, 0.5, 0.75, 1, 1, 1], [1] * 6]


def test_a_schedule_is_a_share_of_the_highest_rate(monkeypatch):
    taken = []

    def loop(model, batches, n_steps, rate):
        taken.extend(round(rate(step) / 0.01, 2) for step in range(n_steps))

    monkeypatch.setattr(
        chapter_09, "evaluate_loss", lambda model, batches: float(len(batches[0].src))
    )
    monkeypatch.setattr(
        chapter_09, "judge", lambda model, pairs: SimpleNamespace(exact=float(len(pairs)))
    )
    cell = SimpleNamespace(loop=loop, falling=lambda step, n_steps: 1 - step / n_steps)
    monkeypatch.setattr(chapter_09, "page", lambda: cell)
    found = chapter_09.learn_shape_longer(nn.Linear(1, 1), reported(4), 4, shape="falling")
    assert found == {"loss": 600.0, "exact": 600}  # the whole test
    assert taken == [1, 0.75, 0.5, 0.25]


def test_zeros_are_counted_that_are_none_in_full(monkeypatch):
    own, plain = nn.Linear(1, 1), nn.Linear(1, 1)
    gradients = {own: torch.tensor([0.0, 0, 1, 2, 3]), plain: torch.tensor([0.0, 1, 1, 2, 3])}
    monkeypatch.setattr(chapter_13, "gradients", gradients.__getitem__)
    assert chapter_13.zeros(own, plain) == 0.25


def test_what_is_copied_with_looks_forbidden():
    """A model that copies what followed a word last time, by looks one and seven words back."""
    n = chapter_14.N

    def model(text, closed=None):
        logits = torch.zeros(*text.shape, 40)
        for row, words in enumerate(text.tolist()):
            for t in range(text.size(1)):
                last = [i for i in range(t) if words[i] == words[t]]
                if last:
                    logits[row, t, words[last[-1] + 1]] = 1
        if closed is not None and any(one[2 * n - 2, 2 * n - 3] for one in closed[:1]):
            logits[:] = 0
        if closed is not None and any(one[2 * n - 2, n - 1] for one in closed[1:]):
            logits[:] = 0
        return logits

    def twice(n, rows):
        words = 1 + torch.rand(rows, 30).argsort(dim=1)[:, :n]
        return torch.cat([words, words], dim=1)

    cell = SimpleNamespace(twice=twice)
    found = chapter_14.looks_closed(cell, model)
    assert found == {
        "free": 1,
        "no note": 0,
        "no note, beside": 1,
        "no look": 0,
        "no look, beside": 1,
    }
    near = chapter_14.one_again(cell, lambda text, closed=None: model(text))
    assert (near["near"], near["far"], near["moved"]) == (1, 1, 0)


def test_a_real_model_is_asked_for_the_second_copy_alone():
    text, logits = torch.tensor([[5, 6, 7, 5, 6, 7]]), torch.zeros(1, 6, 10)
    for place in (2, 3, 4):  # at 2 it says that the text begins again, which nobody asks
        logits[0, place, text[0, place + 1]] = 50
    told = smollm2.second_copy(logits, text)
    assert told == pytest.approx({"first": 2.3026, "second": 0, "right": 1}, abs=1e-4)
    logits[0, 3] = torch.arange(10) == 5  # what follows the first 7
    assert smollm2.second_copy(logits, text)["right"] == 0.5


def test_heads_that_look_behind_the_same_word_are_found_and_closed(monkeypatch):
    n = 3
    model = DecoderOnly(
        FamilyConfig.modern(12, d_model=8, n_heads=2, n_layers=2, d_ff=8, max_len=8)
    ).eval()
    weights = torch.zeros(2, 1, 2, 2 * n, 2 * n)  # of two layers
    weights[1, 0, 0] = smollm2.back(2 * n, n - 1)
    weights[1, 0, 0, n - 1, 0] = 0  # where nothing has come before, it isn't asked for
    weights[0, 0, 1] = smollm2.back(2 * n, 1)  # a note
    record = SimpleNamespace(values=lambda: weights)
    monkeypatch.setattr(smollm2, "record_attention", lambda model: nullcontext(record))
    text = torch.tensor([[4, 5, 6, 4, 5, 6]])
    scores = smollm2.look_there(model, text)
    assert scores.tolist() == [[0, 0], [1, 0]]
    chosen = smollm2.heads_alone(scores, 1)
    closed = smollm2.changes(chosen, n)
    own, others = closed["the heads"], closed["all other heads"]
    assert [int(shut.sum()) for shut in own] == [0, 4]  # places 2 to 5 can look two back
    assert [int(shut.sum()) for shut in others] == [8, 4]
    assert own[1][0, 0, 3, 1]  # from the second 4 at the first 5
    assert not own[1][0, 1].any()
    assert closed["no note"][0][3, 2]
    assert closed["no look, beside"][0][3, 2]
    with torch.no_grad():
        free, shut = (smollm2.logits_of(model, text, closed[k]) for k in ("free", "the heads"))
        assert torch.allclose(free, model(text), atol=1e-6)
    assert not torch.allclose(free, shut)


def test_what_writes_the_same_line_costs_less(monkeypatch):
    class Tiny(floor.Traced):
        def line(self, language):
            first = self.choose("ab")
            return [first, self.choose(("x", "y", "y")[: 3 - (first == "b")])]

    monkeypatch.setattr(floor, "Traced", Tiny)
    prices = {told: floor.nats_of(told, 0) for told in ((0, 0), (0, 1), (1, 1))}
    wanted = {(0, 0): 1 / 6, (0, 1): 1 / 3, (1, 1): 1 / 4}
    assert prices == pytest.approx({told: -math.log(p) for told, p in wanted.items()})


def test_an_idle_expert_has_under_a_fortieth_of_the_words(monkeypatch):
    class Silent(nn.Module):
        feed_forward = SimpleNamespace(counts=torch.tensor([381, 10, 9]))

        def forward(self, pairs):
            return torch.zeros(len(pairs), experts.ANSWERS)

    monkeypatch.setattr(experts, "minimise", lambda *_, **__: None)
    assert experts.learn(Silent(), reported(1), 1)["idle"] == 1


class AllAsk(nn.Module):
    """Every word hears the gender of every other; the article is that of the one row read."""

    def __init__(self, gender, reads, articles):
        super().__init__()
        self.looks = nn.ModuleList(MultiHeadAttention(4, 4) for _ in range(6))
        self.gender, self.reads, self.la = gender, reads, articles[1]

    def encode(self, src):
        v = self.gender[src][:, None, :, None].expand(-1, 4, -1, 1)
        mask = torch.ones(len(src), 1, 1, src.size(1)) > 0
        nothing = torch.zeros_like(v)
        return Memory(self.looks[0].attend(nothing, nothing, v, mask)[:, 0], mask)

    def decode(self, tgt, memory):
        logits = torch.zeros(*tgt.shape, len(corpus().french))
        seen = memory.mask[:, 0, :, self.reads]
        logits[..., self.la] = memory.vectors[:, self.reads] * seen
        return logits


def test_an_article_follows_the_row_that_is_read_and_a_look_that_is_forbidden_is_missed():
    page = article.page()
    words = {"dog": -1.0, "cat": -1.0, "cow": 1.0}
    gender = torch.zeros(len(page.english))
    gender[page.english.encode(" ".join(words))] = torch.tensor([*words.values()])
    three = [n for n, noun in enumerate(article.ASKED) if noun.english[0] in words]
    names = "follows the", "follows noun", "no look", "noun hidden", "both closed"
    for one in article.rounds():
        assert len(one.src.unique(dim=0)) == 32
        few = one._replace(src=one.src[three], tgt=one.tgt[three], feminine=one.feminine[three])
        for reads, wanted in (
            (one.the, (1, 0, 0.5, 1, 0.5)),
            (one.the + 1, (0, 1, 1, 0.5, 0.5)),
            (one.src.size(1) - 1, (0, 0, 1, 1, 1)),  # <eos> has asked, too
        ):
            found = article.deciders(AllAsk(gender, reads, page.articles), page, few)
            assert found == dict(zip(names, wanted, strict=True))


def test_a_side_is_made_by_some_nouns_and_asked_of_others():
    feminine = torch.arange(32) < 16
    by_heart = torch.eye(32).expand(4, -1, -1)  # each noun has a direction of its own
    assert article.on_its_side(by_heart, feminine) == 0.5  # 1 if those that made it were asked
    moved = torch.cat([by_heart, 1.0 * feminine[:, None].expand(4, -1, -1)], dim=-1)
    assert article.on_its_side(moved, feminine) == 1


def test_how_many_beams_miss_the_likeliest_sentence(monkeypatch):
    log_p, best = {4: -3.0, 32: -2.0}, iter([-2.0] * 15 + [-1.0] * 5)

    def search(*_, beam_size, **__):
        written = torch.ones(20, 3, dtype=torch.long)
        return SimpleNamespace(best=lambda: (written, torch.full((20,), log_p[beam_size])))

    monkeypatch.setattr(chapter_10, "search_beams", search)
    monkeypatch.setattr(chapter_10, "likeliest", lambda *_: (next(best), [1, 5, 2]))
    found = chapter_10.of_exact_search(None, SimpleNamespace(src=torch.ones(20, 4).long()))
    assert list(found.values()) == [1, 0.25, 3, 2]  # missed by 4, by 32; tokens, of the likeliest


def test_what_beams_lose_and_how_long_they_take_is_counted_beside_greedy_decoding(monkeypatch):
    class Model(nn.Module):
        tgt_embedding = nn.Identity()

        def forward(self, src, tgt):
            return torch.zeros(4, 2, 9)

    model, labels = Model(), torch.tensor([[5, 2]] * 4)

    def search(*_, beam_size, early_stopping, **__):
        right = [0, 1] if beam_size == 1 else [2] if early_stopping else [0, 1, 2]
        written = torch.tensor([[5 if i in right else 6, 2] for i in range(4)])
        for n in (4, 4, 2) if early_stopping else (4, 4):  # sentences that go on
            model.tgt_embedding(torch.zeros(beam_size * n, 1))
        return SimpleNamespace(best=lambda: (written, torch.zeros(4)))

    monkeypatch.setattr(chapter_10, "WIDTHS", (1, 4))
    monkeypatch.setattr(chapter_10, "search_beams", search)
    test = SimpleNamespace(src=labels, labels=labels, inputs=(labels, labels))
    found = chapter_10.of_searching(model, test)
    for name, wanted in (("4, α = 0.6", (0, 1, 2)), ("4, α = 0.6, K ended", (2, 1, 2.5))):
        assert tuple(found[f"{what} {name}"] for what in ("lost", "gained", "steps")) == wanted


def test_the_parity_that_is_read_is_that_of_its_own_steps():
    def parities(text):
        """After each word 3 or 4, as the bits so far are even or odd."""
        odd = ((text == 2).cumsum(dim=1) % 2).long()
        return nn.functional.one_hot(3 + odd, 6).float()

    bits = torch.randint(2, (20, 10))
    for steps in (False, True):
        assert torch.equal(parity.answers_of(parities, bits, steps), bits.cumsum(dim=1) % 2)


def test_the_answer_is_the_word_after_the_first_so():
    so, end, even, odd = rewards.SO, rewards.END, 3, 4
    written = [[so, even, end], [odd, so, even], [so, odd, so], [even, even, even], [odd, odd, so]]
    parities = torch.tensor([[odd, even]] * 5)
    right = rewards.is_right(torch.tensor(written), parities).tolist()
    assert right == [True, True, False, False, False]
    better = rewards.less_the_mean(torch.tensor([[1.0, 0], [1, 1]]))
    assert better.tolist() == [[0.5, -0.5], [0, 0]]


def test_where_a_word_that_is_left_is_missed_on_that_side(unchecked):
    first = SimpleNamespace(
        alignment=lambda src, tgt: torch.eye(src.size(1))[torch.zeros_like(tgt)]
    )
    found = chapter_02.aligned(first)
    assert found["missed_right"] == 0 < found["missed_left"]


def test_a_rate_of_few_labels_is_chosen_on_rows_that_are_not_learnt_from(monkeypatch, unchecked):
    sets = [(torch.tensor([[i]]), torch.tensor([i])) for i in range(3)]
    page = SimpleNamespace(few=sets, test_rows=torch.tensor([[0]]), test_labels=torch.tensor([0]))
    monkeypatch.setattr(chapter_14, "task_page", lambda: page)

    def tuned_by_heart(_, plan, few, n_steps):
        return lambda rows: nn.functional.one_hot(few[1], 3)

    monkeypatch.setattr(chapter_14, "_tuned", tuned_by_heart)
    right = [chapter_14.tuned_right(None, Plan(1.0, 0, (1,), sweep=s), 1) for s in (True, False)]
    assert right == [0, 1 / 3]
