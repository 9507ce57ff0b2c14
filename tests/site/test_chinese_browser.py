"""The Chinese edition as a reader meets it: ``make zh`` builds it, beside the English site."""

import pytest

from website import SITE

if not (SITE / "zh" / "index.html").is_file():
    pytest.skip("there is no Chinese site in _build/html/zh: make zh", allow_module_level=True)

PLACES = {
    "intro": "the-map",
    "chapters/00_the_whole_picture": "sec-0.2",
    "chapters/03_queries_keys_values": "sec-3.5",
    "chapters/04_scaling_and_masks": "eq-4.2",
    "chapters/06_positions": "fig-6.6",
    "chapters/08_the_transformer": "ex-8.2",
    "chapters/12_looking_inside": "sec-12.3",
    "chapters/one_evening": "four-heads-are-better-than-one",
    "chapters/the_text_is_bad": "the-wrong-axis",
    "appendix/errata": "scaling-and-masks",
}
IN_VIEW = """place => {
    const at = document.getElementById(place)?.getBoundingClientRect();
    return at && at.top > -2 && at.top < 120; // as the switch has it
}"""
SPEAKS = r"part => part.innerText.match(/\p{Script=Han}/gu)?.length > 40"


@pytest.fixture(scope="module", params=[1280, 390])
def page(request, browser, served):
    """A wide page, and a narrow one; nothing may go wrong on it."""
    page = browser.new_page(viewport={"width": request.param, "height": 844})
    page.base = served(SITE)
    wrong = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    yield page
    page.close()
    assert wrong == []


@pytest.mark.parametrize("name", PLACES)
def test_the_switch_leads_to_the_same_place_both_ways(page, name):
    place = PLACES[name]
    page.goto(f"{page.base}{name}.html#{place}")
    for language in ("中文", "English"):
        page.wait_for_function(IN_VIEW, arg=place)
        link = page.get_by_role("link", name=language, exact=True).bounding_box()
        with page.expect_navigation():
            page.mouse.click(link["x"] + 9, link["y"] + 9)  # click() would scroll first
        into = "/zh/" if language == "中文" else "/"
        assert page.url == f"{page.base[:-1]}{into}{name}.html#{place}"
    page.wait_for_function(IN_VIEW, arg=place)


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("因果掩码", "appendix/glossary.html#term-causal-mask"),
        ("用softmax做注意力", "chapters/"),
        ("KV缓存", "chapters/10_decoding.html"),
        ("石头剪刀布", "chapters/03_queries_keys_values.html"),
        ("为什么除以根号", "chapters/04_scaling_and_masks.html"),
        ("causal mask", "appendix/glossary.html#term-causal-mask"),
    ],
)
def test_a_search_in_chinese_finds_the_place(page, asked, found):
    page.goto(f"{page.base}zh/search.html?q={asked}")
    page.wait_for_selector("#search-hits a")
    links = "links => links.map(({ pathname, hash }) => pathname + hash)"
    hits = page.eval_on_selector_all("#search-hits a", links)
    assert any(found in hit for hit in hits[:3])


@pytest.mark.parametrize("name", ["film", "living", "translator"])
def test_film_figures_and_translator_speak_chinese(page, name):
    where = {"film": "00_the_whole_picture", "living": "04_scaling_and_masks"}
    page.goto(f"{page.base}zh/chapters/{where.get(name, '09_training')}.html")
    part = page.locator(f".book-{name}").first
    part.scroll_into_view_if_needed()
    page.wait_for_function(SPEAKS, arg=part.element_handle())
