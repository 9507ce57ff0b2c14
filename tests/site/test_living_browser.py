"""The living figures as readers meet them: on a wide light screen and on a narrow dark one."""

import re

import pytest
import torch

from tests.site.conftest import watched
from tests.site.living import FIGURES, SOURCE, claimed, served
from website.checks.site_check import SCREENS
from website.extensions.living_files import thread

MODULE = """async (name) => {
    const { CLAIM, CLAIMS, example, breaks } = await import(`./living/${name}.js`);
    return { claims: CLAIM ? [CLAIM] : Object.values(CLAIMS), shows: example.shows, breaks };
}"""
CONTRAST = """section => {
    const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
    const light = colour => {
        canvas.fillStyle = colour;
        canvas.fillRect(0, 0, 1, 1);
        const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].map(v => v / 255)
            .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
    };
    const bad = [];
    for (const each of section.querySelectorAll('*')) {
        const words = [...each.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
        if (!words) continue;
        const style = getComputedStyle(each);
        const behind = each.closest('.living-tick') ?? section;
        const paper = light(getComputedStyle(behind).backgroundColor);
        const ink = light(each.closest('svg') ? style.fill : style.color);
        const ratio = Math.max(ink, paper) / Math.min(ink, paper);
        if (ratio < 4.5) bad.push(`${each.textContent}: ${ratio.toFixed(1)}`);
    }
    return bad;
}"""
MISPLACED = """svg => {
    const frame = svg.getBoundingClientRect();
    const [x, y] = [1, 3];  // a line's height has room above and below its letters
    const texts = [...svg.querySelectorAll('text')].map(t => [t, t.getBoundingClientRect()]);
    const outside = ([text, { left, right, top, bottom }]) => left < frame.left - x
        || right > frame.right + x || top < frame.top - y || bottom > frame.bottom + y;
    const meet = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > x
        && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 2 * y;
    return texts.filter(([text, box], i) => outside([text, box])
        || Number(text.getAttribute('font-size')) < 12
        || texts.slice(0, i).some(([, other]) => meet(box, other))
    ).map(([text]) => text.textContent);
}"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with served(tmp_path_factory.mktemp("living")) as base:
        yield base


@pytest.fixture(scope="module", params=SCREENS, ids=lambda screen: f"{screen[0]}-{screen[1]}")
def screen(request, browser):
    width, scheme = request.param
    page = browser.new_page(viewport={"width": width, "height": 844})
    yield page, scheme
    page.close()


@pytest.fixture
def opened(screen, site):
    """Opens a figure in a page that is watched."""
    page, scheme = screen

    def open_(name):
        page.goto(f"{site}{name}-{scheme}.html")
        page.locator(".living-tick").first.wait_for()
        return page

    with watched(page, site):
        yield open_


def control(page, role, name):
    return page.get_by_role(role, name=name)


def wait_for(page, text):
    """Until it stands somewhere: what is read out comes after a pause."""
    page.get_by_text(text).wait_for()


def ticks(page):
    return page.locator(".living-tick").evaluate_all("all => all.map(e => e.dataset.holds)")


def words(page):
    return page.locator("svg text").evaluate_all("all => all.map(e => e.textContent)")


def test_each_figure_has_its_place_in_one_chapter():
    modules = [
        path.stem for path in SOURCE.glob("*.js") if "export function start" in path.read_text()
    ]
    assert sorted(FIGURES) == sorted(modules)


@pytest.mark.parametrize("name", FIGURES)
def test_it_shows_its_example_breaks_a_claim_of_its_chapter_and_leads_back(opened, name):
    page = opened(name)
    figure = page.evaluate(MODULE, name)
    made = claimed(FIGURES[name])
    assert [text for text in figure["claims"] if not any(text in line for line in made)] == []
    shown = words(page)
    assert [each for each in figure["shows"] if each not in shown] == []
    assert set(ticks(page)) == {"true"}
    assert "Without scripts" not in page.locator("body").inner_text()
    breaks = figure["breaks"]
    [role] = breaks.keys() - {"keys", "claim", "because"}
    control(page, role, breaks[role]).focus()
    for key in breaks["keys"]:
        page.keyboard.press(key)
    broken = page.locator(".living-tick").nth(breaks["claim"])
    assert broken.get_attribute("data-holds") == "false"
    assert broken.locator(".living-mark").inner_text() == "✗"
    assert breaks["because"] in broken.inner_text().replace("\xa0", " ")
    assert page.locator("svg").evaluate(MISPLACED) == []
    page.get_by_role("status").filter(has_text="no longer holds.").wait_for()  # it is read out
    back = page.get_by_role("button", name="As in the chapter")
    back.focus()
    page.keyboard.press("Enter")
    assert set(ticks(page)) == {"true"}
    assert words(page) == shown
    page.get_by_role("status").filter(has_text="✓").wait_for()


@pytest.mark.parametrize("name", FIGURES)
def test_it_can_be_read_and_touched(opened, name):
    page = opened(name)
    section = page.locator(".living")
    assert section.evaluate(CONTRAST) == []
    assert page.locator("svg").evaluate(MISPLACED) == []
    for each in page.locator(".living :is(input, select, button)").all():
        box = each.evaluate("e => (e.closest('.living-box') ?? e).getBoundingClientRect().toJSON()")
        assert min(box["width"], box["height"]) >= 24
    sliders = page.get_by_role("slider").evaluate_all(
        "all => all.map(e => [e.labels.length, e.getAttribute('aria-valuetext')])"
    )
    assert all(n == 1 and text for n, text in sliders)


def test_the_word_that_is_drawn_stands_in_the_row_of_what_is_drawn(opened):
    page = opened("sampling")
    page.get_by_role("slider", name="how many words are drawn").press("Home")  # one
    name, share = (
        page.locator("svg text").get_by_text(text, exact=True).bounding_box()["y"]
        for text in ("drawn, %", "100.0")
    )
    assert name == pytest.approx(share, abs=8)


WALK = f"""slider => {{
    const misplaced = {MISPLACED};
    const drawing = document.querySelector('svg');
    const wrong = [];
    const seen = new Set();
    for (let i = Number(slider.min); i <= Number(slider.max); i++) {{
        slider.value = i;
        slider.dispatchEvent(new Event('input', {{ bubbles: true }}));
        seen.add(slider.getAttribute('aria-valuetext'));
        const bad = misplaced(drawing);
        if (drawing.textContent.includes('NaN')) bad.push('NaN');
        if (bad.length || Number(slider.value) !== i) wrong.push([i, slider.value, ...bad]);
    }}
    return [Number(slider.max) + 1, seen.size, wrong];
}}"""


@pytest.mark.parametrize("name", [name for name in FIGURES if name != "mask"])
def test_sliders_reach_all_of_their_values_without_an_error(opened, name):
    page = opened(name)
    for slider in page.get_by_role("slider").all():
        slider.focus()
        for key in ("Home", "End"):
            page.keyboard.press(key)
            assert slider.input_value() == slider.get_attribute({"Home": "min", "End": "max"}[key])
        many, different, wrong = slider.evaluate(WALK)
        assert wrong == []
        assert many == different >= 3


def test_the_query_is_dragged(opened):
    page = opened("query")
    box = page.locator("svg").bounding_box()
    unit = box["width"] / 350
    page.mouse.move(box["x"] + 150 * unit, box["y"] + 100 * unit)
    page.mouse.down()
    page.mouse.move(box["x"] + 308 * unit, box["y"] + 60 * unit)
    page.mouse.up()
    scores = -((12 - torch.tensor([5.0, 6, 8, 9, 12])) ** 2) / 2
    answer = scores.softmax(dim=0) @ torch.tensor([7.0, 6, 9, 11, 16])
    assert f"12:00: {answer:.1f} °C" in words(page)
    page.mouse.move(box["x"] + 60 * unit, box["y"] + 60 * unit)  # no button is held
    assert f"12:00: {answer:.1f} °C" in words(page)
    press(page, "width", "End")  # the drawn answer, too, is of this width
    answer = (scores / 12**2).softmax(dim=0) @ torch.tensor([7.0, 6, 9, 11, 16])
    assert f"12:00: {answer:.1f} °C" in words(page)
    control(page, "combobox", "readings").select_option("forty")
    wait_for(page, "the look-up says")
    assert len(page.locator("svg circle").all()) == 40 + 4  # the query, and three in the legend


def test_a_leak_lights_up(opened):
    page = opened("mask")
    page.get_by_label("another word").select_option("3")
    wait_for(page, "noir is exchanged for blanc. The output changes at blanc, and at no earlier")
    assert {"ringed: changed", "blanc"} <= set(words(page))
    assert "noir" not in words(page)
    control(page, "checkbox", "le may look at blanc").check()
    wait_for(page, "The output changes at le and blanc: a leak to le.")
    control(page, "checkbox", "le may look at blanc").uncheck()
    for each in ("le", "chat", "blanc"):
        control(page, "checkbox", f"blanc may look at {each}").uncheck()
    wait_for(page, "noir is exchanged for blanc, and no output changes: nothing leaks from it.")
    assert "ringed: changed" not in words(page)


@pytest.mark.parametrize("clock", ["0", "4", "8"])
def test_the_terms_of_added_positions_are_drawn(opened, clock):
    page = opened("clocks")
    control(page, "combobox", "how fast they turn").select_option(clock)
    shown = page.locator("svg [data-value]").evaluate_all("all => all.map(e => +e.dataset.value)")
    at = torch.tensor([2.0, 1, 6, 5]) * 10_000 ** (-2 * int(clock) / 64)
    hands = torch.stack([at.sin(), at.cos()], dim=-1)
    sums = hands + torch.tensor([[0.9, 0.4], [-0.2, 0.9]]).repeat(2, 1)
    scores = (sums[::2] * sums[1::2]).sum(dim=-1)
    rows = torch.cat([hands, sums], dim=-1).reshape(2, 8)
    drawn = torch.cat([rows, scores[:, None]], dim=-1).flatten()
    torch.testing.assert_close(torch.tensor(shown[2:]), drawn, rtol=0, atol=1e-5)
    assert f"clock {clock}" in words(page)


def test_a_search_can_be_followed_step_by_step(opened):
    page = opened("beams")
    step = control(page, "slider", "step of the search")
    step.focus()
    page.keyboard.press("Home")
    wait_for(page, "Before the first step")
    page.keyboard.press("ArrowRight")
    wait_for(page, "Step 1 of 3. Beams: le (40.0 %), la (35.0 %), elle (25.0 %).")
    fates = page.locator("[data-fate]").evaluate_all("all => all.map(e => e.dataset.fate)")
    assert sum(each.endswith("ahead") for each in fates) == 7
    page.get_by_label("table").select_option("empty")
    wait_for(page, "The search has ended after step 4")
    control(page, "slider", "beam size").focus()
    page.keyboard.press("Home")
    for key, last in (("End", 1), ("Home", 4)):  # <eos> first, or last: a search stays at its end
        control(page, "slider", "how likely <eos>").focus()
        page.keyboard.press(key)
        wait_for(page, f"The search has ended after step {last} with")


def press(page, label, *keys):
    control(page, "slider", label).focus()
    for key in keys:
        page.keyboard.press(key)


def test_the_times_of_one_row_are_those_of_the_chapters_thread(opened):
    page = opened("roofline")
    cpu, d = thread(), 2048
    fetch, multiply = 4 * (d * d + 2 * d) / cpu["bandwidth"], 2 * d * d / cpu["peak"]
    shown = [each.replace("\xa0", " ") for each in words(page)]
    times = [float(each.removesuffix(" ms")) for each in shown if each.endswith(" ms")]
    assert times == [pytest.approx(1000 * each, rel=0.05) for each in (fetch, multiply)]
    (equal,) = (float(each.split()[-1]) for each in shown if each.startswith("equal at"))
    a_row = multiply - 8 * d / cpu["bandwidth"]
    corner = 4 * d * d / cpu["bandwidth"] / a_row
    assert equal == pytest.approx(corner, rel=0.03, abs=0.8 if corner > 9 else 0.1)


def weights(page):
    sliders = page.get_by_role("slider")
    return sliders.evaluate_all("all => all.map(e => parseInt(e.ariaValueText ?? ''))")


def test_one_head_has_one_look_and_turning_the_second_cuts_it(opened):
    page = opened("heads")
    cut = control(page, "checkbox", "cut the head in two")
    press(page, "head’s weight", "ArrowLeft")
    assert weights(page) == [65, 65]
    press(page, "head 2", *["ArrowLeft"] * 3)
    assert cut.is_checked()
    assert weights(page) == [65, 50]
    press(page, "head 1", "ArrowLeft")
    assert weights(page) == [60, 50]
    assert {"head 1", "head 2", "0.60", "0.50"} < set(words(page))
    cut.uncheck()
    assert weights(page) == [60, 60]
    assert "one head" in words(page)
    cut.check()  # two heads that look alike see what one has seen
    assert weights(page) == [60, 60]
    assert ticks(page) == ["true", "true"]
    wait_for(page, "Two heads, 60 % and 60 % on the first noun")


@pytest.mark.parametrize("turns", [[], ["ArrowLeft"], ["ArrowLeft"] * 7, ["End"], ["Home"]])
def test_a_drawn_cut_has_dog_on_one_side_and_cat_on_the_other(opened, turns):
    page = opened("heads")
    press(page, "head 2", *turns)
    halves = page.locator("svg rect[width='10']").evaluate_all(
        "all => all.map(e => [e.x.baseVal.value, e.y.baseVal.value + 6, e.getAttribute('fill')])"
    )
    left, right = halves[::2], halves[1::2]
    assert len({(a[2], b[2]) for a, b in zip(left, right, strict=True)}) == 4
    paths = page.locator("svg path[stroke='var(--loss-line)'][stroke-width='2.5']").evaluate_all(
        "all => all.map(e => [e.getAttribute('stroke-dasharray'), e.getAttribute('d')])"
    )
    cuts = [(dash, *map(float, re.findall(r"[\d.]+", d))) for dash, d in paths]
    cuts = [each for each in cuts if each[2] < 250]  # the key is below the square
    assert len(cuts) == (2 if turns else 1)
    for dash, x, y, u, v in cuts:
        sides = {"var(--value)": set(), "var(--plain)": set()}
        for (_, _, first), (at, height, second) in zip(left, right, strict=True):
            side = (u - x) * (height - y) - (v - y) * (at - x)
            sides[second if dash else first].add(side > 0)
        assert sorted(map(list, sides.values())) == [[False], [True]]


def test_the_runs_are_drawn_where_they_end(opened):
    page = opened("rates")
    dots = page.locator("svg circle[r='4']")
    stripe = page.locator("svg rect").last  # what is shaded below the counting model's loss
    stripe_top = float(stripe.get_attribute("y"))
    log_v = page.locator("svg path[stroke-dasharray='4 3']").last.get_attribute("d")
    log_v_at = float(log_v.split()[-1])
    seen = {}
    for norm, keys, where in (
        ("pre", [], "learned"),
        ("pre", ["Home"], "between"),
        ("pre", ["End"], "above"),
        ("post", ["End"], "above"),
        ("post", ["ArrowLeft"], "between"),
    ):
        control(page, "combobox", "norms").select_option(norm)
        for key in keys:
            press(page, "highest rate", key)
        heights = dots.evaluate_all("all => all.map(e => Number(e.getAttribute('cy')))")
        assert len(heights) == 3
        assert where != "above" or len(set(heights)) == 3
        for height in heights:
            there = (
                "above" if height < log_v_at else "between" if height < stripe_top else "learned"
            )
            assert there == where
        colours = dots.evaluate_all("all => all.map(e => e.getAttribute('fill'))")
        seen.setdefault(norm, set()).update(colours)
    assert seen["pre"].isdisjoint(seen["post"])
    assert [len(each) for each in seen.values()] == [1, 1]
