"""The extensions that make the site's pages: styles, scripts, formulas, ✓ lines, words."""

import re
import shutil
from types import SimpleNamespace

import nbformat
import pytest
import tinycss2
from docutils import nodes
from docutils.utils import new_document
from sphinx.errors import ExtensionError
from sphinx.jinja2glue import BuiltinTemplateLoader

from tools.chapters import CHAPTERS, ROOT
from transformer_book.claims import Claim
from website.checks.site_check import serve
from website.extensions import lean_pages, page_parts
from website.extensions.formulas import mathml
from website.extensions.head_words import cut
from website.extensions.lean_files import (
    LEFT_BY_THE_THEME,
    UNUSED,
    lean,
    mended,
    plain,
    stamp_pages,
)
from website.extensions.lean_pages import (
    NEEDED,
    SCHEME,
    LeanPages,
    lean_head,
    nothing_in_vain,
    size_of,
    with_lines,
    with_names,
    with_sizes,
)
from website.extensions.next_page import questions
from website.extensions.ticks import set_ticks


def leaned(css, *known, ours=False):
    rules = tinycss2.parse_stylesheet(css, skip_comments=True, skip_whitespace=True)
    return lean(rules, set(known), ours)


def test_a_rule_that_no_page_uses_goes_and_one_that_a_page_uses_stays():
    css = (
        ".used, .unused > p { color: red } .unused { x: y } #place { x: z } p:not(.unused) { a: b }"
    )
    left = leaned(css, "used", "place")
    assert left.split("\n") == [".used{color: red}", "#place{x: z}", "p:not(.unused){a: b}"]


def test_rules_inside_of_media_go_too():
    assert leaned("@media print { .gone { a: b } }") == ""
    assert ".here{a: b}" in leaned("@media print { .here { a: b } }", "here")


def test_the_icon_font_goes_and_our_icons_stay():
    css = '@font-face { font-family: Font Awesome\\ 6 Free; src: url("x") } .fa-bars { --icon: x }'
    assert leaned(css, "fa-bars") == ""
    assert ".fa-bars{--icon: x}" in leaned(css, "fa-bars", ours=True)


def test_a_style_sheet_that_cannot_be_read_stops_the_build():
    with pytest.raises(ExtensionError, match="cannot be read"):
        leaned("p { color: red } }")


def test_a_rule_of_ours_that_no_page_uses_stops_the_build():
    assert leaned(".here, p { a: b }", "here", ours=True) == ".here,p{a: b}"
    with pytest.raises(ExtensionError, match=r"no page has \.gone of a style sheet of ours"):
        leaned("@media print { .here, .gone { a: b } }", "here", ours=True)


def test_paper_is_light_whatever_the_screen_is(browser):
    css = 'html[data-theme="light"] p { color: rgb(1, 1, 1) }'
    css += 'html[data-theme="dark"] p { color: rgb(9, 9, 9) }'
    page = browser.new_page()
    colours = {}
    for scheme in ("dark", "light", "auto"):
        page.set_content(f'<html data-theme="{scheme}"><style>{leaned(css)}</style><p>a</p></html>')
        for medium in ("screen", "print"):
            page.emulate_media(media=medium)
            found = page.evaluate("getComputedStyle(document.querySelector('p')).color")
            colours[scheme, medium] = found
    page.close()
    dark = colours.pop(("dark", "screen"))
    assert dark == "rgb(9, 9, 9)"
    assert set(colours.values()) == {"rgb(1, 1, 1)"}  # without JavaScript it stays auto


def test_a_script_that_has_changed_upstream_stops_the_build(tmp_path):
    script = tmp_path / "theme.js"
    script.write_text("a(old)")
    assert mended(script, {"old": "new(old)"}) == "a(new(old))"
    script.write_text("a(new(old))")
    assert mended(script, {"old": "new(old)"}) == "a(new(old))"
    script.write_text("a(other)")
    with pytest.raises(ExtensionError, match="has no old"):
        mended(script, {"old": "new(old)"})


def test_the_name_of_a_style_sheet_has_no_digest():
    assert plain(f"mystnb.{'a1' * 32}.css") == "mystnb.css"
    assert plain("book.css") == "book.css"


def test_a_page_names_its_styles_and_scripts_by_what_is_in_them(tmp_path):
    (tmp_path / "_static").mkdir()
    (tmp_path / "in").mkdir()
    files = [tmp_path / name for name in ("_static/site.css", "_static/a.js", "searchindex.js")]
    tags = '<link href="../_static/site.css"><script src="../_static/a.js?v=1"></script>'
    tags += '<script src="../searchindex.js"></script>'
    others = '<a href="b.html"><img src="../_static/c.svg"><script>"_static/d.js"</script>'
    page = tmp_path / "in" / "page.html"
    page.write_text(tags + others)
    seen = []
    for content in ("old", "new", "new", "old"):
        for path in files:
            path.write_text(content)
        stamp_pages(tmp_path)
        seen.append(re.findall(r'"\.\./([\w./]+)\?v=(\w{8})"', page.read_text()))
    assert [name for name, _ in seen[0]] == [p.relative_to(tmp_path).as_posix() for p in files]
    assert seen[0] == seen[3]
    assert seen[1] == seen[2]
    assert not {v for _, v in seen[0]} & {v for _, v in seen[1]}
    assert page.read_text().endswith(others)


def parts_built_in(folder):
    """As much of Sphinx as copy_parts and outdated ask for; the name of the parts' folder."""
    builder = SimpleNamespace(name="html", get_outfilename=lambda page: folder / f"{page}.html")
    app = SimpleNamespace(builder=builder, outdir=folder)
    page_parts.copy_parts(app)
    return app, page_parts.parts_of(app).name


def test_modules_stand_in_a_folder_that_changes_its_name_with_any_of_them(tmp_path, monkeypatch):
    site = tmp_path / "_site"
    shutil.copytree(page_parts.SITE, site)
    monkeypatch.setattr(page_parts, "SITE", site)
    _, first = parts_built_in(tmp_path / "html")
    assert parts_built_in(tmp_path / "html")[1] == first
    for changed in ("when_near.js", "living/scaling.js", "translator/translator.css"):
        text = (site / changed).read_text(encoding="utf-8")
        (site / changed).write_text(text.swapcase(), encoding="utf-8")  # as long as before
        _, name = parts_built_in(tmp_path / "html")
        assert name != first
        first = name
    left = {path.name for path in (tmp_path / "html" / "_static").iterdir()}
    assert left == {name}


def test_a_page_that_names_an_older_folder_is_made_anew(tmp_path):
    app, name = parts_built_in(tmp_path)
    (tmp_path / "old.html").write_text('<link href="_static/parts-0123abcd/living/living.css">')
    (tmp_path / "new.html").write_text(f'<link href="_static/{name}/living/living.css">')
    (tmp_path / "none.html").write_text("text")
    env = SimpleNamespace(found_docs={"old", "new", "none", "not_written_yet"})
    assert page_parts.outdated(app, env, set(), set(), set()) == ["old"]


HEAD = """<html><head><meta charset="utf-8" /><meta name="viewport" content="x" />
<script>document.documentElement.dataset.mode = 1;</script>
<link rel="stylesheet" href="../_static/styles/pydata-sphinx-theme.css?digest=1" />
<link rel="stylesheet" href="../_static/parts-1a/translator/translator.css?v=1" />
<link rel="preload" as="script" href="../_static/scripts/bootstrap.js?digest=1" />
<link rel="icon" href="../_static/logo.svg"/>
<script src="../_static/doctools.js?v=1"></script>
<script defer="defer" src="../_static/parts-1a/opened_as_file.js?v=1"></script>
<script src="../searchindex.js"></script></head><body>text
<script type="module">import { whenNear } from "../_static/parts-1a/when_near.js";
whenNear(".book-translator", "translator/view.js", []);</script></body></html>"""


def test_a_page_loads_one_style_sheet_and_one_script_and_what_is_its_own():
    page = lean_head(HEAD, "../", searches=False)
    gone = ("pydata", "bootstrap", "doctools", "searchindex", "dataset.mode = 1")
    assert [word for word in gone if word in page] == []
    own = ("parts-1a/translator/translator.css", "parts-1a/opened_as_file.js")
    kept = (*own, '<script type="module">import { whenNear }', "logo.svg")
    assert [word for word in kept if word not in page] == []
    assert page.count("_static/site.css") == page.count("_static/site.js") == 1
    assert page.count("viewport") == 1
    assert min(map(page.index, own)) > page.index("text")  # which does not wait for them


RAW = """<meta name="viewport" content="width=device-width" /><title>A &#8212; A</title>
<meta name="docsearch:language" content="en" /> <div id="ethical-ad-placement"></div>
<script>document.documentElement.dataset.mode = 1;</script>
<script>DOCUMENTATION_OPTIONS.pagename = DOCUMENTATION_OPTIONS.search_as_you_type = 1;</script>
<link href="_static/mystnb.0a1b.css?v=1">
<script src="_static/design-tabs.js"></script>
<script src="_static/scripts/fontawesome.js?digest=1"></script><main role="main">
<div id="pst-primary-sidebar"></div><button class="theme-switch-button">
<button class="sidebar-toggle primary-toggle"><button class="sidebar-toggle secondary-toggle">
<p role="doc-biblioentry"><summary aria-label="Toggle hidden content">
<div role="list" class="citation-list"><th class="head"><p></p></th>
<dt id="term-x">注意力</dt><img style="width: 1px; height: 2px;">
<div class="highlight-ipython3 notranslate"><div class="highlight"><pre><span></span>
<span class="n">a</span></pre>"""


def ended(folder, page, written, found):
    """What nothing_in_vain says at the end of a build of this page."""
    pages = LeanPages()
    pages.written, pages.in_vain = written, dict(NEEDED)
    pages.note(page)
    builder = SimpleNamespace(name="html", templates=pages)
    app = SimpleNamespace(builder=builder, outdir=folder, env=SimpleNamespace(found_docs=found))
    try:
        nothing_in_vain(app, None)
    except ExtensionError as error:
        return str(error)
    return ""


@pytest.fixture
def with_the_rest(tmp_path):
    for name in LEFT_BY_THE_THEME:
        (tmp_path / "_static" / name).mkdir(parents=True)
    return tmp_path


def test_all_that_is_looked_for_is_needed():
    groups = (lean_pages.INLINE, lean_pages.NOT_OURS, lean_pages.NAMES, lean_pages.ROLES)
    assert {*UNUSED, *(name for group in groups for name in group)} <= NEEDED.keys()
    single = ("VIEWPORT", "STYLED", "CODE", "UNCOLOURED", "TERM", "TITLE")
    assert all(NEEDED[name] is getattr(lean_pages, name) for name in single)


def test_what_the_theme_writes_is_needed_and_found(with_the_rest):
    assert ended(with_the_rest, RAW, {"a", "b", "search"}, {"a", "b"}) == ""


@pytest.mark.parametrize("name", NEEDED)
def test_a_change_of_the_theme_that_leaves_a_pattern_without_work_stops_the_build(
    with_the_rest, name
):
    page = RAW
    while found := NEEDED[name].search(page):
        page = page[: found.start()] + page[found.end() :]
    said = ended(with_the_rest, page, {"a", "b"}, {"a", "b"})
    assert said.startswith("the theme has changed: no page has ")
    assert name in said
    assert ended(with_the_rest, page, {"a"}, {"a", "b"}) == ""  # b may have it


def test_each_page_that_is_written_is_looked_at(monkeypatch):
    page = f'<meta charset="utf-8" />{RAW}</html>'
    monkeypatch.setattr(BuiltinTemplateLoader, "render", lambda *_: page)
    pages = LeanPages()
    pages.builder = SimpleNamespace(name="html", images={}, srcdir=".")
    pages.written, pages.in_vain = set(), dict(NEEDED)
    pages.render("page.html", {"pagename": "a", "pathto": lambda *_: ""})
    assert (pages.written, pages.in_vain) == ({"a"}, {})


@pytest.mark.parametrize("name", LEFT_BY_THE_THEME)
def test_what_the_theme_leaves_no_more_need_not_be_deleted(with_the_rest, name):
    (with_the_rest / "_static" / name).rmdir()
    assert f"_static/{name}" in ended(with_the_rest, RAW, {"a"}, {"a"})


def test_the_search_index_is_loaded_by_the_page_that_searches():
    assert '<script defer src="../searchindex.js">' in lean_head(HEAD, "../", searches=True)


def test_pictures_keep_their_place_and_wait(tmp_path):
    svg = '<svg xmlns="http://www.w3.org/2000/svg" width="525" height="168"></svg>'
    (tmp_path / "a.svg").write_text(svg)
    page = '<img alt="a" src="../_images/x.svg" /><img alt="b" src="../_images/x.svg" />'
    first, second = with_sizes(page, {"x.svg": tmp_path / "a.svg"}, tmp_path).split("/>")[:2]
    assert 'width="525" height="168"' in first
    assert "lazy" not in first
    assert 'width="525" height="168" loading="lazy"' in second


def test_a_picture_that_does_not_say_its_size_is_an_error(tmp_path):
    (tmp_path / "b.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"></svg>')
    with pytest.raises(ValueError, match=r"b\.svg does not say how large it is"):
        size_of(tmp_path / "b.svg")


def test_code_keeps_its_text_when_its_lines_get_elements():
    code = '<span class="n">a</span> <span class="o">=</span> <span class="mi">1</span>\n\nb\n'
    page = (
        '<div class="highlight-ipython3 notranslate"><div class="highlight">'
        f"<pre><span></span>{code}</pre>"
    )
    made = with_lines(page)
    assert made.count('<span class="book-line">') == 3
    assert 'class="n"' not in made
    assert 'class="o"' in made  # an operator has a colour of its own
    assert nodes.unescape(text_of(made)) == text_of(page)


def text_of(page):
    import lxml.html

    return lxml.html.fromstring(page).text_content()


def test_a_fold_is_called_by_its_title():
    assert with_names('<summary aria-label="Toggle hidden content">') == "<summary>"


def test_a_title_says_a_name_once_and_chinese_is_called_chinese():
    page = with_names('<title>A &#8212; A</title><dt id="term-x">注意力</dt><dt id="y">attention')
    assert "<title>A</title>" in page
    assert '<dt lang="zh-Hans" id="term-x">' in page
    assert '<dt id="y">' in page


def test_descriptions_end_with_a_whole_word():
    assert cut("short") == "short"
    assert cut("one two, three", 11) == "one two…"
    assert cut("one two three", 10) == "one two…"
    assert all(len(cut("word " * 90, n)) <= n for n in range(10, 200))


def test_formulas_are_set_when_the_site_is_built():
    made = mathml(r"\begin{aligned} a &= \operatorname{diag}(b) \\ c &= \log d \end{aligned}", True)
    assert made.startswith("<math")
    assert made.count("<mtr>") == 2
    assert "&" not in made.replace("&amp;", "")


def test_a_formula_that_cannot_be_set_stops_the_build():
    with pytest.raises(ExtensionError, match=r"\\\\frac\{a' cannot be set"):
        mathml(r"\frac{a")


class App:
    """As much of Sphinx's application as set_ticks asks for."""

    def __init__(self, page, notebook=""):
        domain = SimpleNamespace(anonlabels={})
        self.env = SimpleNamespace(
            docname=page, get_domain=lambda name: domain, doc2path=lambda name: notebook
        )


@pytest.fixture
def with_ticks(tmp_path):
    """The page of a chapter, each cell a list of what it printed and of its claims."""

    def with_ticks(*cells):
        document = new_document("chapter")
        section = nodes.section(ids=["title"])
        section += nodes.title("", "1. Title")
        notebook = nbformat.v4.new_notebook()
        for outputs in cells:
            cell, inner = nodes.container(classes=["cell"]), nodes.container()
            stored = []
            for output in outputs:
                kind = "stream" if isinstance(output, str) else "text_plain"
                text = output if isinstance(output, str) else repr(output)
                block = nodes.literal_block(text, text, classes=["output", kind])
                if isinstance(output, Claim):  # as myst_nb wraps what has a MIME type
                    data = output._repr_mimebundle_()
                    stored.append(nbformat.v4.new_output("display_data", data))
                    inner += nodes.container("", nodes.container("", block))
                else:
                    inner += block
            notebook.cells.append(nbformat.v4.new_code_cell("", outputs=stored))
            cell += inner
            section += cell
        document += section
        nbformat.write(notebook, tmp_path / "01_x.ipynb")
        set_ticks(App("chapters/01_x", tmp_path / "01_x.ipynb"), document)
        return document

    return with_ticks


def test_each_claim_becomes_a_line_with_an_address_and_the_rest_stays_printed(with_ticks):
    claims = Claim("one, two", "theorem"), Claim("three", "experiment", seeds=3)
    document = with_ticks(["a = 1\n", claims[0], "b = 2\n", claims[1]])
    lines = [p for p in document.findall(nodes.paragraph) if "book-claim" in p["classes"]]
    assert [line["ids"] for line in lines] == [["claim-one-two"], ["claim-three"]]
    assert [line.astext() for line in lines] == ["✓one, two#", "✓three#"]
    assert [b.astext() for b in document.findall(nodes.literal_block)] == ["a = 1\n", "b = 2\n"]


def test_a_line_that_is_printed_or_shown_is_no_claim(with_ticks):
    document = with_ticks(["✓ printed\n", Claim("made", "theorem")], ["it ends\n✓ Your turn 1.1\n"])
    lines = [p for p in document.findall(nodes.paragraph) if "book-tick" in p["classes"]]
    assert [bool(line["ids"]) for line in lines] == [False, True, False]


def test_a_cell_that_waits_is_marked_and_the_head_counts(with_ticks):
    right = "✓ Your turn 1.1: right\n"
    document = with_ticks(
        ["○ Your turn 1.1: empty\n"], [Claim("a", "theorem"), right], ["○ Exercise 1.2\n"]
    )
    cells = [c for c in document.findall(nodes.container) if "cell" in c["classes"]]
    assert ["book-yours" in cell["classes"] for cell in cells] == [True, False, True]
    head = next(p for p in document.findall(nodes.paragraph) if "book-head" in p["classes"])
    assert head.astext() == "1 claim, each executed on this page · 1 turn of yours · 1 exercise"


def test_a_claim_that_stands_twice_is_an_error(with_ticks):
    with pytest.raises(ValueError, match="claim-a stands twice"):
        with_ticks([Claim("a", "theorem")], [Claim("a", "theorem")])


def test_the_next_chapter_asks_what_the_front_pages_map_asks():
    front = (ROOT / "intro.md").read_text(encoding="utf-8")
    asked = questions(front)
    assert list(asked) == [f"chapters/{path.stem}" for path in CHAPTERS]
    assert all(question.endswith("?") for question in asked.values())
    assert asked["chapters/10_decoding"] == "How does it write?"
    why = asked["chapters/04_scaling_and_masks"]
    assert why == f"Why divide by {mathml(chr(92) + 'sqrt{d_k}')}, and who may look at whom?"


def test_what_the_map_asks_is_text_and_no_html():
    assert questions("| 1 | [A](a.ipynb) | Is a < b? |") == {"a": "Is a &lt; b?"}


@pytest.fixture
def long_page(browser, tmp_path):
    """A page of five long sections, with the site's rule and script for fresh pages."""
    sheet = (ROOT / "website" / "static" / "book.css").read_text(encoding="utf-8")
    (rule,) = re.findall(r"@media screen \{\n  html\[data-fresh\].*?\n\}\n", sheet, re.DOTALL)
    links = "".join(f'<a href="#s{i}">{i}</a> ' for i in range(5))
    sections = (f'<section id="s{i}">{links}<p style="height: 900px">' for i in range(5))
    body = f'<article class="bd-article"><section>{"</section>".join(sections)}'
    text = f"<!DOCTYPE html><head>{SCHEME}<style>{rule}</style></head><body>{body}"
    (tmp_path / "page.html").write_text(text, encoding="utf-8")
    server, base = serve(tmp_path)
    page = browser.new_page(viewport={"width": 390, "height": 844})
    yield page, f"{base}page.html"
    page.close()
    server.shutdown()
    server.server_close()


def tops(page):
    return page.evaluate("[...document.querySelectorAll('[id]')].map(e => e.offsetTop)")


def test_a_fresh_page_lays_out_the_rest_when_it_is_idle(long_page):
    page, address = long_page
    page.add_init_script("window.requestIdleCallback = (f) => (window.idle = f)")
    page.goto(address)
    before = tops(page)
    assert before[4] - before[3] > 3000  # a guess, for the last ones are far
    for _ in range(6):
        page.evaluate("window.idle()")
    assert max(tops(page)) < 5000
    assert page.evaluate("document.documentElement.dataset.fresh") is None


def test_links_and_back_lead_to_the_right_place_also_on_a_fresh_page(long_page):
    page, address = long_page
    page.add_init_script("window.requestIdleCallback = () => {}")  # a page that is never idle
    page.goto(address)
    assert page.evaluate("document.documentElement.dataset.fresh") == ""
    for target in (2, 1, 3):
        page.locator("a", has_text=str(target)).first.click()
        assert max(tops(page)) < 5000  # all of it is laid out at the first touch
        assert abs(page.locator(f"#s{target}").bounding_box()["y"]) < 2
    page.go_back()
    assert abs(page.locator("#s1").bounding_box()["y"]) < 2
    page.reload()
    assert page.evaluate("document.documentElement.dataset.fresh") is None
    page.goto("about:blank")
    page.goto(f"{address}#s2")
    assert page.evaluate("document.documentElement.dataset.fresh") is None
