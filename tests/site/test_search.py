"""What readers search, and the search page that asks for it."""

import pytest

from website import ROOT
from website.extensions.page_parts import PARTS, copy_part
from website.extensions.search_records import FOLDER, Record, records_of, write_index
from website.server import serve

PAGE = """<!DOCTYPE html><html><body><nav>Not searched</nav><article class="bd-article">
<section id="a-chapter"><h1>4. Masks<a class="headerlink" href="#">#</a></h1>
<p class="book-head">7 claims</p><p>Why hide a word?</p>
<section id="sec-4.2"><h2>4.2 Sure too soon</h2><p>A softmax of large scores is sure.</p>
<div class="cell"><div class="cell_input">secret_code()</div><div class="output">printed</div></div>
<section id="inner"><h3>An inner one</h3><p>About padding,
<math><msqrt><msub><mi>d</mi><mrow><mi>k</mi></mrow></msub></msqrt
><msubsup><mi>x</mi><mi>i</mi><mn>2</mn></msubsup></math>.</p></section></section></section>
</article></body></html>"""
GLOSSARY = """<!DOCTYPE html><html><body><article class="bd-article"><section id="glossary">
<h1>Glossary</h1><dl class="glossary"><dt id="term-mask">mask</dt><dt id="term-2">遮</dt>
<dd><p>Who may be seen.</p></dd>
<dt id="term-softmax">softmax</dt><dd><p>Makes weights.</p></dd></dl></article></body></html>"""
NAMES = """<!DOCTYPE html><html><body><article class="bd-article"><section id="package">
<h1>The package</h1><p>All of it.</p><dl class="py function">
<dt class="sig" id="transformer.masks.causal_mask">causal_mask(n)</dt><dd><p>A mask.</p></dd></dl>
</section></article></body></html>"""
PAGES = {
    "chapters/04_masks.html": PAGE,
    "appendix/glossary.html": GLOSSARY,
    "appendix/api.html": NAMES,
}
SEARCH = """<!DOCTYPE html><html lang="en" data-content_root="./"><meta charset="utf-8">
<title>Search</title><div class="bd-search-container"><input name="q" aria-label="Search">
<p id="search-says" role="status"></p><div id="search-results"></div></div>
<script type="module" src="_static/search.js"></script></html>"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder with three pages, their index and a search page."""
    folder = tmp_path_factory.mktemp("site")
    for name, page in PAGES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(page, encoding="utf-8")
    write_index((r for name in PAGES for r in records_of(folder / name, folder)), folder / FOLDER)
    script = ROOT / "website" / "static" / "search.js"
    (folder / "_static" / "search.js").write_text(script.read_text(encoding="utf-8"))
    (folder / "search.html").write_text(SEARCH, encoding="utf-8")
    return folder


def test_a_record_is_a_section_in_its_own_words(site):
    found = list(records_of(site / "chapters/04_masks.html", site))
    here = "chapters/04_masks.html"
    assert found == [
        Record(here, "4. Masks", "", "Why hide a word?", "chapter"),
        Record(f"{here}#sec-4.2", "4.2 Sure too soon", "4. Masks",
               "A softmax of large scores is sure.", "chapter"),
        Record(f"{here}#inner", "An inner one", "4. Masks", "About padding, √d_kx_i^2.", "chapter"),
    ]  # fmt: skip


def test_a_term_is_a_record_with_its_other_name_and_what_it_means(site):
    terms = [r for r in records_of(site / "appendix/glossary.html", site) if r.kind == "term"]
    address = "appendix/glossary.html#term-"
    assert terms == [
        Record(f"{address}mask", "mask", "Glossary", "遮 Who may be seen.", "term"),
        Record(f"{address}softmax", "softmax", "Glossary", "Makes weights.", "term"),
    ]


def test_a_name_of_the_package_is_a_record_and_its_docstring_stands_in_no_other(site):
    page, name = records_of(site / "appendix/api.html", site)
    assert (page.kind, page.text) == ("appendix", "All of it.")
    assert (name.kind, name.title) == ("name", "causal_mask")
    assert name.text == "transformer.masks.causal_mask A mask."


@pytest.fixture
def asked(site, browser):
    """The search page once it has answered, for some words; no error may be logged."""
    server, base = serve(site)
    pages = []

    def asked(words):
        page = browser.new_page()
        pages.append(page)
        page.errors = []
        page.on("pageerror", lambda error: page.errors.append(str(error)))
        page.goto(f"{base}search.html?q={words}")
        page.locator("#search-results[aria-busy=false]").or_(
            page.get_by_text("could not be read")
        ).wait_for(state="attached")
        return page

    yield asked
    for page in pages:
        assert page.errors == []
        page.close()
    server.shutdown()
    server.server_close()


def links(page):
    return page.locator("#search-results a").evaluate_all(
        "all => all.map((a) => [a.textContent, a.getAttribute('href').replace(/.*127[^/]*/, '')])"
    )


def test_terms_come_first_then_sections_then_names_and_each_leads_to_its_place(asked):
    page = asked("mask")
    assert page.locator("h2").all_inner_texts() == [
        *("In the glossary", "In the chapters", "In the package"),
    ]
    found = links(page)
    assert found[:2] == [
        ["mask", "/appendix/glossary.html?highlight=mask#term-mask"],
        ["4. Masks", "/chapters/04_masks.html?highlight=mask"],
    ]
    name = ["causal_mask", "/appendix/api.html?highlight=mask#transformer.masks.causal_mask"]
    assert found[-1] == name
    assert page.get_by_role("status").inner_text() == f"{len(found)} places with “mask”."


def test_a_dotted_id_is_no_error_and_what_is_found_is_marked_in_prose(asked):
    page = asked("softmax sure")
    assert links(page)[0][1] == "/chapters/04_masks.html?highlight=softmax+sure#sec-4.2"
    assert "secret_code" not in page.inner_text("#search-results")
    marked = {word.lower().strip(".") for word in page.locator("mark").all_inner_texts()}
    assert marked == {"softmax", "sure"}


def test_a_name_that_is_written_as_code_comes_first(asked):
    page = asked("causal_mask")
    assert page.locator("h2").first.inner_text() == "In the package"


@pytest.mark.parametrize("words", ["√d_k", "sqrt(d_k)", "SQRT d", "√d"])
def test_a_root_is_found_as_it_is_typed(asked, words):
    assert links(asked(words))[0][1].endswith("#inner")


def test_what_is_nowhere_is_said(asked):
    page = asked("zebra")
    said = page.get_by_role("status").inner_text()
    assert said == "Nothing has all words of “zebra”. Try fewer, or one of the glossary."
    assert links(page) == []


def test_without_an_index_the_page_says_so(asked, site):
    (site / FOLDER / "pagefind.js").rename(site / "away.js")
    try:
        assert "The index could not be read" in asked("mask").get_by_role("status").inner_text()
    finally:
        (site / "away.js").rename(site / FOLDER / "pagefind.js")


def test_the_words_of_a_record_cannot_become_elements(tmp_path, browser):
    record = Record("a.html", "<b>one</b>", "", "two <script>throw 1</script> three", "chapter")
    write_index([record], tmp_path / FOLDER)
    (tmp_path / "_static" / "search.js").write_text(
        (ROOT / "website" / "static" / "search.js").read_text(encoding="utf-8")
    )
    (tmp_path / "search.html").write_text(SEARCH, encoding="utf-8")
    server, base = serve(tmp_path)
    page = browser.new_page()
    page.goto(f"{base}search.html?q=three")
    page.locator("#search-results li").wait_for()
    assert page.locator("#search-results a").inner_text() == "<b>one</b>"
    assert page.locator("#search-results script").count() == 0
    assert "<script>" in page.locator(".context").inner_text()
    page.close()
    server.shutdown()
    server.server_close()


LEDGER = """<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>Ledger</title>
<main><section>
<div class="book-ledger"><p>On the site.</p></div>
<section id="one"><h2>Chapter 1. One<a href="#one">#</a></h2>
<details><summary>2 claims</summary><table><tbody>
<tr><td>1.1</td><td><a href="#a">the mean is right</a></td><td>identity</td></tr>
<tr><td>1.2</td><td><a href="#b">the mean is learned</a></td><td>experiment, 3 seeds, 90 steps</td>
</tr></tbody></table></details></section>
<section id="two"><h2>Chapter 2. Two</h2><details><summary>1 claim</summary><table><tbody>
<tr><td>2.1</td><td><a href="#c">a mask hides</a></td><td>theorem</td></tr></tbody></table>
</details></section></section></main>
<script type="module" src="ledger/filter.js"></script></html>"""


@pytest.fixture
def ledger(tmp_path, browser):
    copy_part(PARTS["book-ledger"], tmp_path)
    (tmp_path / "page.html").write_text(LEDGER, encoding="utf-8")
    server, base = serve(tmp_path)
    page = browser.new_page()
    page.goto(f"{base}page.html")
    page.get_by_role("status").wait_for()
    yield page
    page.close()
    server.shutdown()
    server.server_close()


def shown_claims(page):
    rows = page.locator("tbody tr").filter(visible=True)
    return [row.split("\t")[0] for row in rows.all_inner_texts()], status_of(page)


def status_of(page):
    return page.get_by_role("status").inner_text()


def test_the_ledger_shows_the_claims_of_a_chapter_a_kind_a_budget_and_some_words(ledger):
    assert shown_claims(ledger) == ([], "all 3 claims")  # each chapter is folded
    ledger.get_by_label("Chapter").select_option("Chapter 1. One")
    assert shown_claims(ledger) == (["1.1", "1.2"], "2 of 3 claims")
    ledger.get_by_label("Kind").select_option("experiment")
    assert shown_claims(ledger) == (["1.2"], "1 of 3 claims")
    ledger.get_by_label("Chapter").select_option("all")
    ledger.get_by_label("Kind").select_option("all")
    ledger.get_by_label("Budget").select_option("several seeds")
    assert shown_claims(ledger) == (["1.2"], "1 of 3 claims")
    ledger.get_by_label("Budget").select_option("any")
    ledger.get_by_label("Words").fill("Mean right")
    assert shown_claims(ledger) == (["1.1"], "1 of 3 claims")
    assert not ledger.locator("#two h2").is_visible()
    ledger.get_by_label("Words").fill("zebra")
    assert shown_claims(ledger) == ([], "0 of 3 claims")
