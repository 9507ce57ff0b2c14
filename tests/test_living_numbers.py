"""The living figures' calculations against the package and the chapters, in a real browser."""

import itertools
import math

import pytest
import torch

from tests.living import run_cells, write_pages
from tools.site_check import serve
from transformer.attention import masked_softmax
from transformer.book import close
from transformer.decoding import beam_search
from transformer.decoding.search import keep_top_k, keep_top_p
from transformer.masks import causal_mask
from transformer.positional import RotaryPositions, sinusoidal_encoding

TAUS, KS, PS = (0.1, 0.5, 1, 2, 10), (1, 2, 3, 5), (0.05, 0.28, 0.5, 0.75, 0.9, 1)


@pytest.fixture(scope="module")
def call(browser, tmp_path_factory):
    """call("turns.js", "hand", […]): what an exported function returns for each of the inputs."""
    folder = tmp_path_factory.mktemp("living")
    write_pages(folder)
    server, base = serve(folder)
    page = browser.new_page()
    page.goto(f"{base}query-light.html")
    script = """async ([file, name, given]) => {
        const it = (await import('/living/' + file))[name];
        if (typeof it !== 'function') return it;
        return given.map((each) => it(...each));
    }"""

    def call_(file, name, given=()):
        return page.evaluate(script, [file, name, [list(each) for each in given]])

    yield call_
    page.close()
    server.shutdown()
    server.server_close()


def same(ours, theirs, tolerance=1e-6):
    expected = torch.as_tensor(theirs, dtype=torch.float64)
    found = torch.tensor(ours, dtype=torch.float64)
    torch.testing.assert_close(found, expected, rtol=0, atol=tolerance, equal_nan=True)


def test_the_look_up_is_the_chapters(call):
    hours, degrees = [5.0, 6, 8, 9, 12], [7.0, 6, 9, 11, 16]
    given = list(itertools.product((4.0, 7.5, 10.7, 13), (0.05, 0.3, 1, 3, 12)))
    keys, values = torch.tensor([hours, degrees], dtype=torch.float64)
    scores = torch.stack([-((q - keys) ** 2) / (2 * w**2) for q, w in given])
    weights = masked_softmax(scores)
    same(call("look_up.js", "weights", [(q, hours, w) for q, w in given]), weights)
    looked = call("look_up.js", "lookUp", [(q, hours, degrees, w) for q, w in given])
    same(looked, weights @ values, 1e-5)


def test_the_errors_of_ten_days_are_the_chapters(call):
    readings = {"hours": [5.0, 6, 8, 9, 12], "degrees": [7.0, 6, 9, 11, 16]}
    errors = run_cells(3, "look-up", "day-numbers", "day-errors", **readings)
    [found] = call("look_up.js", "errors", [(1,)])
    for name, each in (("average", "by_average"), ("nearest", "by_nearest"), ("mean", "by_mean")):
        assert found[name] == pytest.approx(errors[each].mean().item(), abs=1e-3)
    assert found["wins"] == 10
    read, day, truth = (errors[name] for name in ("read_thermometer", "day", "truth"))
    widths = (0.05, 0.3, 0.7, 2, 6)
    for width, each in zip(
        widths, call("look_up.js", "errors", [(w,) for w in widths]), strict=True
    ):
        scores = [(-((day[:, None] - read(s)[0]) ** 2) / (2 * width**2)) for s in range(10)]
        guesses = [s.softmax(dim=-1) @ read(i)[1] for i, s in enumerate(scores)]
        error = torch.stack([(guess - truth(day)).square().mean().sqrt() for guess in guesses])
        best = torch.minimum(errors["by_nearest"], errors["by_mean"])
        assert each["average"] == pytest.approx(error.mean().item(), abs=1e-3)
        assert each["wins"] == (error < 0.9 * best).sum()


def test_the_slope_is_that_of_autograd_at_every_width(call):
    scores = torch.tensor(call("slopes.js", "SCORES"), dtype=torch.float64)
    widths = [2**n for n in range(11)]
    given = [(w, r) for w in widths for r in (1, math.sqrt(w), w)]
    for (width, divisor), found in zip(
        given, call("saturation.js", "softened", given), strict=True
    ):
        e = (scores * math.sqrt(width / 64) / divisor).requires_grad_()
        a = e.softmax(dim=-1)
        a[7].backward()
        same(found["scores"], e.detach())
        same(found["weights"], a.detach())
        assert found["slope"] == pytest.approx(e.grad[7].item(), rel=1e-9)
        nudged = (e.detach() + 0.01 * (torch.arange(8) == 7)).softmax(-1)
        assert found["rise"] == pytest.approx((nudged - a.detach())[7].item(), rel=1e-4, abs=1e-16)


def test_masked_attention_is_the_packages_in_five_ways(call):
    ways = run_cells(4, "ways", masked_softmax=masked_softmax)["ways"]
    scores = run_cells(4, "numbers-masks", causal_mask=causal_mask)["scores"]
    same(call("masked_attention.js", "SCORES"), scores)
    names = ["infinity", "billion", "before", "after", "package"]  # in the chapter's order
    values = torch.tensor(call("masked_attention.js", "VALUES"), dtype=torch.float64)
    g = torch.Generator().manual_seed(0)
    masks = [causal_mask(4), *(torch.rand(24, 4, 4, generator=g) < 0.5)]
    masks.append(torch.zeros(4, 4, dtype=torch.bool))
    e = scores.double()
    given = [(e.tolist(), values.tolist(), m.tolist(), n) for m in masks for n in names]
    expected = [way(e, m) for m in masks for way in ways.values()]
    for found, weights in zip(call("masked_attention.js", "attend", given), expected, strict=True):
        same(found["weights"], weights)
        same(found["outputs"], weights @ values)


def test_an_exchanged_word_changes_what_may_look_at_it(call):
    for place, mask in itertools.product(
        range(4), (causal_mask(4), causal_mask(4).T, torch.eye(4) > 0)
    ):
        bits = "".join(str(int(each)) for each in mask.flatten())
        state = {"bits": bits, "way": "package", "place": str(place)}
        [found] = call("masked_attention.js", "changed", [(state,)])
        # its own row asks anew, if it may look at more than one word
        looks = mask[:, place].clone()
        looks[place] |= mask[place].sum() > 1
        assert found == (looks.tolist() if place else [False] * 4)


@pytest.mark.parametrize("chosen", [0, 4, 8])
def test_clocks_and_arrows_are_the_packages(call, chosen):
    table = sinusoidal_encoding(128, 64)[:, 2 * chosen : 2 * chosen + 2]
    same(call("turns.js", "hand", [(p, chosen) for p in range(128)]), table)
    pairs = torch.tensor([[0.9, 0.4], [-0.2, 0.9]])
    places = [(0, 0), (2, 1), (6, 5), (30, 33), (60, 70)]
    rotary = RotaryPositions(max_len=128, d_k=64)
    for (m, n), found in zip(
        places, call("turns.js", "scored", [(m, n, chosen) for m, n in places]), strict=True
    ):
        x = torch.zeros(2, 64)
        x[:, 2 * chosen : 2 * chosen + 2] = pairs
        q, k = (rotary.turn(x[i][None, None, None], at)[0, 0, 0] for i, at in ((0, m), (1, n)))
        assert found["rotary"] == pytest.approx((q @ k).item(), abs=1e-5)
        added = (pairs[0] + table[m]) @ (pairs[1] + table[n])
        assert found["added"] == pytest.approx(added.item(), abs=1e-5)
        same(found["query"], q[2 * chosen : 2 * chosen + 2], 1e-5)


def test_beams_write_what_the_packages_write(call, unchecked):
    def by_package(*_, **__):
        return ""

    seven = run_cells(10, "table", "table-model")
    phrases = run_cells(10, "empty-table", by_package=by_package)["phrases"]
    table_of, bos, eos = seven["Table"], 1, 2
    first = call("beam_search.js", "tableWith", [("seven", 0.25), ("empty", 0.07)])
    for ours, theirs in zip(first, (seven["follows"], phrases), strict=True):
        assert {w: pytest.approx(after) for w, after in theirs.items()} == ours
    shares = [("seven", 0.1), ("seven", 0.25), ("seven", 0.4), ("empty", 0.02), ("empty", 0.07)]
    tables = call("beam_search.js", "tableWith", [*shares, ("empty", 0.35)])
    given = list(itertools.product(tables, (1, 2, 3, 4, 8), (0.0, 0.6, 2.0)))
    for (follows, K, alpha), found in zip(
        given, call("beam_search.js", "search", given), strict=True
    ):
        model = table_of(follows)
        options = {"bos_id": bos, "eos_id": eos, "max_len": 20}
        options |= {"beam_size": K, "length_penalty": alpha}
        tokens, log_p = beam_search(model, torch.tensor([[bos]]), **options)
        assert found["p"] == pytest.approx(log_p.exp().item(), rel=1e-4)
        length = (tokens[0] != 0).sum().item()
        score = log_p.item() / ((5 + length) / 6) ** alpha
        assert found["score"] == pytest.approx(score, rel=1e-4)
        if len(follows) == 4:  # in the other table, sentences are equally likely
            assert found["words"] == model.say(tokens[0].tolist())


def test_what_beams_keep_and_drop_is_what_the_chapter_draws(call):
    follows = call("beam_search.js", "tableWith", [("seven", 0.25)])[0]
    leaves = {(a, b): p * q for a, p in follows["<bos>"].items() for b, q in follows[a].items()}
    for K, search in enumerate(
        call("beam_search.js", "search", [(follows, K, 0) for K in (1, 2, 3)])
    ):
        begun = ["le", "la", "elle"][: K + 1]
        reached = {s: p for s, p in leaves.items() if s[0] in begun}
        kept = sorted(reached, key=reached.get, reverse=True)[: K + 1]
        fates = call("beam_search.js", "fate", [(list(s), search, 3) for s in leaves])
        states = {True: "kept", False: "dropped"}
        assert fates == [states[s in kept] if s in reached else "never" for s in leaves]
        early = call("beam_search.js", "fate", [(list(s), search, 1) for s in leaves])
        assert set(early) == {"ahead"}


def test_what_may_be_drawn_is_what_the_package_keeps(call):
    names = run_cells(10, "numbers-cuts", keep_top_k=keep_top_k, keep_top_p=keep_top_p)
    ps = [names[n].tolist() for n in ("peaked", "flat")]
    given = list(itertools.product(ps, TAUS, KS, PS))
    asked = [(p, {"tau": tau, "k": k, "enough": each}) for p, tau, k, each in given]
    for (p, tau, k, each), found in zip(
        given, call("next_word.js", "reshaped", asked), strict=True
    ):
        logits = torch.tensor(p, dtype=torch.float64).log()[None] / tau
        kept = keep_top_p(keep_top_k(logits, k), None if each == 1 else each)
        same(found, kept.softmax(dim=-1)[0])
    cuts = [call("next_word.js", "reshaped", [(p, {"tau": 1, "k": 2, "enough": 1})])[0] for p in ps]
    same(cuts, torch.stack([rows["top-k, k = 2"] for rows in names["both"]]), 1e-5)


def test_draws_have_the_shares_that_they_are_drawn_with(call):
    shares = [[0.28, 0.24, 0.2, 0.16, 0.12], [0.8, 0, 0.2, 0, 0], [0, 0, 0, 0, 1.0]]
    given = [(p, 20_000, seed) for p in shares for seed in range(3)]
    found = torch.tensor(call("next_word.js", "drawn", given))
    expected = torch.tensor(shares).repeat_interleave(3, dim=0)
    assert (found - expected).abs().max() < 0.015
    assert (found[expected == 0] == 0).all()
    assert not torch.equal(found[0], found[1])
    assert close(found.sum(dim=1), torch.ones(9))
