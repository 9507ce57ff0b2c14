"""Cells that a page has folded away: taken out, put together again, and filled in by a browser."""

from pathlib import Path
from types import SimpleNamespace

import jinja2
import lxml.html
import pytest
import sphinx
import sphinx_copybutton
from sphinx.errors import ExtensionError

from website import ROOT
from website.checks.links import dead_links
from website.editions.pages import read
from website.extensions import folded_cells
from website.extensions.bundles import BUTTONS, MARKS, mended
from website.extensions.folded_cells import (
    beside,
    is_folded,
    put_together,
    take_cells_out,
    taken_apart,
    whole,
)
from website.hosting import serve

NOTE = "<details>\n<summary>How sure is this?</summary>\n<p>Very.</p></details>\n"
WORDS = "<p>Some words that an edition needs to be one.</p>" * 9


def fold(title, inside, classes="hide"):
    head = f'<details class="{classes}">\n<summary>{title}</summary>\n'
    return f'<div class="cell">{head}{inside}</details>\n</div>\n'


def code(text):
    return f'<div class="highlight"><pre>{text}</pre></div>\n'


DEEP = f"{code('outer')}<details><summary>s</summary>{code('inner')}</details>{code('after')}"
CELLS = (
    fold("One &lt; two", f'{code("first word")}<p id="claim-a">✓ a</p>\n'),
    fold("Deep", DEEP, "wide hide"),
    fold("Runs", "<script>let a = 1;</script>"),
    fold("Drawn", '<div class="book-living" data-figure="depth"></div>'),
    fold("One again", code("first word")),
)
# One, once the page has been loaded, as scheme.js has it come.
SCRIPT = """<script>
addEventListener("load", () => {
  document.head.append(Object.assign(document.createElement("script"), { src: "site.js" }));
});
</script>"""
COUNTS = """window.buttons = window.measured = 0;
window.bookCopyButtons = (part) => (buttons += part.querySelectorAll("pre").length);
window.bookTabStops = () => measured++;"""
FAR = '<div style="height: 3000px"></div>'
PAGE = f"""<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">
<title>4. Masks &#8212; The book</title>
<link rel="icon" href="data:,">
<script>const DOCUMENTATION_OPTIONS = {{}}</script>{SCRIPT}</head><body><main>
<article class="bd-article"><section id="top">
<h1>4. Masks</h1>{WORDS}<p><a href="#claim-a">a</a></p>{NOTE}{FAR}{"".join(CELLS)}</section>
</article>
</main></body></html>"""


@pytest.fixture
def low(monkeypatch):
    monkeypatch.setattr(folded_cells, "FEWEST", 10)


def scripts(others):
    """The site's script, with ``others`` in the place of what comes after these."""
    theirs = Path(sphinx.package_dir) / "themes" / "basic" / "static"
    parts = (
        (theirs / "doctools.js").read_text(encoding="utf-8"),
        (ROOT / "website" / "static" / "folded.js").read_text(encoding="utf-8"),
        mended(theirs / "sphinx_highlight.js", MARKS),
        others,
    )
    return "\n;\n".join(parts)


@pytest.fixture
def site(tmp_path, low):
    """A page with its cells beside it, as a build leaves them, and the scripts that they need.

    Of two it is counted what they do.
    """
    folder = tmp_path / "site"
    (folder / "chapters").mkdir(parents=True)
    (folder / "chapters" / "site.js").write_text(scripts(COUNTS), encoding="utf-8")
    page = folder / "chapters" / "04.html"
    page.write_text(PAGE, encoding="utf-8")
    builder = SimpleNamespace(name="html", get_outfilename=lambda name: folder / f"{name}.html")
    env = SimpleNamespace(found_docs=["chapters/04", "chapters/not_written"])
    app = SimpleNamespace(builder=builder, env=env, outdir=folder)
    take_cells_out(app, None)
    first = page.read_text("utf-8"), beside(page).read_text("utf-8")
    take_cells_out(app, None)  # again, as for a page that a second build has not written anew
    assert first == (page.read_text("utf-8"), beside(page).read_text("utf-8"))
    return folder


def test_what_is_taken_apart_can_be_put_together(low):
    page, cells = taken_apart(PAGE, "04.folded.html")
    assert page.count('<p class="book-folded">') == 3
    assert put_together(page, cells) == PAGE
    for inside in ("first word", "outer", "inner", "after"):
        assert inside not in page
        assert inside in cells
    for stays in ("How sure is this?", "Very.", "let a = 1", "data-figure", "One &lt; two"):
        assert stays in page
    with pytest.raises(KeyError, match="cell-"):
        put_together(page, "")


def test_a_page_with_little_in_its_folds_stays_whole_and_a_fold_has_an_end():
    assert taken_apart(PAGE, "04.folded.html") == (PAGE, "")
    with pytest.raises(ExtensionError, match="has no end"):
        taken_apart(PAGE.replace("</details>", ""), "04.folded.html")


def test_a_cell_s_name_changes_with_what_is_in_it(low):
    names = [
        folded_cells.STUBS.findall(taken_apart(page, "x")[0])
        for page in (PAGE, PAGE.replace("outer", "other"))
    ]
    assert [a == b for a, b in zip(*names, strict=True)] == [True, False, True]


def test_the_cells_have_a_page_of_their_own_that_belongs_to_the_first(site):
    page = lxml.html.parse(str(site / "chapters" / "04.folded.html")).getroot()
    assert page.findtext("head/title") == page.findtext(".//h1") == "What is folded in 4. Masks"
    assert page.find("head/base").get("href") == "04.html"
    assert page.xpath("//h2/text()") == ["One < two", "Deep", "One again"]
    assert page.xpath("//link[@rel='stylesheet']/@href") == ["../_static/site.css"]
    stubs = lxml.html.parse(str(site / "chapters" / "04.html")).xpath(
        "//p[@class='book-folded']/a/@href"
    )
    assert stubs == [f"04.folded.html#{section.get('id')}" for section in page.iter("section")]


def test_editions_and_checks_read_the_page_as_it_was(site):
    assert whole(site / "chapters" / "04.html") == PAGE
    assert "inner" in read(site, "chapters/04", "").body.text_content()
    assert is_folded(site / "chapters" / "04.folded.html")
    assert dead_links(site) == []  # and so #claim-a is there, once


def test_a_file_that_is_left_from_an_older_build_goes(site, monkeypatch):
    page = site / "chapters" / "04.html"
    page.write_text(whole(page), encoding="utf-8")
    monkeypatch.setattr(folded_cells, "FEWEST", 10**6)
    builder = SimpleNamespace(name="html", get_outfilename=lambda name: page)
    env = SimpleNamespace(found_docs=["chapters/04"])
    take_cells_out(SimpleNamespace(builder=builder, env=env, outdir=site), None)
    assert not beside(page).exists()
    assert page.read_text(encoding="utf-8") == PAGE


# What a browser does with it.


@pytest.fixture
def opened(site, browser):
    """Opens the page, and sees that no script fails."""
    server, base = serve(site)
    contexts = []

    def opened(address="", before=None, **options):
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.errors = []
        page.on("pageerror", lambda error: page.errors.append(str(error)))
        if before:
            before(page)
        page.goto(f"{base}chapters/04.html{address}")
        return page

    yield opened
    for context in contexts:
        assert [page.errors for page in context.pages] == [[]] * len(context.pages)
        context.close()
    server.shutdown()
    server.server_close()


def bytes_are_dear(page):
    """Nothing is fetched before it is asked for."""
    page.add_init_script(
        "Object.defineProperty(navigator, 'connection', { value: { saveData: true } })"
    )


def filled(page):
    page.wait_for_function("!document.querySelector('.book-folded')")


def test_all_folds_are_filled_when_the_page_is_at_rest(opened):
    page = opened()
    filled(page)
    assert page.evaluate("[buttons, measured]") == [5, 1]  # blocks of code in the three cells
    said = page.locator("article").evaluate("article => article.textContent")
    assert " ".join(said.split()) == " ".join(lxml.html.fromstring(PAGE).find(".//article")
                                              .text_content().split())  # fmt: skip


def test_a_fold_that_is_opened_is_filled_at_once_and_no_other_where_bytes_are_dear(opened):
    page = opened(before=bytes_are_dear)
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(200)
    assert page.locator(".book-folded").count() == 3
    page.get_by_text("Deep", exact=True).click()
    page.get_by_text("outer").wait_for()
    assert page.locator(".book-folded").count() == 2
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    filled(page)


def test_a_link_to_what_is_in_a_fold_opens_it_from_outside_and_inside(opened):
    outside = opened("#claim-a", before=bytes_are_dear)
    inside = opened(before=bytes_are_dear)
    inside.get_by_role("link", name="a", exact=True).click()
    for page in (outside, inside):
        place = page.locator("#claim-a:target")
        place.wait_for(state="visible")
        assert place.evaluate("place => place.closest('details').open")


def test_the_words_of_a_search_are_marked_in_folds_too(opened):
    page = opened("?highlight=word")
    filled(page)
    marked = page.locator("details .highlighted")
    assert marked.evaluate_all("all => all.map((one) => one.textContent)") == ["word", "word"]


def test_without_scripts_or_without_the_file_a_fold_leads_to_the_other_page(opened, site):
    page = opened(java_script_enabled=False)
    page.get_by_text("Deep", exact=True).click()
    page.locator("details[open] .book-folded a").click()
    page.get_by_text("inner").wait_for(state="attached")
    assert page.url.partition("#")[0].endswith("04.folded.html")

    beside(site / "chapters" / "04.html").unlink()
    page = opened()
    page.get_by_text("Deep", exact=True).click()
    page.locator("details[open] .book-folded a").wait_for()
    page.wait_for_load_state("networkidle")
    assert page.locator(".book-folded").count() == 3


def test_a_cell_that_has_changed_since_keeps_its_link(opened, site):
    other = beside(site / "chapters" / "04.html")
    name = folded_cells.STUBS.findall((site / "chapters" / "04.html").read_text("utf-8"))[1]
    text = other.read_text(encoding="utf-8")
    other.write_text(text.replace(f'id="{name}"', 'id="cell-0"'), encoding="utf-8")
    page = opened()
    page.wait_for_function("document.querySelectorAll('.book-folded').length === 1")
    page.wait_for_timeout(100)
    assert page.locator(".book-folded a").get_attribute("href").endswith(name)


def test_who_comes_back_is_where_they_were_and_no_place_is_no_error(opened):
    page = opened("#claim-a")
    page.locator("#claim-a").wait_for(state="visible")
    page.evaluate("scrollTo({ top: 0, behavior: 'instant' })")
    page.reload()
    filled(page)
    page.wait_for_timeout(100)
    assert page.evaluate("scrollY") == 0
    filled(opened("#100%"))


def test_a_fold_that_was_opened_before_the_script_came_is_filled(opened):
    def opened_early(page):
        bytes_are_dear(page)
        page.add_init_script(
            "new MutationObserver(() => { const fold = document.querySelector('details.hide');"
            " if (fold) fold.open = true; }).observe(document, { childList: true, subtree: true })"
        )

    page = opened(before=opened_early)
    page.get_by_text("first word").wait_for()
    assert page.locator(".book-folded").count() == 2


def test_each_block_of_code_has_one_button_whenever_it_comes(opened, site):
    (path,) = Path(sphinx_copybutton.__file__).parent.rglob("copybutton.js_t")
    yes_or_no = ("prompt_is_regexp", "only_copy_prompt_lines", "remove_prompts", "copy_empty_lines")
    settings = {f"copybutton_{name}": True for name in yes_or_no}
    settings["copybutton_selector"] = "div.highlight pre"
    real = jinja2.Template(mended(path, BUTTONS)).render(settings)
    theirs = "window.ClipboardJS = class { on() {} }; window.bookTabStops = () => {};\n"
    (site / "chapters" / "site.js").write_text(scripts(theirs + real), encoding="utf-8")
    for address in ("", "#claim-a"):  # filled at rest, or before the page has its buttons
        page = opened(address)
        filled(page)
        page.wait_for_function("document.querySelectorAll('.copybtn').length > 4")
        page.wait_for_timeout(200)
        ids = page.locator("pre").evaluate_all("all => all.map((pre) => pre.id)")
        assert len(ids) == len({*ids}) == page.locator(".copybtn").count() == 5
