"""Chapter 17: every server writes what greedy decoding writes; what is measured of it, by hand."""

import random

import pytest
import torch

from transformer.decoding import greedy_decode
from transformer.family import DecoderOnly, FamilyConfig
from transformer_book.experiments import Plan
from transformer_book.experiments.chapter_17 import drafts as drafting
from transformer_book.experiments.chapter_17 import of_the_server, served
from transformer_book.experiments.chapter_17.clock import (
    PARTS,
    calls,
    clock,
    fitted,
    name_of,
    texts_of,
)
from transformer_book.experiments.chapter_17.measure import (
    LOADS,
    Bench,
    Watched,
    figures,
    percentile,
    rounded,
)
from transformer_book.experiments.chapter_18 import distilling, thinking
from transformer_book.experiments.chapter_18.thinking import Tries, chosen, half_of_all

EOS, VOCAB = 6, 40
SIZES = {"d_model": 32, "n_heads": 4, "n_layers": 2, "d_ff": 48, "max_len": 160}
KINDS = {
    "modern": FamilyConfig.modern(VOCAB, n_key_heads=2, **SIZES),
    "gpt2": FamilyConfig(VOCAB, **SIZES),
}
SERVERS = {
    "static": ("Pages", (4, 160), {"slots": 4, "policy": "static"}),
    "continuous": ("Pages", (4, 160), {"slots": 4}),
    "within a budget": ("Pages", (4, 160), {"slots": 4, "budget": 8}),
    "a budget under the slots": ("Pages", (4, 160), {"slots": 4, "budget": 2}),
    "pages": ("Pages", (40, 16), {"slots": 8}),
    "pages run out": ("Pages", (8, 16), {"slots": 8}),
    "pages run out, static": ("Pages", (8, 16), {"slots": 8, "policy": "static"}),
    "shared": ("SharedPages", (60, 16), {"slots": 8}),
    "shared, a budget, pages run out": ("SharedPages", (9, 16), {"slots": 8, "budget": 8}),
    "pages of one word": ("SharedPages", (300, 1), {"slots": 8}),
}


@pytest.fixture(scope="module")
def server():
    return of_the_server().names()


@pytest.fixture(scope="module", params=KINDS)
def model(request):
    """Of random weights, loud enough that what it writes does not repeat at once."""
    torch.manual_seed(0)
    made = DecoderOnly(KINDS[request.param]).double().eval()
    for block in made.blocks:
        for p in block.parameters():
            if p.dim() == 2:
                p.data *= 6
    return made


def users(server, n=16, prefix=()):
    g = random.Random(0)

    def prompt():
        return [*prefix, *(g.randrange(3, VOCAB) for _ in range(g.randrange(1, 40)))]

    return [
        server.Request(prompt(), arrival=0.002 * i, max_len=g.randrange(1, 45)) for i in range(n)
    ]


WRITTEN = {}  # by the model and its prompt: what greedy decoding writes


def greedy(model, request):
    key = model.config, tuple(request.prompt), request.max_len
    if key not in WRITTEN:
        WRITTEN[key] = _greedy(model, request)
    return WRITTEN[key]


def _greedy(model, request):
    prompt, first = torch.tensor([request.prompt[:-1]]).long(), torch.tensor(request.prompt[-1:])
    written = greedy_decode(model, prompt, bos_id=first, eos_id=EOS, max_len=request.max_len)
    return written[0].tolist()


class Steady:
    """An engine whose calls all take as long: the machine's speed doesn't say who meets whom."""

    def __init__(self, engine):
        self.engine, self.pages, self.met = engine, engine.pages, set()

    def step(self, batch):
        self.met |= {id(r) for r, _ in batch}
        return self.engine.step(batch)[0], 0.003


@pytest.mark.parametrize("name", SERVERS)
def test_every_server_writes_what_greedy_decoding_writes(name, model, server):
    kind, room, how = SERVERS[name]
    pages, thrown_out = getattr(server, kind)(*room), []
    engine, release = Steady(server.Engine(model, pages)), pages.release

    def watched(request):
        thrown_out.append(id(request) in engine.met and not request.has_ended(EOS))
        release(request)

    pages.release = watched
    requests = users(server, prefix=[7, 9, 11] * 12 if "shared" in name else ())
    server.serve(requests, engine, eos_id=EOS, **how)
    assert [r.answer for r in requests] == [greedy(model, r) for r in requests]
    assert any(thrown_out) or "run out" not in name
    assert all(len(r.times) == len(r.answer) for r in requests)
    assert pages.n_held == 0  # when all have gone
    assert sorted(pages.free) == list(range(pages.n))


def test_some_answers_end_by_themselves_and_words_differ(model, server):
    requests = users(server)
    server.serve(requests, server.Engine(model, server.Pages(4, 160)), slots=4, eos_id=EOS)
    assert sum(r.answer[-1] == EOS for r in requests) >= 3
    assert len({word for r in requests for word in r.answer}) > VOCAB / 2


def test_a_shared_beginning_is_read_once(model, server):
    requests, log = users(server, 10, prefix=[7, 9, 11] * 16), []  # 48 words, three pages
    engine = server.Engine(model, server.SharedPages(80, 16))
    server.serve(requests, engine, slots=1, eos_id=EOS, log=log)
    read = sum(n for _, _, batch, *_ in log for _, n in batch)
    assert read == sum(len(r.words) - 1 for r in requests) - 9 * 48


def test_of_a_prompt_that_is_known_whole_the_last_word_is_still_read(model, server):
    twins = [server.Request([5] + [7] * 31, max_len=9) for _ in range(2)]  # two full pages
    log, engine = [], server.Engine(model, server.SharedPages(20, 16))
    server.serve(twins, engine, slots=1, eos_id=EOS, log=log)
    assert [r.answer for r in twins] == [greedy(model, r) for r in twins]
    prompts = [n for _, _, batch, *_ in log for _, n in batch if n > 1]
    assert prompts == [32, 16]


def test_nobody_joins_a_static_batch(server):
    lengths, arrivals = (4, 9, 2), (0.0, 0.0, 1.5)
    requests = [
        server.Request([5], arrival=t, max_len=n) for n, t in zip(lengths, arrivals, strict=True)
    ]
    engine = server.Clockwork(server.Pages(3, 20), lambda texts: 1.0)
    server.serve(requests, engine, slots=3, policy="static")
    assert [r.times[0] for r in requests] == [1, 1, 10]  # the third slot stays empty


def test_pages_are_known_only_as_long_as_they_hold_their_words(server):
    pages = server.SharedPages(3, 2)
    first, other, third = (server.Request(words) for words in ([5, 6, 7], [8, 9, 4], [5, 6, 3]))
    assert pages.admit(first)
    first.n_kept = 3
    pages.was_read(first)
    pages.release(first)
    assert len(pages.free) == 3
    assert pages.admit(third)
    assert third.n_kept == 2  # "5 6" is still there
    pages.release(third)
    third.n_kept = 0
    assert pages.admit(other)
    assert pages.grow(other, 6)  # takes all three pages
    pages.release(other)
    assert pages.admit(third)
    assert third.n_kept == 0
    assert not pages.known


@pytest.mark.parametrize("n", [1, 3])
def test_a_draft_changes_no_word(n, model, server):
    torch.manual_seed(1)
    stranger = DecoderOnly(KINDS["gpt2"]).eval()
    for draft, kept_all in ((stranger, False), (model, True)):
        for request in users(server, 5):
            engines = [server.Engine(m, server.Pages(10, 32)) for m in (model, draft)]
            how = {"n": n, "max_len": request.max_len, "eos_id": EOS}
            answer, calls, made, kept = server.speculate(request.prompt, *engines, **how)
            assert answer == greedy(model, request)
            assert calls <= len(answer)
            assert (kept == made) if kept_all else (kept < made or calls == 1)


@pytest.mark.parametrize("n", [1, 4, 20])
def test_a_draft_guesses_nothing_beyond_the_end(n, model, server):
    longest = SIZES["max_len"]
    request = server.Request([3] * 100, max_len=longest - 100)
    engines = [server.Engine(m, server.Pages(10, 16)) for m in (model, model)]  # room for 160
    how = {"n": n, "max_len": request.max_len, "eos_id": None}
    answer, calls, made, kept = server.speculate(request.prompt, *engines, **how)
    alone = server.Request(request.prompt, max_len=request.max_len)
    server.serve([alone], server.Engine(model, server.Pages(10, 16)), slots=1)
    assert answer == alone.answer
    assert len(answer) == calls + kept  # a check adds the guesses that it keeps, and one word
    assert made == kept


def test_of_a_known_beginning_the_last_pages_are_overwritten_first(server):
    def served_words(order):
        pages, log = server.SharedPages(24, 16), []
        for which in order:
            beginning = [5 + which] * 256
            request = server.Request([*beginning, *range(20, 40)], max_len=2)
            engine = server.Clockwork(pages, lambda texts: 1.0)
            server.serve([request], engine, slots=1, log=log)
        return sum(n for _, _, batch, *_ in log for _, n in batch)

    # Two beginnings of 16 pages, and 24 pages: eight of the older one are still there.
    assert served_words([0, 1, 0, 1]) <= 4 * 277 - 2 * 6 * 16


@pytest.mark.parametrize("n_pages", [7, 8])
def test_an_ended_text_that_lost_its_pages_keeps_nobody_waiting(n_pages, model, server):
    lengths, prompts = (25, 2, 25), ([7, 8, 9, 10], [5, 8, 9, 10], [5, 8, 9, 11])
    requests = [server.Request(p, max_len=n) for p, n in zip(prompts, lengths, strict=True)]
    engine = Counted(server.Engine(model, server.Pages(n_pages, 4)), most=200)
    server.serve(requests, engine, slots=3, policy="static", budget=2, eos_id=None)
    assert [len(r.answer) for r in requests] == list(lengths)


class Counted:
    """An engine that gives up after so many calls."""

    def __init__(self, engine, most):
        self.engine, self.pages, self.left = engine, engine.pages, most

    def step(self, batch):
        self.left -= 1
        assert self.left >= 0, "the server never ends"
        return self.engine.step(batch)


def test_who_needs_more_pages_than_there_are_is_refused(model, server):
    engine = server.Engine(model, server.Pages(2, 16))
    with pytest.raises(ValueError, match="more pages than there are"):
        server.serve([server.Request([5] * 40)], engine, slots=2)


def test_a_request_without_a_word_is_refused(server):
    with pytest.raises(ValueError, match=r"prompt must hold a word, got \[\]"):
        server.Request([])


def test_pages_that_are_mixed_up_change_words(model, server):
    pages = server.Pages(40, 16)
    right = pages.kept
    pages.kept = lambda request, end: right(server.Request([5], table=request.table[::-1]), end)
    requests = users(server)
    server.serve(requests, server.Engine(model, pages), slots=8, eos_id=EOS)
    assert [r.answer for r in requests] != [greedy(model, r) for r in requests]


def test_calls_are_found_again_by_their_names():
    for texts in calls(long=True):
        assert sorted(texts_of(name_of(texts))) == sorted(texts)


def test_a_clock_is_fitted_to_calls_that_cost_what_it_says():
    parts = dict(zip(PARTS, (5e-4, 3e-4, 2e-6, 3e-7), strict=True))
    rows = [[2**i, 0.01 * 1.4**i] for i in range(11)]
    fit = {"products": rows} | parts
    seconds = clock(fit)
    # rows between two that were measured, a piece of a text, and two whole prompts
    assert seconds([(1, 96)] * 6) == pytest.approx(
        (rows[2][1] + rows[3][1]) / 2 + 6 * 5e-4 + 6 * 96 * (2e-6 + 3e-7)
    )
    pairs = 64 * 512 - 64 * 63 / 2
    piece = rows[6][1] + 5e-4 + 3e-4 + 512 * 2e-6 + pairs * 3e-7
    assert seconds([(64, 512)]) == pytest.approx(piece)
    both = rows[6][1] + 2 * 5e-4 + 64 * 2e-6 + 2 * (32 * 33 / 2) * 3e-7
    assert seconds([(32, 32), (32, 32)]) == pytest.approx(both)
    costs = {name_of(texts): [seconds(texts), 9.0, 9.0] for texts in calls(long=True)}
    found = fitted(costs)
    assert {name: found[name] for name in PARTS} == pytest.approx(parts, rel=0.01)
    assert [s for _, s in found["products"]] == pytest.approx([s for _, s in rows], rel=0.01)


def test_the_stored_clock_is_near_what_was_measured():
    for kind, costs in served()["costs"].items():
        fit = served()["clocks"][kind]
        assert all(fit[name] >= 0 for name in PARTS)
        shares = [clock(fit)(texts_of(name)) / best for name, (best, *_) in costs.items()]
        assert sum(0.8 < share < 1.25 for share in shares) > 0.85 * len(shares), kind


def test_figures_are_those_of_two_users_counted_by_hand(server):
    two = [server.Request([5] * 10, max_len=3), server.Request([5] * 4, 0.5, max_len=3)]
    seconds = lambda texts: 2.0 if any(n > 1 for n, _ in texts) else 1.0  # noqa: E731
    engine, log = server.Clockwork(server.Pages(2, 20), seconds), []
    server.serve(two, engine, slots=2, log=log)
    # 0-2 the first prompt; 2-4 its next word, and the second prompt; 4-5 a word of both; 5-6
    assert [r.times for r in two] == [[2.0, 4.0, 5.0], [4.0, 5.0, 6.0]]
    found = figures(two, log)
    assert (found["first_p50"], found["whole_p50"], found["whole_p95"]) == (3.5, 5.5, 5.5)
    assert found["tokens_per_s"] == pytest.approx(6 / 6)
    assert found["gap_max"] == 2.0
    assert found["held"] == pytest.approx((2 * 20 + 3 * 40 + 20) / 6)
    assert found["read_twice"] == 0
    twenty = [float(i) for i in range(20)]
    assert (percentile(twenty, 0.5), percentile(twenty, 0.95)) == (10, 19)


def test_of_twenty_users_each_figure_is_its_own(server):
    waits = [0.05 * (7 * i % 20 + 1) for i in range(20)]  # 0.05 to 1; the gaps are 0.01 to 0.2
    twenty = [server.Request([5], arrival=float(i), max_len=2) for i in range(20)]
    for r, wait in zip(twenty, waits, strict=True):
        r.words += [5, 5]
        r.times = [r.arrival + wait, r.arrival + 1.2 * wait]
    log = [(0.0, 1.0, [], 0, 0)]
    found = figures(twenty, log)
    wanted = {"first_p50": 0.55, "first_p95": 1.0, "whole_p50": 0.66, "whole_p95": 1.2}
    assert found == found | {k: pytest.approx(v) for k, v in wanted.items()}
    assert found["gap_p99"] == found["gap_max"] == pytest.approx(0.2)
    assert found["users_per_s"] == pytest.approx(20 / found_span(twenty))


def test_a_promise_is_kept_if_the_first_word_and_every_gap_keep_it(server):
    def kept(*waits):  # from the arrival to the first word, and from each word to the next
        user = server.Request([5], arrival=3.0)
        user.times = [3.0 + sum(waits[: i + 1]) for i in range(len(waits))]
        user.words += [5] * len(waits)
        return figures([user], [(0.0, 1.0, [], 0, 0)])["kept"]

    assert kept(0.9, 0.1, 0.15) == kept(0.9) == 1
    assert kept(1.1, 0.1, 0.1) == kept(0.1, 0.3, 0.1) == kept(0.1, 0.1, 0.3) == 0


def found_span(users):
    return max(r.times[-1] for r in users) - min(r.arrival for r in users)


def test_users_come_as_often_as_is_said_and_are_the_same_at_every_rate(server):
    bench = Bench(server, {}, small=False)
    slow, quick = (bench.users(2000, rate, 3) for rate in (2.0, 8.0))
    assert slow[-1].arrival == pytest.approx(2000 / 2, rel=0.1)
    assert quick[-1].arrival == pytest.approx(2000 / 8, rel=0.1)
    assert [(r.prompt, r.max_len) for r in slow] == [(r.prompt, r.max_len) for r in quick]
    assert len(bench.seeds) == 5  # as claims say of the loads and the budgets
    assert len(bench.few_seeds) == 3  # and of the others


def test_long_and_short_prompts_are_told_apart(server):
    """On a clock of a second a word, at a load that leaves each user alone."""
    bench = Bench(server, {}, small=True)
    bench.clocks = {"rooms": lambda texts: float(sum(n for n, _ in texts))}
    told = bench._budget(1e-6, 10**9, 0)
    assert told["first_long"] == 512
    assert told["first_short"] < 64


def test_the_models_seconds_are_held_against_the_clocks_call_by_call(server):
    class Slow:
        pages = None

        def step(self, batch):
            return [5] * len(batch), 3.0 if len(batch) == 1 else 8.0

    watched = Watched(Slow(), lambda texts: float(len(texts)))
    one, two = server.Request([5] * 9), server.Request([5] * 9)
    watched.step([(one, 1)])
    watched.step([(one, 1), (two, 1)])
    watched.step([(one, 1), (two, 4)])
    assert watched.shares() == {"step": (3 + 8) / 3, "prompt": 8 / 2}


def test_tables_are_made_again_from_the_clock_that_is_stored(server):
    """With as many draws as their claims say, five and three."""
    stored = served()
    bench, top = Bench(server, stored["clocks"], small=False), stored["loads"]["capacity"]
    assert bench.capacity(bench.clocks["rooms"]) == pytest.approx(top, rel=0.01)
    how = "static", LOADS["busy"] * top, bench.clocks["rooms"], 8, "unequal", 400
    found = {
        "budget": bench.spread(bench.seeds, bench._budget, 0.6 * top, 128),
        "static": bench.spread(bench.seeds, bench.policy, *how),
    }
    wanted = {
        "budget": stored["budgets"]["128"],
        "static": stored["loads"]["by_load"]["busy"]["static"],
    }
    for name, figures_of in wanted.items():
        for what, spread in rounded(found[name]).items():
            assert spread == pytest.approx(figures_of[what], rel=0.02), (name, what)


def test_a_shared_beginning_is_asked_at_a_load_that_is_busy_without(server, monkeypatch):
    asked, top = (
        [],
        {("Pages", False): 2.0, ("SharedPages", False): 5.0, ("SharedPages", True): 3.0},
    )

    def spread(bench, seeds, run, kind, named, rate):
        asked.append(rate)
        return {"users_per_s": [top[kind, named]]}

    monkeypatch.setattr(Bench, "spread", spread)
    Bench(server, {}, small=True).prefix()
    assert asked[3:] == [0.8 * 2.0] * 3


def test_a_name_before_what_is_shared_costs_all_of_it(server):
    bench = Bench(server, {}, small=True)
    bench.clocks = {"pages": lambda texts: 1.0}
    found = [bench._prefix("SharedPages", named, 1e-6, 0)["found"] for named in (True, False)]
    assert found[0] == 0
    assert 0.7 < found[1] < 0.9
    assert bench._prefix("Pages", False, 1e-6, 0)["found"] == 0


def distribution(accept, p, q, monkeypatch):
    """Of the first word that a check of one guess adds, exactly: p and q are twentieths."""
    drawn, found = [], torch.zeros(len(q))

    def multinomial(p, n):
        drawn.append(p)
        return torch.tensor([len(p) - 1])

    monkeypatch.setattr(torch, "multinomial", multinomial)
    for guess, share in enumerate(q):
        for u in torch.arange(60) / 60:  # min(1, p / q) is a multiple of a sixtieth here
            monkeypatch.setattr(torch, "rand", lambda size, u=u: u)
            drawn.clear()
            added = accept([guess], torch.stack([p, p]), q[None])
            assert len(drawn) == 1
            if len(added) == 2:  # the guess, and one word more
                found[guess] += share / 60
            else:
                found += drawn[0] * share / 60
    return found


def test_what_a_check_adds_is_distributed_as_the_target_says(server, monkeypatch):
    p = torch.tensor([10, 5, 1, 4, 0]) / 20
    q = torch.tensor([2, 12, 3, 2, 1]) / 20
    assert torch.allclose(distribution(server.accept, p, q, monkeypatch), p, atol=1e-5)

    def drawn_from_p(guesses, p, q):  # the mistake of who forgets what was refused
        for i, word in enumerate(guesses):
            if torch.rand(()) >= p[i][word] / q[i][word]:
                return [*guesses[:i], server.draw(p[i])]
        return [*guesses, server.draw(p[-1])]

    wrong = distribution(drawn_from_p, p, q, monkeypatch)
    assert not torch.allclose(wrong, p, atol=0.05)


def test_a_draft_draws_what_the_target_alone_would_draw(server):
    """Two words of an answer, by 3,000 answers: with a stranger's guesses, and as p says."""
    torch.manual_seed(0)
    sizes = {"d_model": 8, "n_heads": 2, "n_layers": 1, "d_ff": 8, "max_len": 16}
    target, draft = (DecoderOnly(FamilyConfig(5, **sizes)).eval() for _ in range(2))
    for model in (target, draft):
        model.output.weight.data *= 4
    found = torch.zeros(5, 5)
    how = {"n": 2, "max_len": 2, "eos_id": None, "temperature": 1.0}
    for _ in range(3000):
        engines = [server.Engine(m, server.Pages(1, 16)) for m in (target, draft)]
        (a, b), *_ = server.speculate([3, 4], *engines, **how)
        found[a, b] += 1 / 3000
    with torch.no_grad():
        logits = [target(torch.tensor([[3, 4, a]]))[0, 1:] for a in range(5)]
    for each in logits:
        each[:, target.pad_id] = -torch.inf
    p = torch.stack([each.softmax(-1)[0, a] * each.softmax(-1)[1] for a, each in enumerate(logits)])
    assert (found - p).abs().sum() < 0.12  # of two such samples it's 0.05 or so


def test_drafts_are_timed_against_none_on_text_that_nobody_has_learnt(
    server, unchecked, monkeypatch
):
    now, prompts, learnt = [0.0], [], []

    def answered(server, prompt, target, draft, n, n_words, temperature=0.0):
        now[0] += 2.0 if n == 0 else 1.0 + n
        prompts.append(prompt)
        kept = 4 if temperature else 2
        return [5], {"calls": 10, "made": 8, "kept": kept, "words": 10 + kept} if n else {}

    monkeypatch.setattr(drafting, "letters", lambda: (torch.arange(1000), 5))
    monkeypatch.setattr(drafting, "learnt", lambda sizes, ids, *_: (learnt.append(ids), 0.5))
    monkeypatch.setattr(drafting, "answered", answered)
    monkeypatch.setattr(drafting.time, "process_time", lambda: now[0])
    found = drafting.drafts(server, small=True)["guesses"]
    told = {
        "likeliest: kept": 0.25,
        "likeliest: words": 1.2,
        "drawn: kept": 0.5,
        "drawn: words": 1.4,
    }
    assert found == {"1": [told | {"time": 1.0}], "4": [told | {"time": 2.5}]}
    assert min(map(min, prompts)) > max(ids.max() for ids in learnt)


def test_the_questions_that_choose_a_rate_are_not_those_that_are_reported(unchecked, monkeypatch):
    halves = [{tuple(row) for row in half_of_all(tuning=t)[0].tolist()} for t in (True, False)]
    assert [len(half) for half in halves] == [512, 512]
    assert not halves[0] & halves[1]
    asked = []
    monkeypatch.setattr(thinking, "pretrain", lambda *_, **__: None)
    monkeypatch.setattr(
        thinking, "rewarded", lambda *_, steps, **__: zip(steps, steps, strict=True)
    )
    monkeypatch.setattr(
        thinking, "asked_often", lambda *_, tuning, fast: asked.append(tuning) or {}
    )
    for sweep in (True, False):
        plan = Plan(0.01, 0, (1,), sweep=sweep)
        thinking.learn_texts(None, plan, 1, width=32, share=0.2)
        thinking.curve_of_rewards(None, plan, width=32)
    assert asked == [True, True, False, False]


def test_what_many_answers_to_two_questions_are_by_hand(unchecked, monkeypatch):
    parts = [("1100", "1000"), ("0011", "0110"), ("1110", "0001"), ("1000", "0000")]
    right, wrong, stepped, sound = (
        torch.tensor([[c == "1" for c in row] for row in part]) for part in parts
    )
    some = Tries(right, wrong, stepped, sound, words=torch.arange(8).view(2, 4))
    monkeypatch.setattr(thinking, "tries", lambda *_, **__: some)
    found = thinking.asked_often(None, 32, tuning=True, fast=True)
    told = {"once": 0.375, "with steps": 0.5, "words": 3.5, "misled": 0.5}
    told |= {"steps right": 0.5, "at once right": 0.25, "vote 2": 0.375, "vote 4": 0.25}
    assert found == found | told


def test_answers_are_chosen_as_each_way_says(unchecked):
    # a row: whether each of four texts is right, the other answer, has steps, and is sound
    rows = {
        "a tie": ("1100", "0011", "0000", "0000", (0.5, 0.5, 0.5, 1)),
        "right ones are more": ("1110", "0001", "0001", "0000", (1, 0, 1, 1)),
        "wrong ones are more, one right is sound": ("1000", "0111", "1100", "1000", (0, 0.5, 1, 1)),
        "a sound one is wrong": ("1110", "0001", "1111", "0001", (1, 1, 0, 1)),
        "none has an answer": ("0000", "0000", "1000", "0000", (0, 0, 0, 0)),
        "none is right": ("0000", "1000", "1000", "0000", (0, 0, 0, 0)),
    }
    *texts, wanted = zip(*rows.values(), strict=True)
    parts = [torch.tensor([[c == "1" for c in row] for row in part]) for part in texts]
    found = chosen(Tries(*parts, words=torch.ones(6, 4)))
    assert list(found) == ["vote", "vote of steps", "checked", "any"]
    assert torch.stack([x.float() for x in found.values()], dim=1).tolist() == [
        list(map(float, row)) for row in wanted
    ]


def test_the_soft_loss_pulls_as_hard_at_any_temperature(unchecked):
    own, teachers = (x - x.mean(dim=1, keepdim=True) for x in torch.randn(2, 3, 5).double())
    own.requires_grad_()
    loss = distilling.soft_loss(own, (teachers / 1000).softmax(dim=1), 1000.0)
    (pull,) = torch.autograd.grad(loss, own)  # Hinton et al. (2015), Eq. 4
    assert torch.allclose(pull, (own - teachers) / 5 / 3, rtol=0.02, atol=1e-4)


def test_who_only_knows_the_right_word_is_sure_of_it_and_of_nothing_else():
    p = torch.tensor([[0.7, 0.2, 0.05, 0.05], [0.1, 0.6, 0.2, 0.1]])
    wanted = [[0.7, 0.1, 0.1, 0.1], [0.8 / 3, 0.8 / 3, 0.2, 0.8 / 3]]
    assert torch.allclose(distilling.evened_out(p, torch.tensor([0, 2])), torch.tensor(wanted))
