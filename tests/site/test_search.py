"""What readers search, and the search page that asks for it."""

import re

import lxml.html
import pytest
from docutils import nodes
from sphinx.addnodes import glossary

from website import ROOT
from website.extensions.letters import add_letters
from website.extensions.page_parts import PARTS, copy_part
from website.extensions.search_records import FOLDER, Record, records_of, write_index
from website.hosting import serve

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


def test_a_glossary_has_a_letter_for_its_first_terms():
    document = nodes.document(None, None)
    entries = glossary()
    definitions = nodes.definition_list()
    for name in ("add", "attention", "mask"):
        item = nodes.definition_list_item()
        item += nodes.term("", name, ids=[f"term-{name}"])
        definitions += item
    entries += definitions
    document += entries
    definitions["classes"] = ["simple", "glossary"]
    add_letters(None, document)
    row = document.children[0]
    assert [(r.astext(), r["refid"]) for r in row.findall(nodes.reference)] == [
        ("A", "term-add"),
        ("M", "term-mask"),
    ]
    lists = list(document.findall(nodes.definition_list))
    assert [[term.astext() for term in one.findall(nodes.term)] for one in lists] == [
        ["add", "attention"],
        ["mask"],
    ]
    assert {tuple(one["classes"]) for one in lists} == {("simple", "glossary")}


LETTERED = """<!DOCTYPE html><html><meta charset="utf-8"><style>STYLE
:root { --pst-color-background: white } body { margin: 0 }
header { background: white; height: HEADpx; position: sticky; top: 0; z-index: 1020 }</style>
<header>The page's head</header><article class="bd-article" style="height: 3000px">
<p class="book-letters"><a href="#a">A</a></p><p>Terms</p></article></html>"""


@pytest.mark.parametrize("head", [48, 56])  # as it is on a wide page, and on a phone
def test_a_glossarys_letters_stay_in_reach_below_the_pages_head(browser, head):
    style = (ROOT / "website" / "static" / "lookup.css").read_text(encoding="utf-8")
    page = browser.new_page(viewport={"width": 390, "height": 600})
    page.set_content(LETTERED.replace("STYLE", style).replace("HEAD", str(head)))
    page.evaluate("scrollTo(0, 1500)")
    top = page.locator(".book-letters a").evaluate("a => a.getBoundingClientRect().top")
    assert head <= top < head + 16
    page.close()


LONG = """<!DOCTYPE html><html><meta charset="utf-8"><style>section { height: 900px }
.pst-scrollable-table-container { width: 100px; overflow: auto }
#pst-secondary-sidebar { height: 50px; position: fixed; overflow: auto }
a { display: block }</style>
<div id="pst-secondary-sidebar"><nav id="pst-page-toc-nav"><a href="#one">1</a>
<a href="#name" style="padding-bottom: 300px">a name in it</a><a href="#sec-1.2">2</a></nav></div>
<main>
<section id="x"><span id="one"></span><h2>1</h2><b id="name"></b>
<div class="pst-scrollable-table-container"><p style="width: 300px">wide</p></div>
<div class="pst-scrollable-table-container"><p style="width: 50px">narrow</p></div></section>
<section id="sec-1.2"><h2>2</h2></section></main><script>SCRIPT; bookTabStops()</script></html>"""


def test_the_contents_mark_the_section_that_is_read_and_only_wide_boxes_take_the_focus(browser):
    script = (ROOT / "website" / "static" / "place.js").read_text(encoding="utf-8")
    page = browser.new_page(viewport={"width": 800, "height": 600})
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.set_content(LONG.replace("SCRIPT", script))
    marked = "a[aria-current=true]"
    page.locator(marked).wait_for()
    assert page.locator(marked).all_inner_texts() == ["1"]
    page.wait_for_function("document.querySelector('[tabindex=\"-1\"]')")
    wide, narrow = page.locator(".pst-scrollable-table-container").all()
    assert (wide.get_attribute("tabindex"), narrow.get_attribute("tabindex")) == ("0", "-1")
    narrow.locator("p").evaluate("p => { p.style.width = '150px'; bookTabStops() }")
    page.wait_for_function("document.querySelectorAll('[tabindex=\"0\"]').length === 2")
    page.evaluate("document.getElementById('sec-1.2').scrollIntoView()")
    page.wait_for_function("document.querySelector('a[aria-current]')?.textContent === '2'")
    assert page.locator(marked).count() == 1
    frame = page.locator("#pst-secondary-sidebar").bounding_box()
    link = page.locator(marked).bounding_box()
    assert frame["y"] <= link["y"] < frame["y"] + frame["height"]
    page.evaluate("document.getElementById('x').scrollIntoView()")
    page.wait_for_function("document.querySelector('a[aria-current]')?.textContent === '1'")
    assert page.locator("#pst-secondary-sidebar").evaluate("e => e.scrollTop") == 0
    page.evaluate("""() => {
        const dialog = document.body.appendChild(document.createElement('dialog'));
        dialog.append(document.querySelector('nav'));  // as the theme does on a phone
        document.getElementById('sec-1.2').scrollIntoView();
    }""")
    page.wait_for_function("document.querySelector('a[aria-current]')?.textContent === '2'")
    assert errors == []
    page.close()


def test_what_the_search_page_needs_is_in_it():
    page = (ROOT / "website" / "theme" / "search.html").read_text(encoding="utf-8")
    script = (ROOT / "website" / "static" / "search.js").read_text(encoding="utf-8")
    for name in re.findall(r'getElementById\("([\w-]+)"\)', script):
        assert f'id="{name}"' in page
    assert lxml.html.fromstring(SEARCH).xpath("//*[@id='search-says']")


LEDGER = """<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>Ledger</title>
<main><section>
<div class="book-ledger"><p>On the site.</p></div>
<section id="one"><h2>Chapter 1. One<a href="#one">#</a></h2><table><tbody>
<tr><td>1.1</td><td><a href="#a">the mean is right</a></td><td>identity</td></tr>
<tr><td>1.2</td><td><a href="#b">the mean is learned</a></td><td>experiment, 3 seeds, 90 steps</td>
</tr></tbody></table></section>
<section id="two"><h2>Chapter 2. Two</h2><table><tbody>
<tr><td>2.1</td><td><a href="#c">a mask hides</a></td><td>theorem</td></tr></tbody></table>
</section></section></main><script type="module" src="ledger/filter.js"></script></html>"""


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
    assert shown_claims(ledger) == (["1.1", "1.2", "2.1"], "all 3 claims")
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
