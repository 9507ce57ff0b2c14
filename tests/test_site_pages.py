"""The extensions that make the site's pages: styles, scripts, formulas, ✓ lines, words."""

from types import SimpleNamespace

import pytest
import tinycss2
from docutils import nodes
from docutils.utils import new_document
from sphinx.errors import ExtensionError

from _ext.formulas import mathml
from _ext.head_words import cut
from _ext.lean_files import lean, mended, plain
from _ext.lean_pages import lean_head, size_of, with_lines, with_names, with_sizes
from _ext.ticks import set_ticks


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


HEAD = """<html><head><meta charset="utf-8" /><meta name="viewport" content="x" />
<script>document.documentElement.dataset.mode = 1;</script>
<link rel="stylesheet" href="../_static/styles/pydata-sphinx-theme.css?digest=1" />
<link rel="stylesheet" href="../_static/translator/translator.css?v=1" />
<link rel="preload" as="script" href="../_static/scripts/bootstrap.js?digest=1" />
<link rel="icon" href="../_static/logo.svg"/>
<script src="../_static/doctools.js?v=1"></script>
<script type="module" src="../_static/translator/view.js?v=1"></script>
<script src="../searchindex.js"></script></head><body>text</body></html>"""


def test_a_page_loads_one_style_sheet_and_one_script_and_what_is_its_own():
    page = lean_head(HEAD, "../", searches=False)
    gone = ("pydata", "bootstrap", "doctools", "searchindex", "dataset.mode = 1")
    assert [word for word in gone if word in page] == []
    kept = ("translator.css", 'type="module" src="../_static/translator/view.js', "logo.svg")
    assert [word for word in kept if word not in page] == []
    assert page.count("_static/site.css") == page.count("<script defer") == 1
    assert page.count("viewport") == 1
    assert page.index("translator.css") > page.index("text")  # which does not wait for it
    assert page.index("view.js") > page.index("text")


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

    def __init__(self, page):
        domain = SimpleNamespace(anonlabels={})
        self.env = SimpleNamespace(docname=page, get_domain=lambda name: domain)


def chapter(*outputs):
    document = new_document("chapter")
    section = nodes.section(ids=["title"])
    section += nodes.title("", "1. Title")
    for output in outputs:
        cell = nodes.container(classes=["cell"])
        inner = nodes.container(classes=["cell_output"])
        inner += nodes.literal_block(output, output, classes=["output", "stream"])
        cell += inner
        section += cell
    document += section
    return document


def test_each_claim_becomes_a_line_with_an_address_and_the_rest_stays_printed():
    document = chapter("a = 1\n✓ one, two\nb = 2\n✓ three\n")
    set_ticks(App("chapters/01_x"), document)
    cell = next(iter(document.findall(nodes.container))).children[0]
    kinds = [type(part).__name__ for part in cell.children]
    assert kinds == ["literal_block", "paragraph", "literal_block", "paragraph"]
    assert [part["ids"] for part in cell.children[1::2]] == [["claim-one-two"], ["claim-three"]]
    assert cell.children[0].astext() == "a = 1"


def test_a_cell_that_waits_is_marked_and_the_head_counts():
    document = chapter(
        "○ Your turn 1.1: empty\n", "✓ a\n✓ Your turn 1.1: right\n", "○ Exercise 1.2\n"
    )
    set_ticks(App("chapters/01_x"), document)
    cells = [c for c in document.findall(nodes.container) if "cell" in c["classes"]]
    assert ["book-yours" in cell["classes"] for cell in cells] == [True, False, True]
    head = next(p for p in document.findall(nodes.paragraph) if "book-head" in p["classes"])
    assert head.astext() == "1 claim, each executed on this page · 1 turn of yours · 1 exercise"


def test_a_claim_that_stands_twice_is_an_error():
    with pytest.raises(ValueError, match="claim-a stands twice"):
        set_ticks(App("chapters/01_x"), chapter("✓ a\n", "✓ a\n"))
