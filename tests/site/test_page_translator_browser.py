"""The translator as a reader meets it, on a wide light screen and on a narrow dark one."""

import math
import re
from itertools import count

import pytest
import torch

from tests.site.test_page_translator import copy_translator, encoded, in_pytorch
from transformer.data.grammar import grammar_pairs, grammar_vocabularies
from transformer.data.grammar.vocabularies import SOURCE_WORDS
from transformer_book.experiments.translator import trained
from website.checks.site_check import SCREENS
from website.extensions.translator_files import translator_words

PAGE = """<!DOCTYPE html><html lang="en" data-theme="{scheme}"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width"><title>Try</title>
<link rel="icon" href="data:,"><link rel="stylesheet" href="parts.css">
<link rel="stylesheet" href="translator/translator.css">
{script}</head><body style="margin: 8px">{body}</body></html>"""
SCRIPT = '<script type="module" src="translator/view.js"></script>'
FALLBACK = "<p>Here runs the translator.</p>"
SMALL = f'<div class="book-translator" data-size="small">{FALLBACK}</div>'
FULL = f'<div class="book-translator" data-size="full">{FALLBACK}</div>'
FOCUSED = """() => {
    const { activeElement: element } = document;
    const words = (element.labels?.[0] ?? element).cloneNode(true);
    for (const control of words.querySelectorAll("select")) control.remove();
    return words.textContent.trim();
}"""
WEIGHTS = "**/weights.safetensors"
NUMBERS = count()
# What has changed inside of a live region; what stands in one when it comes is not read out.
LISTENED = """<script>
window.said = [];
const within = (node) => (node.nodeType === 1 ? node : node.parentElement);
const region = (node) => within(node)?.closest("[role=status]");
new MutationObserver((all) => said.push(...all.map(({ target }) => region(target)?.className)
    .filter((name) => name !== undefined)))
    .observe(document, { subtree: true, childList: true, characterData: true });
</script>"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    copy_translator(folder)
    return folder


@pytest.fixture(scope="module")
def site(folder, served):
    return served(folder)


@pytest.fixture(scope="module", params=SCREENS, ids=lambda screen: f"{screen[0]}-{screen[1]}")
def screen(request, browser):
    width, scheme = request.param
    context = browser.new_context(viewport={"width": width, "height": 844})
    yield context.new_page(), scheme
    context.close()


@pytest.fixture
def opened(screen, folder, site):
    """Opens HTML; fails on an error, a request elsewhere, what is wider than the screen."""
    page, scheme = screen
    wrong = []
    page.asked = []

    def open_(body, *, expected=(), reduced_motion="reduce", scripts=SCRIPT):
        def note(what):
            if not any(part in what for part in expected):
                wrong.append(what)

        listeners["pageerror"] = lambda error: note(f"throws {error}")
        listeners["console"] = lambda message: note(f"logs {message.text}")
        listeners["request"] = lambda r: page.asked.append(r.url)
        for event, listener in listeners.items():
            page.on(event, listener)
        page.emulate_media(reduced_motion=reduced_motion)
        name = f"page-{next(NUMBERS)}.html"  # a browser keeps what it has from one name
        text = PAGE.format(scheme=scheme, body=body, script=scripts)
        (folder / name).write_text(text, encoding="utf-8")
        page.goto(site + name)
        return page

    listeners = {}
    yield open_
    if page.evaluate("document.documentElement.scrollWidth > window.innerWidth"):
        wrong.append("is wider than the screen")
    for event, listener in listeners.items():
        page.remove_listener(event, listener)
    page.mouse.move(0, 0)
    page.unroute_all()
    wrong += [url for url in page.asked if not url.startswith((site, "data:"))]
    assert wrong == []


def box(page):
    return page.get_by_role("combobox", name="An English sentence")


def translate(page, sentence=None):
    if sentence is not None:
        box(page).fill(sentence)
    page.get_by_role("button", name="Translate").click()
    page.get_by_text("Written in").wait_for()


def french(page):
    return " ".join(page.locator("label.word").all_inner_texts())


def shares(page, selector):
    return page.locator(selector).evaluate_all("all => all.map((e) => Number(e.dataset.share))")


def states(page):
    return page.get_by_role("status").all_inner_texts()


def test_who_asks_on_a_small_screen_sees_the_answer(opened):
    page = opened(SMALL)
    page.set_viewport_size(page.viewport_size | {"height": 280})
    translate(page)
    seen = "e => { const { top, bottom } = e.getBoundingClientRect();"
    seen += " return top >= 0 && bottom <= innerHeight; }"
    page.wait_for_function(f"({seen})(document.querySelector('.sentence'))")
    page.set_viewport_size(page.viewport_size | {"height": 844})


def looks(page):
    """For each French word the weights of all English ones, by choosing it."""
    found = []
    for word in page.locator("label.word").all():
        word.click()
        page.mouse.move(0, 0)
        found.append(shares(page, "span.word"))
    return torch.tensor(found)


def test_a_small_one_opens_with_the_first_example_translated_and_fetches_nothing(opened):
    page = opened(LISTENED + SMALL)
    assert french(page) == "le chat noir dort end"
    assert page.locator("span.word").count() == 5
    made, says = states(page)
    assert made.startswith("This answer came with the page.")
    assert "To write noir, it looks at black" in says
    assert page.locator(".sentence").inner_text() == "le chat noir dort"
    assert "head" not in page.locator(".translator").inner_text()  # a word of chapter 5
    assert page.locator(".heard").count() == 0
    assert page.get_by_text("How each word is chosen").count() == 0
    assert page.evaluate("said") == []
    first = looks(page)
    layer = translator_words()["head"]["layer"]
    told = [step["cross"][layer] for step in translator_words()["opening"]["steps"]]
    torch.testing.assert_close(first, torch.tensor(told).mean(dim=1), rtol=0, atol=1e-6)
    assert "To write end" in states(page)[1]
    assert set(page.evaluate("said")) == {"says"}
    assert not any(url.endswith("safetensors") for url in page.asked)
    translate(page)
    assert page.locator(".heard").inner_text() == "le chat noir dort."
    torch.testing.assert_close(looks(page), first, rtol=0, atol=2e-5)
    assert sum(url.endswith("safetensors") for url in page.asked) == 1
    page.get_by_role("button", name="Another sentence").click()
    page.get_by_role("radio", name="voit").wait_for()
    assert french(page) == "le chien voit le chat end"


def test_by_keyboard_alone(opened):
    page = opened(FULL)
    page.keyboard.press("Tab")
    box(page).fill("")
    page.keyboard.type("the bla")
    offered = page.get_by_role("listbox").get_by_role("option")
    assert offered.all_inner_texts() == ["black"]
    assert box(page).get_attribute("aria-expanded") == "true"
    page.keyboard.press("ArrowDown")
    active = box(page).get_attribute("aria-activedescendant")
    assert page.locator(f"#{active}").inner_text() == "black"
    page.keyboard.press("Enter")
    assert box(page).input_value() == "the black "
    page.keyboard.press("ArrowUp")  # the last of those that may follow
    page.keyboard.press("Enter")
    assert box(page).input_value() == "the black watches "
    page.keyboard.press("Escape")
    assert page.get_by_role("listbox").count() == 0
    page.keyboard.press("Backspace")
    page.keyboard.type(" are ")
    kinds = page.get_by_role("listbox").get_by_role("group")
    names = kinds.evaluate_all("all => all.map((e) => e.ariaLabel)")
    assert names == ["adjective", "adverb", "other words"]
    page.keyboard.type("new")
    page.keyboard.press("Enter")
    page.get_by_text("Written in").wait_for()
    assert page.get_by_role("listbox").count() == 0
    crosses = page.locator("label.word:has(:checked)").inner_text()
    assert crosses == french(page).split()[2]  # black, which stands before its noun in English
    seen = []
    for _ in range(8):
        page.keyboard.press("Tab")
        seen.append(page.evaluate(FOCUSED))
    controls = ["Translate", "Example", "Another sentence", "Clear", "the likeliest word"]
    choices = ["Decoder layer, counted from 0", "Head, counted from 0"]
    assert seen == [*controls, crosses, *choices]
    page.get_by_role("radio", name="<eos>").focus()
    for _ in range(2):
        page.keyboard.press("ArrowRight")
    checked = page.locator("label.word:has(:checked)").inner_text()
    assert checked == page.locator("label.word").nth(1).inner_text()
    everyone = "the heads of layer 1 (the second) together look at"
    assert f"To write {checked}, {everyone}" in states(page)[1]
    page.get_by_label("Head").select_option("0")
    assert f"To write {checked}, head 0 of layer 1 (the second) looks at" in states(page)[1]


def test_words_are_taken_from_the_list_by_a_tap_and_the_box_keeps_the_focus(opened):
    page = opened(FULL)
    page.get_by_role("button", name="Clear").click()
    box(page).click()
    for word in ("she", "does", "not", "often", "need", "an", "old", "watch"):
        page.get_by_role("option", name=word, exact=True).click()
        assert box(page).evaluate("e => e === document.activeElement")
    assert box(page).input_value() == "she does not often need an old watch "
    translate(page)
    assert french(page).startswith("elle n' a pas souvent besoin d' une vieille montre")
    sentence = page.locator(".sentence").inner_text()
    assert sentence.startswith("elle n'a pas souvent besoin d'une vieille montre")
    assert page.get_by_text("In training").count() == 0


def test_what_is_shown_is_what_pytorch_computes(opened):
    pair = grammar_pairs(1, seed=3)[0]
    model = trained(0).cpu()
    page = opened(FULL)
    translate(page, " ".join(pair.source))
    _, names = grammar_vocabularies()
    written = page.locator("label.word").all_inner_texts()
    target = [*names.encode(written[:-1]), 2]
    ((source, _),) = encoded([pair])
    logits, maps = in_pytorch(model, source, target)
    probabilities = logits.softmax(dim=-1)
    for layer, head in ((1, "0"), (0, "3"), (0, "mean")):
        page.get_by_label("Decoder layer").select_option(str(layer))
        page.get_by_label("Head").select_option(head)
        heads = maps["cross"][layer]
        weights = heads.mean(0) if head == "mean" else heads[int(head)]
        for t in (0, len(target) - 1):
            page.get_by_role("radio", name=written[t]).nth(0).check()
            assert shares(page, "span.word") == pytest.approx(weights[t].tolist(), abs=1e-4)
            top = probabilities[t].topk(5)
            assert shares(page, ".likely li") == pytest.approx(top.values.tolist(), abs=1e-4)
            shown = page.locator(".likely-word").all_inner_texts()
            assert shown[0] == names.words(top.indices.tolist())[0] == written[t]
    percents = page.locator("span.word .percent").all_inner_texts()
    rounded = [f"{100 * w:.0f}\xa0%" for w in weights[-1].tolist()]
    assert sum(a != b for a, b in zip(percents, rounded, strict=True)) <= 1  # 0.5 may round up


def test_a_word_is_looked_at_by_hovering_and_by_choosing(opened):
    page = opened(FULL)
    translate(page)
    resting = shares(page, "span.word")
    page.locator("label.word").nth(1).hover()
    hovered = shares(page, "span.word")
    assert hovered.index(max(hovered)) == 2 != resting.index(max(resting))
    page.mouse.move(0, 0)
    assert shares(page, "span.word") == resting
    page.locator("label.word").nth(1).click()
    page.mouse.move(0, 0)
    assert shares(page, "span.word") == hovered
    everyone = "the heads of layer 1 (the second) together look at"
    assert f"To write chat, {everyone} cat 100" in states(page)[1]


def test_an_unknown_word_is_marked_and_named_and_nothing_is_translated(opened):
    page = opened(FULL)
    translate(page)
    box(page).fill("The zebra sees a zebra and me.")
    page.get_by_role("button", name="Translate").click()
    assert page.locator("mark").all_inner_texts() == ["zebra", "and", "me"]
    assert box(page).get_attribute("aria-invalid") == "true"
    described = page.locator(f"#{box(page).get_attribute('aria-describedby')}").inner_text()
    assert described.endswith("does not know zebra, and, me.")
    assert "A sentence with an unknown word is not translated." in states(page)
    box(page).fill("The black cat sleeps.")
    assert page.locator("mark").count() == 0
    assert box(page).get_attribute("aria-invalid") == "false"
    translate(page)
    assert french(page).startswith("le chat noir dort")


def test_who_is_refused_is_offered_what_is_near_and_all_words(opened):
    page = opened(SMALL)
    box(page).fill("The quene sleeps")
    page.get_by_role("button", name="Translate").click()
    assert not page.locator(".written").is_visible()
    offered = page.locator(".help button").all_inner_texts()
    assert offered[0] == "the queen sleeps"
    assert len(offered) == 3
    page.get_by_text(f"Show the {len(SOURCE_WORDS)} words").click()
    listed = page.locator(".help details p span").all_inner_texts()
    assert {word for each in listed for word in each.split(", ")} == set(SOURCE_WORDS)
    page.get_by_role("button", name="queen", exact=True).click()
    page.get_by_text("Written in").wait_for()
    assert page.locator(".help *").count() == 0
    assert french(page).startswith("la reine dort")


def test_the_beginning_of_a_word_is_not_unknown_while_it_is_typed(opened):
    page = opened(FULL)
    for typed, unknown in (
        *(("The bla", []), ("The bla ", ["bla"]), ("The zeb", ["zeb"])),
        ("She doesn", []),
    ):
        box(page).fill(typed)
        assert page.locator("mark").all_inner_texts() == unknown


@pytest.mark.parametrize(
    ("sentence", "said"),
    [
        ("", "Write a sentence first."),
        ("the " * 32, "A sentence must have at most 31 words."),
        ("cat the sleep", "ms. In training, no sentence begins with cat."),
        (
            "she does not see some cats",
            "In training, no sentence begins with she does not see some.",
        ),
        ("the black cat", "ms. In training, no whole sentence is the black cat."),
        (
            "the old queen does not often see the black cats",
            "ms. In training, the model has never met old queen.",
        ),
    ],
)
def test_what_is_odd_is_said(opened, sentence, said):
    page = opened(FULL)
    box(page).fill(sentence)
    page.get_by_role("button", name="Translate").click()
    page.get_by_text(said).wait_for()
    assert page.locator(".written").is_visible() == ("In training" in said)


def test_a_failure_to_fetch_is_said_and_can_be_tried_again(opened):
    page = opened(SMALL, expected=["Failed to load resource"])
    page.route(WEIGHTS, lambda route: route.abort())
    page.get_by_role("button", name="Translate").click()
    page.get_by_text("The model could not be fetched").wait_for()
    page.unroute(WEIGHTS)
    page.route(WEIGHTS, lambda route: route.fulfill(status=404))
    page.get_by_role("button", name="Translate").click()
    page.get_by_text("(the server answered 404)").wait_for()
    page.unroute(WEIGHTS)
    translate(page)
    assert french(page) == "le chat noir dort end"


def negative(text):
    return float(text.replace("−", "-"))


def test_beams_show_what_they_set_aside(opened):
    page = opened(FULL)
    page.get_by_role("radio", name="beam search").check()
    page.get_by_label("Beams, K").select_option("3")
    translate(page)
    found = page.locator(".found li").all_inner_texts()
    assert len(found) >= 3
    number = r"−\d\.\d{3}"
    chance = r"(?:under )?0\.\d*[1-9]"
    told = rf"(.+) \(probability ({chance}), log-probability ({number}), score ({number})\)"
    first, *others = [re.fullmatch(told, each.replace("\xa0", " ")).groups() for each in found]
    assert first[:2] == ("le chat noir dort", "0.989")
    score = math.log(0.989) / ((5 + 5) / 6) ** 0.6  # Equation 10.2: five tokens, α = 0.6
    assert negative(first[3]) == pytest.approx(score, abs=1e-3)
    assert all(negative(each[3]) <= negative(first[3]) for each in others)
    page.get_by_label("Length penalty").select_option("0")
    assert "score" not in page.locator(".found").inner_text()
    assert page.get_by_text("What the beams have found, the likeliest first").is_visible()
    assert "without an end" not in page.locator(".found").inner_text()
    page.get_by_role("radio", name="the likeliest word").check()
    assert page.locator(".found li").count() == 0
    assert page.get_by_label("Beams, K").count() == 1  # hidden, but there
    assert not page.get_by_label("Beams, K").is_visible()


def test_what_does_not_end_says_so(opened):
    page = opened(FULL)
    translate(page, "key")
    assert "and stopped after 32 words without an end" in states(page)[0]
    page.get_by_role("radio", name="beam search").check()
    page.get_by_label("Beams, K").select_option("1")
    page.get_by_text("stopped without an end").wait_for()


def test_chance_writes_another_sentence_and_shows_what_it_draws_from(opened):
    page = opened(FULL)
    page.get_by_role("radio", name="by chance").check()
    page.get_by_role("slider", name="Temperature").fill("3")
    page.get_by_label("Top-k").select_option("5")
    translate(page)
    written = {french(page)}
    for _ in range(6):
        page.get_by_role("button", name="Again").click()
        written.add(french(page))
    assert len(written) > 3
    assert sum(shares(page, ".likely li")) == pytest.approx(1, abs=1e-5)  # of five
    title = page.locator(".written .title", has_text="Likeliest after")
    assert title.inner_text().endswith(", reshaped by temperature 3.0, top-k 5")
    page.get_by_label("Top-k").select_option("1")
    assert shares(page, ".likely li") == [1]  # the others cannot be drawn
    page.get_by_role("radio", name="the likeliest word").check()
    assert "reshaped" not in title.inner_text()
    assert len(shares(page, ".likely li")) == 5  # the model's own, of which none is cut
    assert page.locator(".likely [aria-current]").count() == 1


def test_what_no_longer_belongs_together_is_not_shown(opened):
    page = opened(FULL)
    example = page.get_by_label("Example")
    example.select_option("the dog sees the cat")
    page.get_by_text("Written in").wait_for()
    page.get_by_role("button", name="Another sentence").click()
    assert example.input_value() == box(page).input_value() == "the dog sees the cat"
    page.get_by_role("button", name="Another sentence").click()
    assert example.input_value() == box(page).input_value() == "the cat sees the dog"
    page.get_by_role("button", name="Clear").click()
    assert states(page)[0] == "Write a sentence, or choose an example."
    assert not page.locator(".written").is_visible()
    assert example.input_value() == ""
    translate(page, "we sleep")
    assert page.locator(".written").is_visible()
    assert example.input_value() == ""


def test_several_on_one_page_share_the_model_and_nothing_else(opened):
    page = opened(SMALL + FULL)
    first, second = page.locator(".book-translator").all()
    translate(first, "the dog sees the cat")
    assert second.locator("label.word").count() == 0
    translate(second, "we sleep")
    assert (french(first), french(second)) == ("le chien voit le chat end", "nous dormons <eos>")
    assert sum(url.endswith("safetensors") for url in page.asked) == 1


def test_a_long_sentence_stays_within_the_screen(opened):
    page = opened(FULL)
    long = "the beautiful swimming pool does not often need a lot of intelligent students"
    translate(page, f"{long} near the beautiful computers")  # "opened" looks at its width
