"""Chapter 17: every server writes what greedy decoding writes; what is measured of it, by hand."""

import random

import pytest
import torch

from transformer.decoding import greedy_decode
from transformer.family import DecoderOnly, FamilyConfig
from transformer_book.experiments.chapter_17 import drafts as drafting
from transformer_book.experiments.chapter_17 import of_the_server, served
from transformer_book.experiments.chapter_17.clock import clock
from transformer_book.experiments.chapter_17.measure import Bench, figures, percentile, rounded
from transformer_book.experiments.chapter_18 import distilling, thinking
from transformer_book.experiments.chapter_18.thinking import Tries, chosen, half_of_all
from transformer_book.experiments.experiment import Plan

EOS, VOCAB = 6, 40
SIZES = {"d_model": 32, "n_heads": 4, "n_layers": 2, "d_ff": 48, "max_len": 160}
KINDS = {
    "modern": FamilyConfig.modern(VOCAB, n_key_heads=2, **SIZES),
    "gpt2": FamilyConfig(VOCAB, **SIZES),
}
SERVERS = {
    "static": ("Pages", (4, 160), {"slots": 4, "policy": "static"}),
    "shrinking": ("Pages", (4, 160), {"slots": 4, "policy": "shrinking"}),
    "continuous": ("Pages", (4, 160), {"slots": 4}),
    "in pieces": ("Pages", (4, 160), {"slots": 4, "chunk": 8}),
    "pages": ("Pages", (40, 16), {"slots": 8}),
    "pages run out": ("Pages", (8, 16), {"slots": 8}),
    "pages run out, static": ("Pages", (8, 16), {"slots": 8, "policy": "static"}),
    "shared": ("SharedPages", (60, 16), {"slots": 8}),
    "shared, in pieces, pages run out": ("SharedPages", (9, 16), {"slots": 8, "chunk": 8}),
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


def readers(server, n=16, prefix=()):
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


@pytest.mark.parametrize("name", SERVERS)
def test_every_server_writes_what_greedy_decoding_writes(name, model, server):
    kind, room, how = SERVERS[name]
    pages = getattr(server, kind)(*room)
    requests = readers(server, prefix=[7, 9, 11] * 12 if "shared" in name else ())
    server.serve(requests, server.Engine(model, pages), eos_id=EOS, **how)
    assert [r.answer for r in requests] == [greedy(model, r) for r in requests]
    assert all(len(r.times) == len(r.answer) for r in requests)
    assert pages.n_held == 0  # when all have gone
    assert sorted(pages.free) == list(range(pages.n))


def test_some_answers_end_by_themselves_and_words_differ(model, server):
    requests = readers(server)
    server.serve(requests, server.Engine(model, server.Pages(4, 160)), slots=4, eos_id=EOS)
    assert sum(r.answer[-1] == EOS for r in requests) >= 3
    assert len({word for r in requests for word in r.answer}) > VOCAB / 2


def test_a_shared_beginning_is_read_once(model, server):
    requests, log = readers(server, 10, prefix=[7, 9, 11] * 16), []  # 48 words, three pages
    engine = server.Engine(model, server.SharedPages(80, 16))
    server.serve(requests, engine, slots=1, eos_id=EOS, log=log)
    read = sum(n for _, _, batch, *_ in log for _, n in batch)
    assert read == sum(len(r.words) - 1 for r in requests) - 9 * 48


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
        for request in readers(server, 5):
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
            engine = server.Clockwork(pages, lambda B, T, S: 1.0)
            server.serve([request], engine, slots=1, log=log)
        return sum(n for _, _, batch, *_ in log for _, n in batch)

    # Two beginnings of 16 pages, and 24 pages: eight of the older one are still there.
    assert served_words([0, 1, 0, 1]) <= 4 * 277 - 2 * 6 * 16


@pytest.mark.parametrize("n_pages", [7, 8])
def test_an_ended_text_that_lost_its_pages_keeps_nobody_waiting(n_pages, model, server):
    lengths, prompts = (25, 2, 25), ([7, 8, 9, 10], [5, 8, 9, 10], [5, 8, 9, 11])
    requests = [server.Request(p, max_len=n) for p, n in zip(prompts, lengths, strict=True)]
    engine = Counted(server.Engine(model, server.Pages(n_pages, 4)), most=200)
    server.serve(requests, engine, slots=3, policy="static", chunk=2, eos_id=None)
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
    right = pages.places
    pages.places = lambda request, length: right(request, length).flip(0)
    requests = readers(server)
    server.serve(requests, server.Engine(model, pages), slots=8, eos_id=EOS)
    assert [r.answer for r in requests] != [greedy(model, r) for r in requests]


def test_the_clock_says_what_was_measured_and_goes_straight_between():
    costs = served()["costs"]["base"]
    seconds = clock(costs)
    for B, T, S in ((1, 1, 96), (8, 1, 320), (32, 1, 32), (1, 64, 64), (1, 512, 512)):
        assert seconds(B, T, S) == pytest.approx(costs[f"{B},{T},{S}"][1])
    assert seconds(6, 1, 96) == pytest.approx((seconds(4, 1, 96) + seconds(8, 1, 96)) / 2)
    assert seconds(8, 1, 64) == pytest.approx((seconds(8, 1, 32) + seconds(8, 1, 96)) / 2)
    assert seconds(2, 32, 32) == seconds(1, 64, 64)  # two prompts, read together
    assert seconds(1, 64, 512) >= seconds(1, 64, 64)
    assert clock(costs, 0)(8, 1, 96) <= seconds(8, 1, 96) <= clock(costs, 2)(8, 1, 96)


def test_figures_are_those_of_two_readers_counted_by_hand(server):
    readers = [server.Request([5] * 10, max_len=3), server.Request([5] * 4, 0.5, max_len=3)]
    engine, log = server.Clockwork(server.Pages(2, 20), lambda B, T, S: float(T > 1) + 1), []
    server.serve(readers, engine, slots=2, log=log)
    # 0-2 the first prompt, 2-3 a word; 3-5 the second prompt; 5-6 a word of both; 6-7 the last
    assert [r.times for r in readers] == [[2.0, 3.0, 6.0], [5.0, 6.0, 7.0]]
    found = figures(readers, log)
    assert (found["first_p50"], found["whole_p50"], found["whole_p95"]) == (4.5, 6.5, 6.5)
    assert found["tokens_per_s"] == pytest.approx(6 / 7)
    assert found["gap_max"] == 3.0
    assert found["texts_per_step"] == pytest.approx(4 / 3)
    assert found["held"] == pytest.approx((3 * 20 + 3 * 40 + 20) / 7)
    assert found["read_twice"] == 0
    twenty = [float(i) for i in range(20)]
    assert (percentile(twenty, 0.5), percentile(twenty, 0.95)) == (10, 19)


def test_tables_are_made_again_from_the_costs_that_are_stored(server):
    """With as many draws as their claims say, five and three."""
    stored = served()
    bench, top = Bench(server, stored["costs"], small=False), stored["loads"]["capacity"]
    assert bench.capacity(bench.clocks["base"]) == pytest.approx(top, rel=0.01)
    found = {
        "pieces": bench.spread(bench.seeds, bench._pieces, 0.6 * top, 64),
        "static": bench.spread(
            bench.few_seeds, bench.policy, "static", 0.5 * top, bench.clocks["base"], 8,
            "unequal", 400,
        ),
    }  # fmt: skip
    wanted = {
        "pieces": stored["pieces"]["64"],
        "static": stored["loads"]["by_load"]["0.5"]["static"],
    }
    for name, figures_of in wanted.items():
        for what, spread in rounded(found[name]).items():
            assert spread == pytest.approx(figures_of[what], rel=0.02), (name, what)


def test_a_shared_beginning_is_asked_at_a_load_that_is_busy_without(server, monkeypatch):
    asked, top = [], {"Pages": 2.0, "SharedPages": 5.0}

    def spread(bench, seeds, run, kind, rate):
        asked.append((kind, rate))
        return {"readers_per_s": [top[kind]]}

    monkeypatch.setattr(Bench, "spread", spread)
    Bench(server, served()["costs"], small=True).prefix()
    assert asked[2:] == [("Pages", 0.8 * 2.0), ("SharedPages", 0.8 * 2.0)]


def test_drafts_are_timed_against_none_on_text_that_nobody_has_learnt(
    server, unchecked, monkeypatch
):
    now, prompts, learnt = [0.0], [], []

    def answered(server, prompt, target, draft, n, n_words):
        now[0] += 2.0 if n == 0 else 1.0 + n
        prompts.append(prompt)
        return [5], {"calls": 10, "made": 8, "kept": 2, "words": 12} if n else {}

    monkeypatch.setattr(drafting, "letters", lambda: (torch.arange(1000), 5))
    monkeypatch.setattr(drafting, "learnt", lambda sizes, ids, *_: (learnt.append(ids), 0.5))
    monkeypatch.setattr(drafting, "answered", answered)
    monkeypatch.setattr(drafting, "looped", len)
    monkeypatch.setattr(drafting.time, "process_time", lambda: now[0])
    found = drafting.drafts(server, small=True)["guesses"]
    assert {n: each["time"] for n, (each,) in found.items()} == {
        "1": 1,
        "2": 1.5,
        "4": 2.5,
        "8": 4.5,
    }
    assert all(each == each | {"kept": 0.25, "words_per_call": 1.2} for (each,) in found.values())
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
        list(thinking.learn_texts(dict, plan, width=32, share=0.2))
        list(thinking.learn_rewards(dict, plan, width=32))
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
