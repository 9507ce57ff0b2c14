"""The film of chapter 0 as a reader meets it: each step whole, by finger, key, without motion."""

import shutil

import pytest

from tests.package.unchecked import unchecked
from website.extensions.page_parts import PARTS, SITE, copy_part
from website.server import serve

PAGE = """<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Film</title>
<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">
<link rel="stylesheet" href="parts.css"><link rel="stylesheet" href="film/film.css"><style>
@font-face { font-family: Serif; src: url("serif.woff2") }
body { font-family: Serif; margin: 0 }
@media (min-width: 1040px) { body { width: calc(80vw - 3.5rem) } }</style></head><body>
<div class="book-film"><p>A list of steps.</p></div>
<script type="module" src="film/film.js"></script></body></html>"""
FONT = SITE.parent / "static" / "fonts" / "serif.woff2"
SCREENS = [(1280, 800), (1024, 768), (390, 844), (320, 760), (844, 390)]
LEAST = {1280: 11, 390: 9}  # px of a letter, on the screens of this width
SENTENCES = [
    "cat",
    "the black cat sleeps",
    "the intelligent actresses do not often invite the famous doctors",
    "the small bird sings in front of the beautiful old house",
]
# The film, and what its tests ask of it.
FILM = """() => {
    window.film = document.querySelector(".book-film").film;
    window.texts = () => [...film.svg.querySelectorAll("text")].filter((text) => text.textContent)
        .map((text) => ({ words: text.textContent, box: text.getBoundingClientRect() }));
    window.tiny = (least) => [...film.svg.querySelectorAll("text")]
        .filter((text) => text.getAttribute("font-size") < least)
        .map((text) => `${text.getAttribute("font-size")} px: ${text.textContent}`);
    window.collisions = () => {
        const all = texts();
        const meet = ({ box: a }, { box: b }) => {
            const [w, h] = [Math.min(a.right, b.right) - Math.max(a.left, b.left),
                Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top)];
            return w > 1 && h > 0.3 * Math.min(a.height, b.height);
        };
        return all.flatMap((a, i) => all.slice(i + 1).filter((b) => meet(a, b))
            .map((b) => `${a.words} | ${b.words}`));
    };
    window.outside = () => {
        const { left, right, top, bottom } = film.svg.getBoundingClientRect();
        const out = (b) => b.left < left - 1 || b.right > right + 1 || b.top < top - 1
            || b.bottom > bottom + 1;
        const things = [...film.svg.querySelectorAll("text, rect:not(defs rect), circle, path")];
        return things.filter((each) => out(each.getBoundingClientRect()))
            .map((each) => `${each.getAttribute("class")} ${each.textContent}`);
    };
    window.scrolls = () => [...document.querySelectorAll(".film, .film *")]
        .filter((each) => !each.closest("svg, dialog, select, .heard, .sentence"))
        .filter((each) => each.clientHeight && getComputedStyle(each).display !== "inline")
        .filter(({ scrollHeight, clientHeight, scrollWidth, clientWidth }) =>
            scrollHeight > clientHeight + 1 || scrollWidth > clientWidth + 1)
        .map((each) => `${each.tagName} ${each.className}`);
}"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    with unchecked():
        for name in ("book-translator", "book-film"):
            copy_part(PARTS[name], folder)
    shutil.copy(FONT, folder)  # wider than most: what fits in it fits
    (folder / "index.html").write_text(PAGE, encoding="utf-8")
    server, base = serve(folder)
    yield base
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def opened(browser, site):
    """Opens the film on a screen; fails on an error."""
    wrong = []

    def open_(width=1280, height=800, **options):
        page = browser.new_page(
            viewport={"width": width, "height": height}, reduced_motion="reduce", **options
        )
        page.on("pageerror", lambda error: wrong.append(f"throws {error}"))
        page.goto(site)
        page.wait_for_function("document.querySelector('.book-film').film")
        page.evaluate(FILM)
        return page

    yield open_
    assert wrong == []


@pytest.fixture(scope="module")
def film(opened):
    return opened()


FIRST = 8  # steps of the first act


@pytest.fixture
def page(film):
    """At the first step of the second act."""
    film.evaluate("film.take('the black cat sleeps'.split(' ')), film.go(8)")
    return film


def steps(page):
    return range(page.evaluate("Number(film.scrubber.max)"))


def at(page):
    return page.evaluate("film.step")


def says(page):
    return page.locator(".film .says").inner_text().replace("“", "").replace("”", "")


def asked(page):
    return page.locator(".film .asked")


@pytest.mark.parametrize("screen", SCREENS, ids=str)
def test_every_step_is_whole_fits_its_screen_and_no_texts_meet(opened, screen):
    page = opened(*screen)
    wrong = {}
    least = LEAST.get(screen[0])  # no noun but the first is looked at where letters may be small
    nouns = page.evaluate("film.moves.nouns")[:: 1 if least else 99]
    sentences = [f"the black {noun} sleep{'' if i % 2 else 's'}" for i, noun in enumerate(nouns)]
    for sentence in (*SENTENCES, *sentences):
        assert page.evaluate("words => film.take(words) ?? ''", sentence.split()) == ""
        for step in range(FIRST) if sentence in sentences else list(steps(page))[FIRST:]:
            page.evaluate("step => film.go(step)", step)
            wanted = "least => [...collisions(), ...outside(), ...scrolls(), ...tiny(least)]"
            found = page.evaluate(wanted, least or 0)
            root = "document.documentElement"
            width, height = page.evaluate(f"[{root}.scrollWidth, {root}.scrollHeight]")
            if width != screen[0] or (least and height > screen[1]):
                found.append(f"takes {width} x {height}")
            if found:
                wrong[f"{sentence}, step {step + 1}"] = found
    page.close()
    assert wrong == {}


def test_the_way_to_a_step_leaves_no_trace(page):
    """Forward and back, with numbers asked between: the picture is that of going there at once."""
    differ = page.evaluate("""() => {
        const last = Number(film.scrubber.max) - 1;
        const direct = Array.from({ length: last + 1 }, (_, step) => {
            film.take("the black cat sleeps".split(" "));
            film.go(step);
            return film.svg.cloneNode(true);
        });
        const way = [...direct.keys()].flatMap((step) => [step, last - step, (5 * step) % last]);
        return way.filter((step) => {
            film.go(step);
            const same = film.svg.isEqualNode(direct[step]);
            film.svg.querySelector("[role=button]")?.dispatchEvent(
                new MouseEvent("click", { bubbles: true }));
            return !same;
        });
    }""")
    assert differ == []


def test_nothing_moves_where_motion_is_unwanted(page):
    moving = "document.getAnimations().length"
    for step in (4, 11, 3):
        page.evaluate("step => film.go(step)", step)
        assert page.evaluate(moving) == 0
    page.emulate_media(reduced_motion="no-preference")
    page.evaluate("film.go(4)")
    assert page.evaluate(moving) > 0
    page.emulate_media(reduced_motion="reduce")


def test_keys_walk_ask_and_close(page):
    page.get_by_role("button", name="Next").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    assert at(page) == FIRST + 1
    page.evaluate("film.go(10)")
    stops = page.locator('.film svg [tabindex="0"]')
    assert stops.count() == 1
    stops.focus()
    first = page.evaluate("document.activeElement.getAttribute('aria-label')")
    second = page.evaluate("[...film.svg.querySelectorAll('[role=button]')][1].ariaLabel")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.ariaLabel") == second != first
    page.keyboard.press("ArrowDown")
    label = page.evaluate("document.activeElement.getAttribute('aria-label')")
    assert at(page) == 10
    page.keyboard.press("Enter")
    assert "≈" in asked(page).inner_text()
    page.keyboard.press("Escape")
    assert asked(page).is_hidden()
    page.keyboard.press("Enter")
    asked(page).get_by_role("button", name="Close").press("Enter")
    assert asked(page).is_hidden()
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == label
    page.get_by_label("Who asks").select_option("sleeps")
    assert "sleeps looks most at" in says(page)
    page.evaluate("document.activeElement.blur()")  # outside of it keys do nothing
    page.keyboard.press("ArrowRight")
    assert at(page) == 10


def test_a_number_says_where_it_comes_from(page):
    """A press beside it will do; in a row the numbers can be gone through."""
    page.evaluate("film.go(10)")
    share = page.locator(".film text", has_text="73\u00a0%").bounding_box()
    page.mouse.click(share["x"] + 5, share["y"] - 6)
    for part in ("the", "cat", "exp(3.71)", "≈ 0.73"):
        assert part in asked(page).inner_text()
    asked(page).get_by_role("button", name="Close").click()
    page.evaluate("film.go(8)")
    page.get_by_role("button", name="the: its row of the table", exact=True).dispatch_event("click")
    assert "number 1" in asked(page).inner_text()
    assert "≈ −0.93" in asked(page).inner_text()
    asked(page).get_by_role("button", name="The next number").click()
    assert "number 2" in asked(page).inner_text()
    page.evaluate("film.go(9)")
    assert asked(page).is_hidden()


def test_every_number_that_can_be_asked_has_an_answer(page):
    asks = """() => [...film.pressed.values()].filter(({ does }) => does.address)
        .map((thing) => { film.asked.open(film.told.trace, thing, thing.does.count - 1);
            return [thing["aria-label"], film.asked.element.textContent]; })"""
    for step in steps(page):
        page.evaluate("step => film.go(step)", step)
        answers = page.evaluate(asks)
        assert answers or step in (5, 6, 7), f"step {step + 1} has no number"
        assert [label for label, text in answers if "≈" not in text] == []
        assert "NaN" not in str(answers)


def test_a_look_that_is_cut_changes_the_word_or_leaves_it(page):
    """As chapter 12's patch would: le depends on the, and not on cat."""
    page.evaluate("film.go(19)")
    page.get_by_role("button", name="Cut the look at the").focus()
    page.keyboard.press("Enter")
    assert "le falls" in says(page)
    assert "chat noir dort" in says(page)
    page.keyboard.press("Enter")
    assert "falls or stays" in says(page)
    page.get_by_role("button", name="Cut the look at cat").dispatch_event("click")
    assert "le stays" in says(page)


def test_a_look_of_the_first_act_is_given_back(page):
    page.evaluate("film.go(7)")
    assert "les chat noir dort" in says(page)
    assert page.locator(".film svg .wrong").count() == 1  # the large dot
    for look in ("first look at cat", "second look at cat"):
        press = page.get_by_role("button", name=f"Give back the {look}")
        assert press.get_attribute("aria-pressed") == "true"
        press.focus()
        page.keyboard.press("Enter")
    assert "writes le chat noir dort" in says(page)
    assert page.locator(".film svg .wrong").count() == 0
    page.get_by_label("the black").select_option("queen")
    assert "les reine noires" in says(page)
    page.evaluate("film.go(8)")  # a noun is the sentence of all steps
    assert page.locator(".film .sentence i").inner_text() == "the black queen sleeps"


def test_step_and_sentence_are_in_the_address(opened):
    def again():
        page.reload()
        page.wait_for_function("document.querySelector('.book-film').film")
        page.evaluate(FILM)
        return at(page), page.locator(".film .sentence i").inner_text()

    page = opened()
    page.evaluate("film.take('the dog sees the cat'.split(' ')), film.go(11)")
    assert page.evaluate("location.hash") == "#film-12-the-dog-sees-the-cat"
    assert again() == (11, "the dog sees the cat")
    page.evaluate("location.hash = '#film-99-the-zebra'")
    assert again() == (19, "the black cat sleeps")
    page.close()


def test_a_swipe_goes_on_and_back(page):
    def swipe(to):
        event = {"pointerType": "touch", "clientX": 300, "clientY": 300, "bubbles": True}
        page.locator(".film > svg").dispatch_event("pointerdown", event)
        page.locator(".film > svg").dispatch_event("pointerup", event | {"clientX": to})

    swipe(100)
    swipe(100)
    swipe(500)
    assert at(page) == FIRST + 1
    swipe(290)
    assert at(page) == FIRST + 1


def test_a_sentence_of_ones_own(page):
    page.get_by_role("button", name="another sentence").click()
    box = page.get_by_role("combobox", name="Your own")
    box.fill("the zebra sleeps")
    page.get_by_role("button", name="Watch it").click()
    note = page.locator(".film dialog .note")
    assert "does not know zebra" in note.inner_text()
    near = note.get_by_role("button")
    assert near.count() == 3
    near.first.click()
    assert page.locator(".film dialog[open]").count() == 0
    page.get_by_role("button", name="another sentence").click()
    box.fill("the old cow sleeps")
    page.get_by_role("button", name="Watch it").click()
    assert page.locator(".film dialog[open]").count() == 0
    assert "is number 183 of 210" in says(page)
    assert page.get_by_label("Follow").locator("option").all_inner_texts()[1] == "old"


def test_without_its_weights_the_words_below_stay(browser, site):
    page = browser.new_page()
    page.route("**/weights.safetensors", lambda route: route.abort())
    page.goto(site)
    page.get_by_text("The film could not be fetched").wait_for()
    assert page.locator(".book-film[data-stopped]").get_by_text("A list of steps.").count() == 1
    page.close()
