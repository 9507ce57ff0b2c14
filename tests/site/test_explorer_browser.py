"""The explorer in a real browser, on a wide light screen and on a narrow dark one."""

import pytest
import torch

from tests.book.test_explorer import HOSTILE, SCALE, SOURCE, TARGET, cat, explored
from tests.site.conftest import watched
from transformer.config import TransformerConfig
from transformer.data.grammar import grammar_pairs, grammar_vocabularies
from transformer.metrics import alignment_accuracy
from transformer.model import Transformer
from transformer_book.explorer import Explored, explore, from_model
from website.checks.site_check import SCREENS

PAGE = """<!DOCTYPE html><html lang="en" {attributes}><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width"><title>Try</title>
<style>div, table, td {{ color: red; width: 3000px }} {style}</style></head>
<body style="margin: 8px">{body}</body></html>"""
LEAKY = "div { width: auto !important }"  # the page's own styles stay outside


@pytest.fixture(scope="module", params=SCREENS, ids=lambda screen: f"{screen[0]}-{screen[1]}")
def screen(request, browser):
    """A page for all tests, as to make one takes long, and its scheme."""
    width, scheme = request.param
    page = browser.new_page(viewport={"width": width, "height": 844}, color_scheme=scheme)
    yield page, scheme
    page.close()


@pytest.fixture
def opened(screen):
    """Opens HTML in a page that is watched."""
    page, scheme = screen

    def open_(*outputs, attributes=""):
        body = "\n".join(output.data for output in outputs)
        page.set_content(PAGE.format(attributes=attributes, style=LEAKY, body=body))
        return page

    open_.scheme = scheme
    with watched(page):
        yield open_
    page.mouse.move(0, 0)  # away from the words of the next test
    page.goto("about:blank")


def numbers(weights):
    return [[str(int(w * 100 + 0.5)) for w in row] for row in weights.double().tolist()]


def rounded(weights):
    return (weights.double() * SCALE).round() / SCALE


def choose(page, name):
    return page.get_by_role("combobox", name=name, exact=True)


def table(page):
    return [
        line.get_by_role("cell").all_inner_texts() for line in page.get_by_role("row").all()[1:]
    ]


def current(page):
    """Which row of the table is marked, which word is checked."""
    is_marked = "rows => rows.findIndex(row => row.getAttribute('aria-current') === 'true') - 1"
    is_checked = "radios => radios.findIndex(radio => radio.checked)"
    return (
        page.get_by_role("row").evaluate_all(is_marked),
        page.get_by_role("radio").evaluate_all(is_checked),
    )


def focused(page):
    return page.evaluate(
        "(e => [e.tagName, e.name || e.getAttribute('role')])"
        "(document.querySelector('[data-explorer]').shadowRoot.activeElement)"
    )


def test_it_opens_on_the_start_with_a_table_of_headers_and_weights(opened):
    sentence = cat()
    page = opened(explore([sentence], start=("cross", 1, 1)))
    assert table(page) == numbers(rounded(sentence.maps["cross"][1, 1]))
    headers = page.get_by_role("columnheader").all_inner_texts()
    assert headers == ["the", "black", "cat", "<eos>"]
    scopes = "headers => headers.map(header => header.scope)"
    assert page.get_by_role("rowheader").evaluate_all(scopes) == ["row"] * 4
    assert page.get_by_role("columnheader").evaluate_all(scopes) == ["col"] * 4
    page.get_by_role("rowheader", name="<bos> , next le").wait_for()
    page.get_by_role("table", name="cross-attention, layer 1, head 1", exact=True).wait_for()
    page.get_by_role("region", name="Attention explorer").wait_for()
    values = [choose(page, n).input_value() for n in ("Sentence", "Attention", "Layer", "Head")]
    assert values == ["0", "cross", "1", "1"]


def test_by_keyboard_alone(opened):
    sentences = [cat(), cat(seed=1)]
    page = opened(explore(sentences))
    seen = []
    for _ in range(6):
        page.keyboard.press("Tab")
        seen.append(focused(page))
    assert seen == [
        *(["SELECT", name] for name in ("sentence", "kind", "layer", "head")),
        *(["INPUT", "word"], ["DIV", "region"]),
    ]
    for _ in range(4):
        page.keyboard.press("Shift+Tab")
    page.keyboard.press("ArrowUp")  # decoder self-attention
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowUp")  # layer 1
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")  # head 1
    page.keyboard.press("Tab")
    assert focused(page) == ["INPUT", "word"]
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert table(page) == numbers(rounded(sentences[0].maps["decoder"][1, 1]))
    assert current(page) == (2, 2)
    page.get_by_role("radio", name="chat , next noir", checked=True).wait_for()
    for _ in range(4):
        page.keyboard.press("Shift+Tab")
    page.keyboard.press("ArrowDown")  # the other sentence; layer and head stay
    assert focused(page) == ["SELECT", "sentence"]
    assert table(page) == numbers(rounded(sentences[1].maps["decoder"][1, 1]))


def test_by_click_and_by_pointer(opened):
    sentence = cat()
    page = opened(explore([sentence], start=("cross", 0, 0)))
    choose(page, "Head").select_option("1")
    choose(page, "Layer").select_option("2")
    weights = numbers(rounded(sentence.maps["cross"][2, 1]))
    assert table(page) == weights
    radios = page.get_by_role("radio")
    target = radios.nth(2).bounding_box()  # all of the button, and large enough for a finger
    assert target["height"] > 40 < target["width"]
    radios.nth(2).click()
    assert current(page) == (2, 2)
    shown = page.get_by_role("list").locator(".percent").all_inner_texts()
    assert shown == weights[2]
    radios.nth(0).hover()  # looks, and goes back
    assert page.get_by_role("list").locator(".percent").all_inner_texts() == weights[0]
    assert current(page) == (0, 2)
    choose(page, "Head").hover()
    assert page.get_by_role("list").locator(".percent").all_inner_texts() == weights[2]
    page.get_by_role("row").nth(2).click()
    assert current(page) == (1, 1)


def test_what_the_live_region_says(opened):
    rows = [[0.1, 0.2, 0.7, 0], [0.6, 0.3, 0.05, 0.05], [0, 0, 0, 1], [0, 0, 0, 0]]
    cross = torch.tensor([[rows, rows[::-1]]])
    gold = {(0, 0), (1, 2), (2, 0)}
    page = opened(explore([Explored(SOURCE, TARGET, {"cross": cross}, gold)]))
    says = page.get_by_role("status")

    def said():
        return says.inner_text().replace("\xa0", " ")

    assert said() == (
        "Having read <bos>, with le to write, this head looks at "
        "cat 70 %, black 20 %, the 10 %. Gold alignment: the, cat."
    )
    page.get_by_role("radio").nth(1).check()
    assert said() == (
        "Having read le, with chat to write, this head looks at "
        "the 60 %, black 30 %, cat 5 %. Gold alignment: none."
    )
    page.get_by_role("radio").nth(3).check()
    assert said() == "Having read noir, with <eos> to write, this head looks at nothing."
    choose(page, "Head").select_option("mean")
    assert table(page)[0] == ["5", "10", "35", "0"]
    assert "the heads together look at cat 35 %, black 10 %, the 5 %." in said()
    assert says.locator("[lang=en]").all_inner_texts() == ["cat", "black", "the"]
    assert says.locator("[lang=fr]").all_inner_texts() == ["noir", "<eos>"]


def test_gold_is_marked_by_a_shape_and_counted_as_the_metric_counts(opened):
    vocabularies = grammar_vocabularies()
    torch.manual_seed(0)
    sizes = {"d_model": 32, "d_ff": 16, "max_len": 32}
    model = Transformer(TransformerConfig.tiny(*map(len, vocabularies), **sizes))
    pairs = grammar_pairs(4, seed=0)
    sentences = from_model(model, pairs, vocabularies)
    page = opened(explore(sentences))
    for i, (pair, sentence) in enumerate(zip(pairs, sentences, strict=True)):
        choose(page, "Sentence").select_option(str(i))
        ids = [
            torch.tensor([[*v.encode(words), 2]])
            for v, words in zip(vocabularies, (pair.source, pair.target), strict=True)
        ]
        tgt = torch.cat([torch.tensor([[1]]), ids[1]], dim=1)
        linked = len({j for _, j in pair.alignment})
        for head, weights in (("2", lambda w: w[:, 2]), ("mean", lambda w: w.mean(1))):
            choose(page, "Head").select_option(head)
            last = weights(rounded(sentence.maps["cross"]))[-1:].float()
            share = alignment_accuracy(last, [pair.alignment], src=ids[0], tgt=tgt)
            text = f"that have one, {round(share * linked)} of {linked} look most at it"
            assert text in page.locator(".title").inner_text()
        assert page.get_by_role("table").get_by_role("img", name="gold").count() == len(
            pair.alignment
        )
        assert choose(page, "Sentence").locator("option").nth(i).inner_text() == " ".join(
            pair.source
        )


def test_words_are_shown_as_they_are(opened):
    page = opened(explore([explored(HOSTILE, ["<bos>", *HOSTILE], gold={(0, 0)})]))
    shown = (
        page.get_by_role("columnheader")
        .locator("span")
        .evaluate_all("spans => spans.map(span => span.textContent)")
    )
    assert shown == list(HOSTILE)
    assert page.locator("[data-explorer] b:not([lang])").count() == 0


def test_several_on_one_page_do_not_disturb_each_other(opened):
    first, second = cat(), cat(seed=1)
    page = opened(explore([first]), explore([second]), explore([first]))
    a, b, same = page.locator("[data-explorer]").all()
    choose(a, "Head").select_option("1")
    a.get_by_role("radio").nth(2).click()
    assert table(a) == numbers(rounded(first.maps["cross"][2, 1]))
    assert table(b) == numbers(rounded(second.maps["cross"][2, 0]))
    assert table(same) == numbers(rounded(first.maps["cross"][2, 0]))
    assert [current(explorer) for explorer in (a, b, same)] == [(2, 2), (0, 0), (0, 0)]


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        *(("", None), ('data-theme="auto"', None), ('data-theme="dark"', "dark")),
        *(('data-theme="light"', "light"), ('theme="dark"', "dark")),
    ],
)
def test_it_is_dark_where_the_page_says_so_and_else_as_the_system(opened, attributes, said):
    page = opened(explore([cat()]), attributes=attributes)
    section = page.get_by_role("region", name="Attention explorer")

    def scheme():
        style = "e => [getComputedStyle(e).backgroundColor, getComputedStyle(e).color]"
        paper, ink = section.evaluate(style)
        assert paper != ink
        return {"rgb(255, 255, 255)": "light", "rgb(20, 24, 30)": "dark"}[paper]

    assert scheme() == (said or opened.scheme)
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    assert scheme() == "dark"
    page.emulate_media(media="print")
    assert scheme() == "light"
    page.emulate_media(media="screen")
    page.evaluate("document.documentElement.dataset.theme = 'light'")
    assert scheme() == "light"
