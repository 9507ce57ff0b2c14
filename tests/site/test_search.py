"""What readers search, and the search page that asks for it."""

import re
import shutil

import pytest
from jinja2 import Template
from sphinx.errors import ExtensionError

from website import ROOT
from website.extensions import search_records
from website.extensions.page_parts import PARTS, copy_part
from website.extensions.search_records import FILE, Record, records_of, write_records

PAGE = """<!DOCTYPE html><html><body><nav>Not searched</nav><article class="bd-article">
<section id="a-chapter"><h1>4. Masks<a class="headerlink" href="#">#</a></h1>
<p class="book-head">7 claims</p><p class="happy">Why hide a word?</p>
<section id="sec-4.2"><h2>4.2 Sure too soon</h2><p>A softmax of large scores is sure.</p>
<div class="cell"><div class="highlight">secret_code()</div><div class="output">printed</div></div>
<section id="inner"><h3>An inner one</h3><p>About padding,
<math><msqrt><msub><mi>d</mi><mrow><mi>k</mi></mrow></msub></msqrt
><msubsup><mi>x</mi><mi>i</mi><mn>2</mn></msubsup></math>.</p></section></section></section>
</article></body></html>"""
GLOSSARY = """<!DOCTYPE html><html><body><article class="bd-article"><section id="glossary">
<h1>Glossary</h1><dl class="glossary"><dt id="term-mask">mask</dt><dt id="term-2">遮</dt>
<dd><p>Who may be seen.</p></dd>
<dt id="term-softmax">softmax</dt><dd><p>Makes weights.</p></dd>
<dt id="term-fast">FastSoftmax</dt><dd><p>A softmax of softmax by softmax.</p></dd></dl></article>
</body></html>"""
NAMES = """<!DOCTYPE html><html><body><article class="bd-article"><section id="package">
<h1>The package</h1><p>All of it.</p><dl class="py function">
<dt class="sig" id="transformer.masks.causal_mask">causal_mask(n)</dt><dd><p>A mask.</p></dd></dl>
</section></article></body></html>"""
INDEX = """<!DOCTYPE html><html><body><article class="bd-article"><section id="Z"><h1>Z</h1>
<p>zebra</p></section></article></body></html>"""
STRANGE = """<!DOCTYPE html><html><body><article class="bd-article"><section id="s">
<h1>&lt;b>one</h1><p>two &lt;script>throw 1&lt;/script> three</p></section></article></html>"""
YAKS = """<!DOCTYPE html><html><body><article class="bd-article"><section id="y"><h1>Yaks</h1>
{}</section></article></body></html>""".format(
    "".join(f'<section id="y{n}"><h2>Yak {n}</h2><p>A yak.</p></section>' for n in range(4))
)
PAGES = {
    "intro.html": STRANGE,
    "genindex.html": INDEX,
    "chapters/04_masks.html": PAGE,
    "appendix/glossary.html": GLOSSARY,
    "appendix/api.html": NAMES,
    "appendix/yaks.html": YAKS,
}
SYNONYMS = {
    "chapters/04_masks.html#sec-4.2": "garbage, masks hide",
    "appendix/glossary.html#term-softmax": "squash",
}
STATIC = ROOT / "website" / "static"
TEMPLATE = (ROOT / "website" / "theme" / "search.html").read_text(encoding="utf-8")
(BLOCK,) = re.findall(r"{% block scripts %}(.*?){%- endblock %}", TEMPLATE, flags=re.DOTALL)
SCRIPTS = Template(BLOCK).render(pathto=lambda path, _: path)
SEARCH = f"""<!DOCTYPE html><html lang="en" data-content_root="./"><meta charset="utf-8">
<title>Search</title><div class="bd-search-container"><input name="q" aria-label="Search">
<p id="search-says" role="status"></p><div id="search-hits"></div></div>{SCRIPTS}</html>"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder with five pages and an index, their records and a search page."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(STATIC / "vendor", folder / "_static" / "vendor")
    shutil.copy(STATIC / "search.js", folder / "_static")
    for name, page in {**PAGES, "search.html": SEARCH}.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(page, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search_records, "SYNONYMS", SYNONYMS)
        write_records(folder)
    return folder


def test_a_record_is_a_section_in_its_own_words(site, monkeypatch):
    monkeypatch.setattr(search_records, "SYNONYMS", SYNONYMS)
    found = list(records_of(site / "chapters/04_masks.html", site))
    here = "chapters/04_masks.html"
    assert found == [
        Record(here, "4. Masks", "", "Why hide a word?", "chapter"),
        Record(f"{here}#sec-4.2", "4.2 Sure too soon", "4. Masks",
               "A softmax of large scores is sure.", "chapter", "garbage, masks hide"),
        Record(f"{here}#inner", "An inner one", "4. Masks", "About padding, √d_kx_i^2.", "chapter"),
    ]  # fmt: skip


def test_a_term_is_a_record_with_its_other_names_and_what_it_means(site, monkeypatch):
    monkeypatch.setattr(search_records, "SYNONYMS", SYNONYMS)
    terms = [r for r in records_of(site / "appendix/glossary.html", site) if r.kind == "term"]
    address = "appendix/glossary.html#term-"
    assert terms == [
        Record(f"{address}mask", "mask", "Glossary", "遮 Who may be seen.", "term", "遮"),
        Record(f"{address}softmax", "softmax", "Glossary", "Makes weights.", "term", "squash"),
        Record(
            f"{address}fast", "FastSoftmax", "Glossary", "A softmax of softmax by softmax.", "term"
        ),
    ]


def test_a_name_of_the_package_is_a_record_and_its_docstring_stands_in_no_other(site):
    page, name = records_of(site / "appendix/api.html", site)
    assert (page.kind, page.text) == ("appendix", "All of it.")
    assert (name.kind, name.title) == ("name", "causal_mask")
    assert name.text == "transformer.masks.causal_mask A mask."


def test_words_of_learners_that_lead_nowhere_stop_the_build(site):
    with pytest.raises(ExtensionError, match=r"the_text_is_bad\.html, "):
        write_records(site)


@pytest.fixture
def asked(site, browser, served):
    """The search page once it has answered, for some words; no error may be logged."""
    pages, errors = [], []

    def asked(words, base=None):
        pages.append(browser.new_page())
        pages[-1].on("pageerror", lambda error: errors.append(str(error)))
        pages[-1].goto(f"{base or served(site)}search.html?q={words}")
        pages[-1].get_by_role("status").filter(has_text=".").wait_for()
        return pages[-1]

    yield asked
    for page in pages:
        page.close()
    assert errors == []


def status_of(page):
    return page.get_by_role("status").inner_text()


def links(page):
    return page.locator("#search-hits a").evaluate_all(
        "all => all.map((a) => [a.textContent, a.href.replace(/.*(?=chapters|appendix)/, '')])"
    )


def test_what_fits_comes_first_in_groups_and_each_hit_names_its_page_and_leads_to_its_place(asked):
    page = asked("mask")
    assert page.locator("h2").all_inner_texts() == [
        *("In the glossary", "In the chapters", "In the package"),
    ]
    found = links(page)
    assert found[:2] == [
        ["mask", "appendix/glossary.html?highlight=mask#term-mask"],
        ["4. Masks", "chapters/04_masks.html?highlight=mask"],
    ]
    name = [
        "causal_mask",
        "appendix/api.html?highlight=mask+masks.causal_mask#transformer.masks.causal_mask",
    ]
    assert found[-1] == name
    assert "mask Glossary" in page.locator("li").first.inner_text()
    assert status_of(page) == f"{len(found)} places with “mask”."


def test_all_that_a_group_has_can_be_shown(asked):
    page = asked("yak")
    assert len(links(page)) == 3
    assert page.get_by_role("button").all_inner_texts() == ["All 4"]
    page.get_by_role("button").click()
    places = [f"appendix/yaks.html?highlight=yak#y{n}" for n in range(4)]
    assert sorted(address for _, address in links(page)) == places
    assert page.get_by_role("button").count() == 0


def test_what_is_found_is_marked_in_prose(asked):
    page = asked("softmax sure")
    assert links(page)[0][1] == "chapters/04_masks.html?highlight=softmax+sure#sec-4.2"
    assert "secret_code" not in page.inner_text("#search-hits")
    assert page.locator("li").first.locator("mark").all_inner_texts() == ["softmax", "sure"]


@pytest.mark.parametrize(
    ("words", "place"),
    [
        ("causal_mask", "causal_mask"),  # a name that is written as code
        ("masks", "term-mask"),
        ("√d_k", "inner"),
        ("sqrt(d_k)", "inner"),
        ("SQRT d", "inner"),
        ("√d", "inner"),
        ("遮", "term-mask"),
        ("sofmtax", "term-softmax"),  # spelt nearly so; it stands more often elsewhere
        ("what do masks hide", "sec-4.2"),  # of learners, though a title has the word
        ("squash", "term-softmax"),
        ("padding zebra", "inner"),  # no place has both
        ("garbage", "sec-4.2"),  # of learners
    ],
)
def test_words_lead_to_their_place(asked, words, place):
    assert links(asked(words))[0][1].endswith(place)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("zebra", "No places with “zebra”."),  # it stands under a letter of the index alone
        ("padding zebra", "No places with “padding zebra”; 1 with some words, or like them."),
        ("why is my softmax needed vs the purpose of scores", "1 place with"),  # little words
    ],
)
def test_how_many_places_there_are_is_said(asked, words, said):
    assert status_of(asked(words)).startswith(said)


def test_a_page_that_was_opened_as_a_file_searches(asked, site):
    assert links(asked("padding", base=f"{site.as_uri()}/"))[0][1].endswith("#inner")


def test_without_its_records_the_page_says_so(asked, site):
    (site / FILE).rename(site / "away.js")
    try:
        page = asked("mask")
    finally:
        (site / "away.js").rename(site / FILE)
    assert "The search does not run (RECORDS is" in status_of(page)


def test_the_words_of_a_record_cannot_become_elements(asked):
    page = asked("throw")
    assert page.locator("#search-hits a").inner_text() == "<b>one"
    assert page.locator("#search-hits script").count() == 0
    assert "two <script>throw 1</script> three" in page.locator(".context").inner_text()


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
def ledger(tmp_path, browser, served):
    copy_part(PARTS["book-ledger"], tmp_path)
    (tmp_path / "page.html").write_text(LEDGER, encoding="utf-8")
    page = browser.new_page()
    page.goto(f"{served(tmp_path)}page.html")
    page.get_by_role("status").wait_for()
    yield page
    page.close()


def shown_claims(page):
    rows = page.locator("tbody tr").filter(visible=True)
    return [row.split("\t")[0] for row in rows.all_inner_texts()], status_of(page)


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
