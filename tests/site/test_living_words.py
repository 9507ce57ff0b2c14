"""What seven living figures say is true in every setting; and their numbers fit together."""

import itertools
import math
import random
import re

import pytest

from tests.site.living import ONE_OR_TWO, served
from website.extensions.living_files import thread

CAUSAL = "1000110011101111"
WORDS, OTHERS = ["<bos>", "le", "chat", "noir"], ["", "un", "chien", "blanc"]
CLAIM = "a kernel average beats the nearest reading and the mean on ten days of ten"
WAYS = ["package", "infinity", "billion", "before", "after"]
ANY = r"−?\d[\d,]*\.?\d*"


TABLE = """async (states) => {
    const { SETS, table } = await import('/living/thermometer.js');
    const { weights } = await import('/living/look_up.js');
    return states.map((state) => {
        const rows = [];
        const row = (x, y, values, role) => role === 'query' && rows.push(values);
        const { hours } = SETS[state.readings];
        table({ row, text() {} }, state, weights(state.query, hours, state.width));
        return rows;
    });
}"""


@pytest.fixture(scope="module")
def page(browser, tmp_path_factory):
    with served(tmp_path_factory.mktemp("living")) as base:
        page = browser.new_page()
        page.goto(f"{base}query-light.html")
        yield page
        page.close()


def call(page, file, name, given=()):
    """What an exported function returns for each of the inputs; or what else is exported."""
    script = """async ([file, name, given]) => {
        const it = (await import('/living/' + file))[name];
        return typeof it === 'function' ? given.map((each) => it(...each)) : it;
    }"""
    return page.evaluate(script, [file, name, [list(each) for each in given]])


def say(page, file, names, states):
    """What functions of a state return, together, for each state."""
    found = [call(page, file, name, [(state,) for state in states]) for name in names]
    return zip(states, *found, strict=True)


def number(text):
    return float(text.replace("−", "-").replace(",", ""))


def numbers(text):
    return [number(each) for each in re.findall(ANY, text)]


def is_shown(text, value):
    """Whether ``text`` is ``value``, rounded to as many digits as it has."""
    digits = len(text.partition(".")[2])
    return abs(number(text) - value) <= 0.5001 * 10**-digits


def scores_at(m, n, omega, turn):
    """The rotary score, and that of added positions, by plain trigonometry."""
    on_query, on_key = {"both": (1, 1), "query": (1, 0), "key": (0, 1), "against": (1, -1)}[turn]
    (a, b), (c, d) = (0.9, 0.4), (-0.2, 0.9)
    angle = math.atan2(b, a) + on_query * m * omega - math.atan2(d, c) - on_key * n * omega
    added = (a + math.sin(m * omega)) * (c + math.sin(n * omega))
    added += (b + math.cos(m * omega)) * (d + math.cos(n * omega))
    return math.hypot(a, b) * math.hypot(c, d) * math.cos(angle), added


def test_a_score_that_moves_is_seen_to_move(page):
    places = [(m, b) for m in (1, 2, 60) for b in (-10, 0, 1)]
    every = itertools.product(
        places, range(61), ("0", "4", "8"), ("both", "query", "key", "against")
    )
    states = [{"m": m, "back": b, "start": s, "clock": c, "turn": t} for (m, b), s, c, t in every]
    for state, tick, said in say(page, "clocks.js", ["check", "said"], states):
        m, n, start = state["m"], state["m"] - state["back"], state["start"]
        omega = 10_000 ** (-2 * int(state["clock"]) / 64)
        early, late = (scores_at(m + s, n + s, omega, state["turn"]) for s in (0, start))
        if not start:
            assert tick["holds"] is None
            assert tick["because"].startswith("Not tested")
            assert is_shown(re.search(rf"score is ({ANY})\.$", said)[1], early[0])
            continue
        pairs = re.search(
            rf"Turned: ({ANY}) → ({ANY}); added: ({ANY}) → ({ANY})\.$", tick["because"]
        )
        assert all(map(is_shown, pairs.groups(), (early[0], late[0], early[1], late[1])))
        stays = state["turn"] == "both"
        assert tick["holds"] == stays == (pairs[1] == pairs[2])
        assert pairs[3] != pairs[4]
        if stays:
            assert is_shown(re.search(rf"stays ({ANY})\.$", said)[1], late[0])
        else:
            moved = re.search(rf"changes from ({ANY}) to ({ANY})\.$", said).groups()
            assert moved[0] != moved[1]
            assert all(map(is_shown, moved, (early[0], late[0])))


def masks():
    """The causal mask with one row of any kind, no cell, every cell, and some by chance."""
    for t, row in itertools.product(range(4), itertools.product("01", repeat=4)):
        yield CAUSAL[: 4 * t] + "".join(row) + CAUSAL[4 * t + 4 :]
    for row in itertools.product("01", repeat=4):  # the first row is empty: the next one is told of
        yield "0000" + "".join(row) + CAUSAL[8:]
    yield from ("0" * 16, "1" * 16, "0000111111111111")
    chance = random.Random(0)
    yield from ("".join(chance.choices("01", k=16)) for _ in range(12))


def test_what_is_said_about_a_mask_is_true_in_every_setting(page):
    states = [
        {"bits": bits, "way": way, "place": str(place)}
        for bits, way, place in itertools.product(masks(), WAYS, (-1, 1, 2, 3))
    ]
    seen = say(page, "masked_attention.js", ["seen", "changed"], states)
    told = say(page, "mask.js", ["checkPrefix", "checkSums", "said"], states)
    cases = set()
    for (state, prefix, sums, said), (_, found, lit) in zip(told, seen, strict=True):
        place, weights = int(state["place"]), found["weights"]
        words = [OTHERS[t] if t == place else WORDS[t] for t in range(4)]
        both = prefix["because"].replace("\xa0", " "), sums["because"].replace("\xa0", " ")
        assert place < 0 or not any(WORDS[place] in re.findall(r"[<\w>]+", each) for each in both)
        case = prefix_case(both[0], words, found, state["way"])
        cases.add(case)
        assert prefix["holds"] is {"same": True, "NaN": None}.get(case, False)
        assert prefix["holds"] is holds_on_prefixes(state["way"], found)
        row = next((t for t in range(4) if not abs(sum(weights[t]) - 1) < 1e-9), None)
        late = state["way"] == "after"
        assert sums["holds"] is (None if late else row is None)
        assert both[1].startswith("Not tested: here a key is hidden after") == late
        if row is not None:
            has = re.search(rf"The row of {words[row]} has (NaN|{ANY} %)[:.]", both[1])[1]
            total = sum(weights[row])
            assert has == "NaN" if math.isnan(total) else is_share(has[:-2], total)
        cases.add(exchange_case(said, words, place, lit))
    assert cases == {"same", "NaN", "leak", "less", "none", "nothing", "later", "early"}


def is_share(text, share):
    """A percentage that is rounded, but never to nothing or to all."""
    return is_shown(text, 100 * share) and (
        number(text) not in (0, 100) or abs(share - round(share)) < 1e-9
    )


def weights_by(way, scores, mask):
    """A row of weights, in plain loops."""
    if way == "package" and not any(mask):
        return [0.0] * len(mask)
    if way == "infinity" and not any(mask):
        return [math.nan] * len(mask)
    low = {"package": -math.inf, "infinity": -math.inf, "billion": -1e9, "before": 0.0}
    if way != "after":
        scores = [e if may else low[way] for e, may in zip(scores, mask, strict=True)]
    each = [math.exp(e - max(scores)) for e in scores]
    kept = [may or way != "after" for may in mask]
    return [e * may / sum(each) for e, may in zip(each, kept, strict=True)]


def outputs_by(way, scores, mask, values):
    row = weights_by(way, scores, mask)
    return [sum(w * v[c] for w, v in zip(row, values, strict=True)) for c in (0, 1)]


def holds_on_prefixes(way, found):
    """Whether no output changes in this way if its sentence ends there; None where one is NaN."""
    rows = list(zip(found["scores"], found["mask"], strict=True))
    full = [outputs_by(way, *row, found["values"]) for row in rows]
    cut = [
        outputs_by(way, e[: t + 1], mask[: t + 1], found["values"][: t + 1])
        for t, (e, mask) in enumerate(rows)
    ]
    pairs = list(zip(full, cut, strict=True))
    if any(not math.dist(a, b) <= 1e-9 for a, b in pairs if not math.isnan(a[0])):
        return False
    return None if any(math.isnan(a[0]) for a, _ in pairs) else True


def prefix_case(because, words, found, way):
    if because.startswith("No output changes"):
        return "same"
    word, share = re.search(
        rf"(?:[Tt]he row of |leak: )(\S+) (?:gives|has|is) (NaN|{ANY})", because
    ).groups()
    t = words.index(word)
    weights = found["weights"][t]
    if share == "NaN":
        assert any(map(math.isnan, weights))
        assert because == f"Not tested: the row of {word} is NaN with and without later words."
        return "NaN"
    assert t < 3  # nothing follows the last word
    if "to later words" in because:
        assert is_share(share, sum(weights[t + 1 :]))
        return "leak"
    assert not any(weights[t + 1 :])
    would = re.search(rf"; cut off after {word}, it would have ({ANY}) %\.$", because)[1]
    ended = weights_by(way, found["scores"][t][: t + 1], found["mask"][t][: t + 1])
    assert is_share(share, sum(weights))
    assert is_share(would, sum(ended))
    assert number(share) < number(would)
    return "less"


def exchange_case(said, words, place, lit):
    if place < 0:
        assert said.endswith("No word is exchanged.")
        return "none"
    assert said.startswith(f"{WORDS[place]} is exchanged for {words[place]}")
    changed = [words[t] for t in range(4) if lit[t]]
    early = [words[t] for t in range(place) if lit[t]]
    if not changed:
        assert said.endswith(", and no output changes: nothing leaks from it.")
        return "nothing"
    names = re.search(
        r"The output changes at (.*?)(: a leak to |, and at no earlier word\.)(.*)", said
    )
    assert re.split(", | and ", names[1]) == changed
    assert re.split(", | and ", names[3].rstrip(".")) == (early or [""])
    return "early" if early else "later"


def test_what_is_said_about_a_width_is_true_in_every_setting(page):
    states = [{"width": 2**n, "by": by} for n in range(11) for by in ("one", "root", "width")]
    spreads = []
    for state, drawn, alike, said in say(
        page, "scaling.js", ["checkDrawn", "checkAlike", "said"], states
    ):
        width = state["width"]
        divisor = {"one": 1, "root": math.sqrt(width), "width": width}[state["by"]]
        raw, divided = call(page, "saturation.js", "softened", [(width, 1), (width, divisor)])
        times = divided["slope"] / raw["slope"]
        assert is_shown(re.search(rf"division by ({ANY}) ", drawn["text"])[1], divisor)
        assert ("at least 1000" in drawn["text"]) == ((width, divisor) != (64, 8))
        assert drawn["holds"] == (times > 1000)
        assert alike["holds"] == (state["by"] != "one")
        assert ("next to nothing" in alike["because"]) == (state["by"] == "one")
        assert ("plain average" in alike["because"]) == (state["by"] == "width")
        if state["by"] == "width":
            [wide] = call(page, "saturation.js", "softened", [(1024, 1024)])
            shares = re.search(r": ([\d.]+)\xa0% to ([\d.]+)\xa0%, a", alike["because"]).groups()
            ends = [100 * end(wide["weights"]) for end in (min, max)]
            assert all(map(is_shown, shares, ends))
            assert max(ends) - min(ends) < 1.5
        assert ("divided" in said) == (divisor != 1)
        if divisor != 1:
            many = re.search(
                rf": (only |more than )?({ANY}|a million) times as large", drawn["because"]
            )
            assert many[1] == ("more than " if times > 1e6 else None if times > 1000 else "only ")
            assert (
                times > 1e6 if many[2] == "a million" else is_shown(many[2].replace(",", ""), times)
            )
        shown = [number(each) for each in re.findall(r"(\d+)\xa0%", said)]
        largest = [100 * max(each["weights"]) for each in (raw, divided)]
        assert shown == pytest.approx(largest[: len(shown)], abs=0.5)
        if state["by"] == "root":
            spreads.append(divided["scores"])
    assert len({tuple(each) for each in spreads}) == 11  # numbers of its own at each width
    for scores in spreads:  # but one spread
        assert 0.8 < math.dist(scores, [sum(scores) / 8] * 8) / math.sqrt(7) < 1.25


def test_what_is_said_about_a_look_up_is_true_in_every_setting(page):
    sets, widths = call(page, "thermometer.js", "SETS"), call(page, "query.js", "WIDTHS")
    for name, each in sets.items():
        tenths = range(10 * each["from"], 10 * each["to"] + 1)
        states = [{"query": q / 10, "width": w, "readings": name} for q in tenths for w in widths]
        for (state, said), rows in zip(
            say(page, "query.js", ["said"], states), page.evaluate(TABLE, states), strict=True
        ):
            e = [-((state["query"] - k) ** 2) / 2 / state["width"] ** 2 for k in each["hours"]]
            closeness = [math.exp(score - max(e)) for score in e]
            all_ = [100 * c / sum(closeness) for c in closeness]
            keys = [k for k, w in zip(each["hours"], all_, strict=True) if max(all_) - w < 1e-7]
            told = re.search(r"weights?, ([\d.]+)\xa0%.* keys? ([\d.]+)(?: and ([\d.]+))?\.$", said)
            assert is_shown(told[1], max(all_))
            assert len(keys) == len([key for key in told.groups()[1:] if key])
            assert all(
                is_shown(shown, key) for shown, key in zip(told.groups()[1:], keys, strict=False)
            )
            assert ("largest weights, " in said) == (len(keys) == 2)
            assert sum(sum(row) for row in rows) == pytest.approx(100)
            assert len(rows) == (1 if name == "five" else 2)


def test_what_is_said_about_the_errors_of_a_width_is_true_in_every_setting(page):
    widths = call(page, "query.js", "WIDTHS")
    errors = call(page, "look_up.js", "errors", [(w,) for w in widths])
    states = [{"query": 7.5, "width": w, "readings": "five"} for w in widths]
    for (_, tick), each in zip(say(page, "query.js", ["check"], states), errors, strict=True):
        assert tick["text"] == f"{CLAIM} (by a tenth or more, as the chapter’s code demands)"
        assert tick["holds"] == (each["wins"] == 10)
        than = r"a tenth smaller than the nearest reading’s on (\w+) (?:of|ten)"
        wins = re.search(than, tick["because"])
        assert int(wins[1].replace("none", "0").replace("all", "10")) == each["wins"]
        assert each["nearest"] < each["mean"]


def test_what_is_said_about_the_next_word_is_true_in_every_setting(page):
    every = {"which": ["flat", "peaked"], "tau": [0.1, 0.15, 0.25, 0.5, 1, 10], "k": range(1, 6)}
    every["enough"] = [0.05, 0.3, 0.75, 0.95, 1]
    states = [dict(zip(every, each, strict=True)) for each in itertools.product(*every.values())]
    model = {"flat": [0.28, 0.24, 0.2, 0.16, 0.12], "peaked": [0.8, 0.1, 0.05, 0.03, 0.02]}
    shares = call(page, "next_word.js", "reshaped", [(model[s["which"]], s) for s in states])
    seen = set()
    for (_, said), p in zip(say(page, "sampling.js", ["said"], states), shares, strict=True):
        drawn = sum(each > 0 for each in p)
        rare = sum(each > 0 and f"{100 * each:.1f}" == "0.0" for each in p)
        assert said.startswith(f"{drawn} words" if drawn > 1 else "One word can")
        hardly = re.search(r" can be drawn \((\d) of them hardly ever\);", said)
        assert (int(hardly[1]) if hardly else 0) == rare
        seen.add((drawn, rare))
    assert {(5, 4), (5, 0)} < seen


def product_times(state, n):
    """The seconds for fetching and for multiplying n rows, in plain numbers."""
    width, d = int(state["width"]), 2048
    peak, bandwidth = {4: 67e12, 2: 989e12, 1: 1978e12}[width], 3.35e12
    if state["machine"] == "cpu":
        peak, bandwidth = thread()["peak"], thread()["bandwidth"]
    peak *= 10 if state["change"] == "multiply" else 1
    bandwidth *= 10 if state["change"] == "fetch" else 1
    return width * (2 * n * d + d * d) / bandwidth, 2 * n * d * d / peak


def seconds(text):
    """What "0.73 ms" says, and by how much it may be off, in seconds."""
    digits, unit = text.split("\xa0")
    scale = {"ms": 1e-3, "µs": 1e-6}[unit]
    return scale * float(digits), 0.5001 * scale * 10 ** -len(digits.partition(".")[2])


def is_time(text, expected):
    found, off = seconds(text)
    return abs(found - expected) <= off and off < 0.06 * found


def equal_rows(state):
    """Where both times meet, by halving; None where they don't, 0 where they would before 1 row."""
    low, high = 1.0, 1e7
    fetch, multiply = product_times(state, low)
    if multiply > fetch:
        return 0
    fetch, multiply = product_times(state, high)
    if fetch > multiply:
        return None
    for _ in range(60):
        middle = math.sqrt(low * high)
        fetch, multiply = product_times(state, middle)
        low, high = (middle, high) if fetch > multiply else (low, middle)
    return low


def test_what_is_said_about_a_product_is_true_in_every_setting(page):
    every = {"n": call(page, "roofline.js", "ROWS"), "machine": ["cpu", "h100"]}
    every |= {"width": list("421"), "change": ["none", "multiply", "fetch"]}
    states = [dict(zip(every, each, strict=True)) for each in itertools.product(*every.values())]
    measured = dict(thread()["measured"])
    cases = set()
    a_time = r"([\d.]+\xa0[mµ]s)"
    for state, shared, helps, said in say(
        page, "roofline.js", ["checkShared", "checkHelp", "said"], states
    ):
        one, many = (max(product_times(state, n)) for n in (1, 64))
        told = re.match(
            rf"By Equation 13.2, one row takes {a_time} at least, 64 rows {a_time}: "
            r"([\d.]+) times as long\.(.*)$",
            shared["because"],
        )
        assert is_time(told[1], one)
        assert is_time(told[2], many)
        assert is_shown(told[3], many / one)
        assert shared["holds"] == (many < 25 * one)
        at = equal_rows(state)
        chapters = (state["machine"], state["width"], state["change"]) == ("cpu", "4", "none")
        if shared["holds"]:
            assert bool(told[4]) == chapters
            ratio = re.match(r" Measured: ([\d.]+) times\.$", told[4])
            assert not chapters or is_shown(ratio[1], measured[64] / measured[1])
        elif at:
            rows = re.match(r" From ([\d.]+) rows on, each row adds its multip", told[4])
            assert is_shown(rows[1], at)
        else:
            assert told[4].endswith("nothing is shared.")
            assert many == pytest.approx(64 * one)
        fetch, multiply = product_times(state, state["n"])
        rows = "1 row" if state["n"] == 1 else f"{state['n']:,} rows"
        assert helps["text"] == f"by Equation 13.2, quicker multiplication would not help {rows}"
        assert helps["holds"] == (max(fetch, multiply / 10) == max(fetch, multiply))
        times = re.findall(a_time, helps["because"])
        assert is_time(times[0], fetch)
        assert is_time(times[1], multiply)
        assert len(times) == (2 if helps["holds"] else 4)
        if not helps["holds"]:
            assert is_time(times[2], max(fetch, multiply / 10))
            assert is_time(times[3], multiply)
            assert seconds(times[2])[0] < seconds(times[3])[0]
        assert said.startswith(f"{rows} on the {'H100' if state['machine'] == 'h100' else 'CPU'}")
        assert ("waits for bytes" in said) == helps["holds"]
        assert is_time(re.search(rf"{a_time} at least", said)[1], max(fetch, multiply))
        assert ("same rate" in said) == (state["machine"] == "cpu" and state["width"] != "4")
        assert ("from the first row on" in said) == (at == 0)
        assert ("with any number of rows" in said) == (at is None)
        if at:
            assert is_shown(re.search(r"equally long with ([\d.]+) rows of", said)[1], at)
        cases.add((shared["holds"], helps["holds"], at is None, at == 0))
    assert {(True, True, True, False), (True, True, False, False)} < cases
    assert {(True, False, False, False), (False, False, False, True)} < cases


WIRES = {"plain": (0, 0), "add": (1, 0), "norm_only": (0, 1), "post": (1, 1)}
DIGITS = "⁰¹²³⁴⁵⁶⁷⁸⁹"


def in_plain(text):
    """0.42, 8.3·10⁻¹¹ or 9.1·10⁶, and by how much it may be off."""
    digits, _, power = text.partition("·10")
    plain = "".join("-" if each == "⁻" else str(DIGITS.index(each)) for each in power)
    scale = 10.0 ** int(plain or 0)
    return scale * float(digits), 0.5001 * scale * 10.0 ** -len(digits.partition(".")[2])


def are_shown(text, values):
    told = re.split(r", | and ", text)
    assert len(told) == len(values)
    for each, value in zip(told, values, strict=True):
        if each == "under 10⁻⁶":
            assert value < 1e-6
            continue
        found, off = in_plain(each)
        assert abs(found - value) <= off
        assert found == value or off <= 0.06 * found


def test_what_is_said_about_a_stack_is_true_in_every_setting(page):
    stacks = call(page, "depths.js", "DEPTHS")
    names = {"plain": "plain layer{}", "add": "layer{} with addition"}
    names |= {"norm_only": "layer{} with a norm alone", "post": "layer{} of Add & Norm"}
    counts = {"one of them": 1, "two of them": 2, "all three": 3}
    a_number = r"(?:under 10⁻⁶|[\d.]+(?:·10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)?)"
    three = rf"({a_number}, {a_number} and {a_number})"
    cases = set()
    for wire, (add, norm) in WIRES.items():
        states = [{"n": n, "add": bool(add), "norm": bool(norm)} for n in range(1, 33)]
        assert len(stacks[wire]) == 32
        for state, own, level, said in say(
            page, "depth.js", ["checkOwn", "checkLevel", "said"], states
        ):
            n, row = state["n"], stacks[wire][state["n"] - 1]
            arriving, words, gradients = row[:3], row[3:6], row[6:]
            name = f"{n} {names[wire].format('' if n == 1 else 's')}"
            assert own["text"] == f"{name}: words and gradients keep a part of their own"
            verb = "changes" if n == 1 else "change"
            assert level["text"] == f"{name} {verb} the gradient by under a factor of ten"
            assert own["holds"] == (min(words) > 0.05 and min(gradients) > 0.5)
            assert level["holds"] == all(0.1 < each < 10 for each in arriving)
            told = re.search(
                rf"of the words ({a_number}) \(asked: over 0.05\), of the gradients ({a_number}) "
                r"\(over 0.5\)\.(?: In (.*) the four words are nearly one\.)?$",
                own["because"],
            )
            are_shown(told[1], [min(words)])
            are_shown(told[2], [min(gradients)])
            assert told[1] == "under 10⁻⁶" or (in_plain(told[1])[0] > 0.05) == (min(words) > 0.05)
            assert (in_plain(told[2])[0] > 0.5) == (min(gradients) > 0.5)
            assert counts.get(told[3], 0) == sum(each <= 0.05 for each in words)
            assert own["holds"] == (told[3] is None)
            told = re.match(
                rf"In three new stacks it arrives {three} times as large as it set out\.(.*)$",
                level["because"],
            )
            are_shown(told[1], arriving)
            shown = [in_plain(each)[0] for each in re.split(r", | and ", told[1])]
            assert level["holds"] == all(0.1 < each < 10 for each in shown)
            turn = {" It grows in all three.": min(arriving) >= 10}
            turn[" It fades in all three."] = max(arriving) <= 0.1
            turn[""] = level["holds"]
            assert turn.get(told[2], not any(turn.values()))
            assert told[2] in (*turn, " The three differ.")
            assert said.startswith(f"{name}, three new stacks: ")
            are_shown(
                re.search(rf"the gradient arrives {three} times as large\.$", said)[1], arriving
            )
            same = re.search(
                r"in ([a-z ]+) the four words are the same, as far as the computer", said
            )
            assert counts.get(same and same[1], 0) == sum(each < 1e-6 for each in words)
            if not same:
                are_shown(re.search(rf"own parts of the words are {three},", said)[1], words)
            cases.add((wire, own["holds"], level["holds"], told[2]))
    assert ("post", True, True, "") in cases
    assert ("add", True, False, " It grows in all three.") in cases
    assert ("plain", False, False, " It fades in all three.") in cases
    assert ("norm_only", False, True, "") in cases
    assert ("norm_only", False, False, " The three differ.") in cases


def brought(state, first, second):
    """The numbers of the columns dog and cat, in hundredths."""
    looks = (state["a"], 100 - state["a"]), (state["b"], 100 - state["b"])
    return tuple(
        sum(w for w, noun in zip(look, (first, second), strict=True) if noun == column)
        for look, column in zip(looks, ("dog", "cat"), strict=True)
    )


def test_what_is_said_about_heads_is_true_in_every_setting(page):
    cuts = call(page, "looks.js", "cuts", [(state,) for state in ONE_OR_TWO])
    [sure] = call(page, "looks.js", "cuts", [({"two": True, "a": 100, "b": 0},)])
    assert [each["far"] for each in sure] == [0.5, 0.5]
    cases = set()
    told = say(page, "heads.js", ["checkNever", "checkBend", "said"], ONE_OR_TWO)
    for (state, never, bend, said), both in zip(told, cuts, strict=True):
        a, two, differ = state["a"], state["two"], state["a"] != state["b"]
        named = [name for name, each in zip(("first", "second"), both, strict=True) if each["far"]]
        assert never["text"] == (
            f"from {'two heads’ ' if two else ''}shares of two nouns "
            "linear maps name the first or the second, never both"
        )
        assert never["holds"] == (len(named) == 1)
        words, alike, _ = never["because"].partition(" Both heads look alike, as one would.")
        assert bool(alike) == (two and not differ)
        if len(named) == 2:
            assert differ
            far = re.search(
                r"nearer to one than ([\d.]+) \(with a noun for each head, 0.50", words
            )[1]
            assert is_shown(far, min(each["far"] for each in both))
            assert words.startswith("The two looks differ, so each noun has a straight cut. No ")
        elif named:
            (lost,) = {"first", "second"} - {*named}
            assert words.startswith(
                f"One straight cut names the {named[0]} noun. The {lost} has none, because "
            )
            weight = a if lost == "first" else 100 - a
            assert words.endswith("it has no weight at all.") == (weight == 0)
            assert words.endswith("take turns along the line.") == (weight > 0)
        else:
            assert words.startswith("Neither: dog … cat and cat … dog are in one place, so no cut")
            assert brought(state, "dog", "cat") == brought(state, "cat", "dog")
        who = "two heads read by a hidden layer name two" if two else ""
        assert bend["text"] == f"{who or 'one head read by a hidden layer names two'} nouns"
        places = {
            nouns: brought(state, *nouns) for nouns in itertools.product(("dog", "cat"), repeat=2)
        }
        assert bend["holds"] == (len({*places.values()}) == 4)
        other = re.match(r"dog … cat and (\w+) … (\w+) are in one place, and no", bend["because"])
        assert bool(other) != bend["holds"]
        if other:
            assert other.groups() != ("dog", "cat")
            assert places[other.groups()] == places["dog", "cat"]
        assert bend["because"].startswith("No bend is needed here") == (len(named) == 2)
        of = "Two heads, {a} % and {b} %" if two else "One head, {a} %"
        numbers = "dog … cat gives {:.2f} and {:.2f}, cat … dog gives {:.2f} and {:.2f}.".format(
            *(n / 100 for nouns in (("dog", "cat"), ("cat", "dog")) for n in places[nouns])
        )
        assert said.replace("\xa0", " ") == f"{of.format(**state)} on the first noun: {numbers}"
        cases.add((two, never["holds"], bend["holds"]))
    assert cases == {
        *((two, *each) for two in (False, True) for each in ((True, True), (True, False))),
        *((two, False, False) for two in (False, True)),
        (True, False, True),
    }


def test_what_is_said_about_the_runs_is_true_in_every_setting(page):
    data, rates, warm_ups = (
        call(page, "small_runs.js", name) for name in ("RUNS", "RATES", "WARM_UPS")
    )
    names = {"pre": "pre-LN", "post": "post-LN"}
    an_end = r"([\d.]+), ([\d.]+) and ([\d.]+)"
    cases = set()

    def ends(norm, warm_up, rate):
        """Of three seeds, the mean of the last two blocks: 20 steps."""
        at = 3 * (9 * warm_ups.index(warm_up) + rates.index(rate))
        return [sum(row[-2:]) / 2 for row in data[norm][at : at + 3]]

    def are_ends(told, expected):
        assert all(is_shown(each, end) for each, end in zip(told, expected, strict=True))
        return [float(each) for each in told]

    every = itertools.product(names, warm_ups, rates)
    states = [{"norm": n, "warmUp": w, "rate": r} for n, w, r in every]
    assert len(states) == 72
    for state, learns, gains, said in say(
        page, "rates.js", ["checkLearns", "checkGains", "said"], states
    ):
        norm, warm_up, rate = state.values()
        here, without = ends(norm, warm_up, rate), ends(norm, 0, rate)
        warm = f"with {warm_up} steps of warm-up" if warm_up else "without warm-up"
        assert learns["text"] == f"{names[norm]} learns {warm} at rate {plain_rate(rate)}"
        told = re.match(
            rf"The three runs end at {an_end} \(asked: under 3.40, the counting model's "
            r"loss\)\. (.*)$",
            learns["because"],
        )
        shown = are_ends(told.groups()[:3], here)
        assert learns["holds"] == (max(shown) < 3.40) == (max(here) < 3.40)
        average = {each: sum(ends(norm, warm_up, each)) for each in rates}
        best = min(average, key=average.get)
        if told[4] == "Above log V = 5.76 they're sure and wrong.":
            assert min(shown) > 5.76
            assert rate > best
            why = "above"
        elif told[4] == f"Of all rates here this one is best, {warm}.":
            assert rate == best
            why = "best"
        else:
            why, other = re.match(
                rf"(?:The steps are too (long|short): )?([\d.]+) is best on average, {warm}\.$",
                told[4],
            ).groups()
            assert float(other) == best != rate
            assert (why is None) == learns["holds"]
            assert why in (None, "long" if rate > best else "short")
        steps = f"{warm_up} steps of warm-up" if warm_up else "warm-up"
        text = f"{names[norm]} gains nothing from {steps} at rate {plain_rate(rate)}"
        assert gains["text"] == text
        lower = sum(a < b for a, b in zip(here, without, strict=True))
        holds = None if not warm_up else {0: True, 3: False}.get(lower)
        assert gains["holds"] is holds
        if not warm_up:
            assert gains["because"] == "These runs have none. Give them some."
        else:
            told = re.match(rf"Without it the three runs end at {an_end}\. (.*)$", gains["because"])
            seen = are_ends(told.groups()[:3], without)
            assert lower == sum(a < b for a, b in zip(shown, seen, strict=True))  # to be seen, too
            learned = max(here) < 3.40, max(without) < 3.40
            says = {
                0: "All three are lower.",
                1: "With it one ends lower, so they don't decide.",
                2: "With it two end lower, so they don't decide.",
            }
            says[3] = {
                (True, True): "All three are higher, though they have learned, too.",
                (True, False): "All three are higher, and only with it have they all learned.",
                (False, False): "All three are higher, though with it they haven't all learned, "
                "either.",
            }.get(learned)
            assert told[4] == says[lower]
        first = rate / max(warm_up, 1)
        found = re.match(
            r"(?:In (all 100|\d+ of 100) steps the rate rises from (\S+) to|"
            rf"All 100 steps have the rate) ([\d.]+)\. On average the three {names[norm]} runs end "
            r"at ([\d.]+) nats\.$",
            said,
        )
        assert found[1] == ({0: None, 100: "all 100"}.get(warm_up, f"{warm_up} of 100"))
        assert float(found[3]) == rate
        assert is_shown(found[4], sum(here) / 3)
        assert not warm_up or in_plain(found[2])[0] == pytest.approx(first, rel=1e-6)
        cases.add((norm, learns["holds"], gains["holds"], why))
    assert {("pre", True, True, None), ("pre", False, False, "above")} < cases
    assert {("pre", True, False, None), ("pre", False, True, "short")} < cases
    assert {("post", True, False, "best"), ("post", False, False, "long")} < cases
    assert {("post", False, None, "long"), ("post", True, None, "best")} < cases


def plain_rate(rate):
    """0.00008, as a page writes it."""
    return f"{rate:.5f}".rstrip("0")


def test_a_rate_is_named_beside_the_healthy_one(page):
    rates = call(page, "small_runs.js", "RATES")
    named = call(page, "rates.js", "besideHealthy", [(rate,) for rate in rates])
    for rate, said in zip(rates, named, strict=True):
        told = re.fullmatch(r"([\d.]+)(?:, the healthy one| = healthy ([×÷]) (\d+))", said)
        assert told[1] == plain_rate(rate)
        times = float(told[3] or 1)
        assert rate == pytest.approx(0.008 * (1 / times if told[2] == "÷" else times))
