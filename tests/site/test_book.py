"""The built book as a reader meets it: ``make site-check`` builds it, and then runs this."""

import re

import lxml.html
import nbformat
import pytest

from tools.chapters import CHAPTERS
from transformer_book.claims import claims_of
from website import SITE

if not (SITE / "index.html").is_file():
    pytest.skip("there is no built site in _build/html: make book", allow_module_level=True)

SCALING = "chapters/04_scaling_and_masks.html"
WITH_TRANSLATOR = "chapters/09_training.html"


def words(text):
    return " ".join(text.split())


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_code_and_claims_of_a_chapter_are_on_its_page(path):
    cells = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    cells = [cell for cell in cells if "remove-cell" not in cell.metadata.get("tags", [])]
    html = (SITE / "chapters" / f"{path.stem}.html").read_text(encoding="utf-8")
    page = lxml.html.document_fromstring(html)
    inputs = page.xpath("//article//div[contains(@class, 'cell_input')]//pre")
    shown = [each.text_content().rstrip("\n") for each in inputs]
    assert shown == [cell.source.rstrip("\n") for cell in cells]
    ticks = page.xpath("//p[contains(@class, 'book-claim')]/span[2]")
    claims = [claim.text for cell in cells for claim in claims_of(cell.outputs)]
    assert [words(each.text_content()) for each in ticks] == [words(each) for each in claims]
    titles = [cell.metadata.mystnb.code_prompt_show for cell in cells if "mystnb" in cell.metadata]
    folds = page.xpath("//article//details[contains(@class, 'hide')]/summary")
    named = [each.get("aria-label", "").removeprefix("Code: ") or each.text for each in folds]
    assert {*named} <= {*titles}  # each fold has a title that the chapter gave it
    captions = page.xpath("//p[contains(@class, 'book-figure')]")
    drawn = [each for each in captions if each.getparent().get("class", "").startswith("book-cap")]
    assert drawn  # their code is behind a word at the caption's end
    assert {each.getnext().find("summary").text for each in drawn} == {"code"}


@pytest.fixture
def opened(browser, served):
    """Opens a page of the book; the test fails on an error of its scripts."""
    base = served(SITE)
    contexts, wrong = [], []

    def open_(address, width=1280, **options):
        contexts.append(browser.new_context(viewport={"width": width, "height": 844}, **options))
        page = contexts[-1].new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto(base + address)
        return page

    yield open_
    for context in contexts:
        context.close()
    assert wrong == []


def test_no_page_leads_to_a_placeholder():
    pages = SITE.rglob("*.html")
    assert [page.name for page in pages if "your_name" in page.read_text(encoding="utf-8")] == []


def test_a_page_is_described_by_its_question_up_to_a_whole_word():
    page = lxml.html.parse(str(SITE / SCALING))
    [asked] = page.xpath("//p[contains(@class, 'book-question')]")
    for name in ("@name='description'", "@property='og:description'"):
        [said] = page.xpath(f"//meta[{name}]/@content")
        assert said.endswith("…")
        assert 120 < len(said) <= 160
        assert said[:60] in words(asked.text_content())


def test_a_link_to_a_claim_in_a_fold_opens_the_fold(opened):
    page = opened("appendix/ledger.html")
    link = page.locator("a[href*='04_scaling'][href*='#claim-']").first
    place = link.get_attribute("href").split("#")[1]
    page.locator("details", has=link).locator("summary").click()
    link.click()
    page.locator(f"[id='{place}']").wait_for()  # it is seen


def brightness(page):
    """Of the paper, from 0 to 255."""
    colours = page.evaluate("""() => [document.body, document.documentElement]
        .map((each) => getComputedStyle(each).backgroundColor)""")
    first = next((each for each in colours if each != "rgba(0, 0, 0, 0)"), "rgb(255, 255, 255)")
    return float(re.findall(r"[\d.]+", first)[0])


def test_a_page_is_dark_where_the_reader_says_so_and_paper_is_light(opened):
    page = opened(SCALING, color_scheme="light")
    assert brightness(page) > 200
    for _ in range(3):  # light, dark, as the system has it
        if brightness(page) > 60:
            page.get_by_role("button", name="Color mode").click()
    page.wait_for_function("document.documentElement.dataset.theme === 'dark'")
    page.reload()
    page.wait_for_function("document.documentElement.dataset.theme === 'dark'")
    assert brightness(page) < 60
    page.evaluate("""addEventListener("beforeprint", () => {
        document.body.dataset.printed = document.documentElement.dataset.theme; })""")
    page.pdf()
    assert page.locator("body").get_attribute("data-printed") == "light"
    assert brightness(page) < 60


@pytest.mark.parametrize("width", [1280, 390])
def test_a_link_leads_to_its_place_whenever_it_is_followed(opened, width):
    there = """id => { const { top } = document.getElementById(id).getBoundingClientRect();
        return top > -5 && top < 200; }"""
    page = opened(f"{SCALING}#sec-4.4", width)
    page.wait_for_function(there, arg="sec-4.4")
    page = opened(SCALING, width)
    link = page.locator("article p > a[href^='#sec-']").first
    link.click()
    page.wait_for_function(there, arg=link.get_attribute("href").removeprefix("#"))


@pytest.mark.parametrize("width", [1280, 390])
def test_a_link_to_a_figure_leads_to_its_picture(opened, width):
    page = opened(f"{SCALING}#fig-4.10", width)
    page.wait_for_function("""() => {
        const { top, bottom } = document.getElementById("fig-4.10").querySelector("img")
            .getBoundingClientRect();
        const head = document.querySelector(".bd-header-article").getBoundingClientRect();
        return top >= head.bottom && bottom <= innerHeight; }""")


def test_a_search_begins_on_any_page_and_marks_what_it_found(opened):
    page = opened(SCALING)
    with page.expect_request("**/search_records.js"):  # before they are asked for anything
        page.get_by_role("button", name="Search").first.click()
    page.get_by_role("searchbox").first.fill("softmax saturates")
    page.keyboard.press("Enter")
    page.locator("#search-hits a[href*='chapters/']").first.click()
    page.locator(".highlighted").first.wait_for(state="attached")


def test_a_part_that_does_not_come_says_so(browser, served):
    page = browser.new_page()
    page.route("**/view.js", lambda route: route.abort())
    page.goto(served(SITE) + WITH_TRANSLATOR)
    page.locator(".book-translator").first.scroll_into_view_if_needed()
    page.get_by_text("could not be fetched; load the page again to try anew.").first.wait_for()
    page.close()


def test_a_page_that_is_opened_as_a_file_says_why_nothing_runs(browser):
    page = browser.new_page()
    page.goto((SITE / WITH_TRANSLATOR).as_uri())
    why = page.locator(".book-translator p", has_text="serve the site with make serve instead.")
    why.first.wait_for()
    page.close()
