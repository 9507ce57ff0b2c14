"""The living figures' calculations against the package and the chapters, in a real browser."""

import itertools
import math
import re

import pytest
import torch

from tests.site.living import ONE_OR_TWO, run_cells, served
from transformer.attention import masked_softmax
from transformer.decoding import beam_search
from transformer.decoding.search import keep_top_k, keep_top_p
from transformer.masks import causal_mask
from transformer.multihead import MultiHeadAttention
from transformer.positional import RotaryPositions, sinusoidal_encoding
from transformer_book import close
from website.extensions.living_files import thread

TAUS, KS, PS = (0.1, 0.5, 1, 2, 10), (1, 2, 3, 5), (0.05, 0.28, 0.5, 0.75, 0.9, 1)


@pytest.fixture(scope="module")
def call(browser, tmp_path_factory):
    """call("turns.js", "hand", […]): what an exported function returns for each of the inputs."""
    script = """async ([file, name, given]) => {
        const it = (await import('/living/' + file))[name];
        if (typeof it !== 'function') return it;
        return given.map((each) => it(...each));
    }"""

    def call_(file, name, given=()):
        return page.evaluate(script, [file, name, [list(each) for each in given]])

    with served(tmp_path_factory.mktemp("living")) as base:
        page = browser.new_page()
        page.goto(f"{base}query-light.html")
        yield call_
        page.close()


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
        e = (scores[int(math.log2(width))] / divisor).requires_grad_()
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


def by_package(state, words, value_of):
    """What *sees* gets from the package's layer, whose matrices change nothing."""
    n_heads = 1 + state["two"]
    layer = MultiHeadAttention(2, n_heads, bias=False)
    for linear in (layer.W_q, layer.W_k, layer.W_v, layer.W_o):
        torch.nn.init.eye_(linear.weight)
    nouns = torch.tensor([[False, True, False, False, True]])
    shares = torch.tensor([state["a"], state["b"]]) / 100
    keys = torch.zeros(1, 5, 2)  # of both nouns, the first one's score decides how they share
    keys[0, 1] = shares.logit(1e-7) * math.sqrt(2 / n_heads)
    keys[0, 1, n_heads:] = 0
    values = torch.tensor([[value_of[word] for word in words]])
    with torch.no_grad():
        return layer(torch.ones(1, 1, 2), keys, values, nouns)[0, 0]


def test_one_head_or_two_bring_what_the_packages_layer_brings(call):
    value_of = run_cells(5, "numbers-average")["value_of"]
    sentences = call("looks.js", "SENTENCES")
    assert sorted(map(tuple, sentences)) == sorted(itertools.product(("cat", "dog"), repeat=2))
    asked = list(itertools.product(ONE_OR_TWO[::4], sentences))
    found = call("looks.js", "place", asked)
    expected = [
        by_package(state, ["the", first, "sees", "the", second], value_of)
        for state, (first, second) in asked
    ]
    same(found, torch.stack(expected), 1e-5)


def test_a_straight_cut_is_the_one_that_keeps_farthest_from_all_sentences(call):
    sentences = call("looks.js", "SENTENCES")
    asked = list(itertools.product(ONE_OR_TWO, sentences))
    places = torch.tensor(call("looks.js", "place", asked)).unflatten(0, (-1, 4))
    angles = torch.arange(7200) * 2 * math.pi / 7200
    ways = torch.stack([angles.cos(), angles.sin()])
    found = call("looks.js", "cuts", [(state,) for state in ONE_OR_TWO])
    for state, points, both in zip(ONE_OR_TWO, places, found, strict=True):
        differ, a = state["a"] != state["b"], state["a"]
        assert [each["far"] > 0 for each in both] == [differ or a > 50, differ or a < 50]
        for which, each in enumerate(both):
            dog = torch.tensor([nouns[which] == "dog" for nouns in sentences])
            along = points @ ways
            best = (along[dog].amin(dim=0) - along[~dog].amax(dim=0)).max().item() / 2
            assert each["far"] == pytest.approx(max(best, 0), abs=1e-3)
            if each["far"]:
                towards = torch.tensor(each["towards"])
                side = (points - 0.5) @ (towards / towards.norm())
                assert side[dog].min().item() == pytest.approx(each["far"], abs=1e-6)
                assert side[~dog].max().item() == pytest.approx(-each["far"], abs=1e-6)


def test_a_product_takes_what_equation_13_2_says(call):
    counted = {"multiplications": lambda run: 36 * len(run()), "g": torch.Generator()}
    work_and_bytes = run_cells(13, "numbers-bytes", **counted)["work_and_bytes"]
    cpu = thread()
    peaks = {"4": 67e12, "2": 989e12, "1": 2 * 989e12}
    every = {"machine": ["cpu", "h100"], "width": list("421")}
    every |= {"change": ["none", "multiply", "fetch"], "n": [1, 7, 64, 768, 4096]}
    given = [dict(zip(every, each, strict=True)) for each in itertools.product(*every.values())]
    asked = [(each,) for each in given]
    corners = call("limits.js", "corner", asked)
    pairs = zip(given, corners, strict=True)
    at_corner = call("limits.js", "times", [(state, rows) for state, rows in pairs])
    measured = call("limits.js", "measured", asked)
    for state, found, at, equal, dots in zip(
        given, call("limits.js", "times", asked), corners, at_corner, measured, strict=True
    ):
        work, n_bytes = work_and_bytes(state["n"], 2048, int(state["width"]))
        on_cpu = state["machine"] == "cpu"
        peak = cpu["peak"] if on_cpu else peaks[state["width"]]
        peak *= 10 if state["change"] == "multiply" else 1
        bandwidth = cpu["bandwidth"] if on_cpu else 3.35e12
        bandwidth *= 10 if state["change"] == "fetch" else 1
        both = found["multiply"], found["fetch"]
        assert both == (pytest.approx(work / peak), pytest.approx(n_bytes / bandwidth))
        assert found["least"] == max(both)
        if math.isfinite(at):
            assert equal["multiply"] == pytest.approx(equal["fetch"])
            assert (both[0] > both[1]) == (state["n"] > at)
        else:
            assert work_and_bytes(1e9, 2048, int(state["width"]))[0] / peak < (
                work_and_bytes(1e9, 2048, int(state["width"]))[1] / bandwidth
            )
        chapters = on_cpu and state["width"] == "4" and state["change"] == "none"
        assert dots == (cpu["measured"] if chapters else [])
    assert math.inf in corners


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
        n_steps = len(search["steps"])  # after the last one nothing is ahead
        longer = [(["le"] * (n_steps + 1), search, shown) for shown in (n_steps - 1, n_steps)]
        assert call("beam_search.js", "fate", longer) == ["ahead", "never"]
        ended = [([*s, "<eos>"], search, n_steps) for s in kept]
        assert call("beam_search.js", "fate", ended) == ["kept"] * len(kept)


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


def test_what_is_said_about_the_cuts_is_true_in_every_setting(call):
    names = run_cells(10, "numbers-cuts", keep_top_k=keep_top_k, keep_top_p=keep_top_p)
    logits = torch.stack([names["peaked"], names["flat"]]).double().log()
    every = {"tau": [0.1, 0.5, 1, 1.4, 3, 10, 100], "k": range(1, 6)}
    every["enough"] = [round(0.05 * i, 2) for i in range(1, 21)]
    given = [dict(zip(every, each, strict=True)) for each in itertools.product(*every.values())]
    verbatim = 0
    for state, found in zip(
        given, call("sampling.js", "checkCuts", [(each,) for each in given]), strict=True
    ):
        k = 2 if state["k"] == 5 else state["k"]
        enough = 0.75 if state["enough"] == 1 else state["enough"]
        p = logits / state["tau"]
        by_k, by_p = (
            kept.isfinite().sum(dim=-1).tolist()
            for kept in (keep_top_k(p, k), keep_top_p(p, enough))
        )
        if (state["tau"], k, enough) == (1, 2, 0.75):
            assert found["text"] == "top-k 2 keeps two words of both; top-p 0.75 keeps one, or four"
            assert found["holds"] == ((by_k, by_p) == ([2, 2], [1, 4]))
            verbatim += 1
        else:
            words = f"{k} word{'' if k == 1 else 's'} of each"
            fewer = f"top-p {enough:.2f} keeps fewer of the peaked one"
            assert found["text"] == f"top-k {k} keeps {words}; {fewer}"
            assert found["holds"] == (by_k == [k, k] and by_p[0] < by_p[1])
        assert found["because"] == (
            f"Judged, each alone, at τ = {state['tau']:.2f}: "
            f"{'the chapter’s ' if state['k'] == 5 else ''}top-k {k}, "
            f"{'the chapter’s ' if state['enough'] == 1 else ''}top-p {enough:.2f}. "
            f"Peaked: top-k keeps {by_k[0]}, "
            f"top-p {by_p[0]}. Flat: top-k keeps {by_k[1]}, top-p {by_p[1]}."
        )
    assert verbatim == 4  # each of the two, set or left alone


def test_draws_are_tested_where_there_are_enough_of_them(call):
    every = {"which": ["flat", "peaked"], "tau": [0.1, 1, 100], "k": [1, 3, 5]}
    every |= {"enough": [0.3, 1], "n": [1, 10, 100, 1000, 20_000], "seed": [0, 1]}
    given = [dict(zip(every, each, strict=True)) for each in itertools.product(*every.values())]
    all_p = {"flat": [0.28, 0.24, 0.2, 0.16, 0.12], "peaked": [0.8, 0.1, 0.05, 0.03, 0.02]}
    asked = [(all_p[each["which"]], each) for each in given]
    for state, p, found in zip(
        given,
        call("next_word.js", "reshaped", asked),
        call("sampling.js", "checkDraws", [(each,) for each in given]),
        strict=True,
    ):
        error = max(math.sqrt(each * (1 - each) / state["n"]) for each in p)
        assert found["holds"] is (None if 3 * error > 0.015 else True)
        assert "1.5 points" in found["because"]
        assert found["because"].startswith("Not tested") == (found["holds"] is None)
        if found["holds"] is None:  # no share can be farther off than from p to 0, or to 1
            off = int(re.search(r"off by (\d+) points by chance", found["because"])[1])
            assert 1.5 < off <= 100 * max(max(each, 1 - each) for each in p)
        sure = "as good as certain" in found["because"]
        assert sure == (found["holds"] is True and max(p) > 0.9995)


def said_by(follows, alpha):
    """All sentences of a table: words -> probability, score by Equation 10.3."""
    found = {}

    def grow(words, p):
        after = follows.get(words[-1] if words else "<bos>", {"<eos>": 1.0})
        for word, q in after.items():
            if word == "<eos>":
                score = math.log(p * q) / ((5 + len(words) + 1) / 6) ** alpha
                found[" ".join(words)] = p * q, score
            else:
                grow([*words, word], p * q)

    grow([], 1.0)
    return found


def test_a_search_looks_for_the_best_score_and_not_for_the_likeliest(call):
    state = {"table": "empty", "share": 0.26, "K": 1, "alpha": 3}
    [judged] = call("beam_words.js", "checkFound", [(state,)])
    assert not judged["holds"]  # the empty sentence is likelier than the one with the best score


def test_what_is_said_about_a_search_is_true_in_every_setting(call):
    shares = [0.01, 0.07, 0.22, 0.25, 0.6]
    every = {"table": ["seven", "empty"], "share": shares, "K": [1, 2, 3, 4, 8]}
    every |= {"alpha": [0, 0.3, 0.6, 2]}
    given = [dict(zip(every, each, strict=True)) for each in itertools.product(*every.values())]
    tables = call("beam_search.js", "tableWith", [(s["table"], s["share"]) for s in given])
    asked = [(t, s["K"], s["alpha"]) for t, s in zip(tables, given, strict=True)]
    searched = call("beam_search.js", "search", asked)
    pairs = {"seven": (2, 3), "empty": (3, 4)}
    compared = (
        [each["words"] for each in call("beam_search.js", "search", of_claim)]
        for of_claim in (
            [(t, pairs[s["table"]][i], s["alpha"]) for t, s in zip(tables, given, strict=True)]
            for i in (0, 1)
        )
    )
    first, second = (
        call("beam_words.js", name, [(each,) for each in given])
        for name in ("checkClaim", "checkFound")
    )
    seen = set()
    for state, follows, result, few, more, one, two in zip(
        given, tables, searched, *compared, first, second, strict=True
    ):
        alpha, words = state["alpha"], result["words"]
        said = said_by(follows, alpha)
        best = max(score for _, score in said.values())
        holds = said[words][1] > best - 1e-9
        assert two["holds"] == holds
        assert two["because"].startswith(f"It finds {words or 'the empty sentence'} (")
        assert ("misses" in two["because"]) == (not holds)
        penalised = alpha > 0 and state["table"] == "empty"
        assert two.get("text", "likeliest").endswith("best score") == penalised
        assert ("α changes no order" in two["because"]) == (alpha > 0 and not penalised)
        if penalised:  # the two scores are seen to differ, in the right direction
            ours, theirs = (
                float(each.replace("−", "-")) for each in re.findall(r"−\d+\.\d+", two["because"])
            )
            assert ours > theirs if holds else ours < theirs
            assert ours == pytest.approx(said[words][1], abs=0.006)
        likeliest = max(said, key=lambda each: said[each][0])
        expected = few != likeliest == more
        if state["table"] == "empty":
            expected = few != "" and (more != "" if penalised else more == "")
        assert one["holds"] == expected
        now = few if few == more else None
        assert ("likeliest" in one["because"]) == (state["table"] == "seven" and more == likeliest)
        assert one["because"].endswith(", now the likeliest.") == (now == likeliest == "la reine")
        assert one["text"].startswith(f"α = {alpha:.1f}: three and four") == penalised
        seen.add((state["table"], penalised, one["holds"], two["holds"]))
    assert {(True, True), (True, False)} < {each[1:3] for each in seen}
    assert {(False, False), (True, False)} < {(each[1], each[3]) for each in seen}


def test_beams_are_told_apart_from_what_has_ended(call):
    states = [
        {"table": table, "share": share, "K": K, "alpha": 0.6, "step": step}
        for table, share, n in (("seven", 0.25, 3), ("empty", 0.07, 4))
        for K, step in itertools.product((1, 2, 4, 8), range(1, n))
    ]
    for state, told in zip(
        states, call("beam_words.js", "tell", [(each,) for each in states]), strict=True
    ):
        beams, _, ended = told.partition(" Set aside, ended: ")
        more = re.search(r"and (\d+) more", beams)
        listed = beams.count("(") + (int(more[1]) if more else 0)
        assert told.startswith(f"Step {state['step']} of ")
        assert 1 <= listed <= state["K"]
        assert bool(ended) == (state["table"] == "empty" and state["K"] > 3)
        assert "empty" not in beams


def test_the_rate_of_each_step_rises_as_chapter_9s(call):
    code = run_cells(7, "training", default_device=lambda: torch.device("cpu"))["schedule"]
    for warm_up, rate in itertools.product((0, 20, 50, 100), (0.00008, 0.008, 0.8)):
        state = {"rate": rate, "warmUp": warm_up}
        found = call("runs.js", "rateAt", [(state, n) for n in range(1, 101)])
        # chapter 7's schedule falls at its end, which is far away here
        expected = [rate * code(n, 10**9, warm_up) for n in range(100)]
        same(found, expected, 1e-6 * rate)
