"""The extensions that make the site's pages: styles, scripts, formulas, ✓ lines, words."""

import json
import re
import shutil
from collections import namedtuple
from types import SimpleNamespace

import lxml.html
import nbformat
import pytest
import yaml
from docutils import nodes
from docutils.utils import new_document
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

from tools.chapters import NOTEBOOKS, ROOT
from transformer_book.claims import Claim
from website.checks.site_check import leads_on
from website.extensions import page_parts
from website.extensions.book_site import says_nothing
from website.extensions.bundles import (
    LEFT_BY_THE_THEME,
    SCRIPTS,
    SHEETS,
    UNUSED,
    mended,
    none_in_vain,
    plain,
    stamp_pages,
)
from website.extensions.formulas import mathml
from website.extensions.head_words import cut, describe, description
from website.extensions.next_page import ask, outdated, questions
from website.extensions.old_addresses import page_for, write_pages
from website.extensions.pictures import opens, size_of
from website.extensions.theme import FOLDER_OF_THEME, NAME, own
from website.extensions.ticks import set_ticks, typed_in
from website.hosting import serve


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
    files = [tmp_path / f"_static/{name}" for name in ("site.css", "a.js", "b.woff2")]
    tags = '<link href="../_static/site.css"><script src="../_static/a.js?v=1"></script>'
    tags += '<link href="../_static/b.woff2">'
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


@pytest.fixture
def unwritten(monkeypatch):
    """Parts without what is made from the package, which takes long."""
    parts = {name: part._replace(write=None) for name, part in page_parts.PARTS.items()}
    monkeypatch.setattr(page_parts, "PARTS", parts)


@pytest.mark.usefixtures("unwritten")
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


@pytest.mark.usefixtures("unwritten")
def test_a_page_that_names_an_older_folder_is_made_anew(tmp_path):
    app, name = parts_built_in(tmp_path)
    (tmp_path / "old.html").write_text('<link href="_static/parts-0123abcd/living/living.css">')
    (tmp_path / "new.html").write_text(f'<link href="_static/{name}/living/living.css">')
    (tmp_path / "none.html").write_text("text")
    env = SimpleNamespace(found_docs={"old", "new", "none", "not_written_yet"})
    assert page_parts.outdated(app, env, set(), set(), set()) == ["old"]


def folded(tag, source, show, hide):
    prompts = {"code_prompt_show": show, "code_prompt_hide": hide}
    metadata = {"tags": [tag], "mystnb": prompts}
    cell = {"cell_type": "code", "execution_count": 1, "outputs": []}
    return cell | {"metadata": metadata, "source": source}


PRINTED = f"{'a' * 42}\n{'b' * 43}\n\nc\n"
SAYS = {
    **{"cell_type": "code", "execution_count": 2, "metadata": {}, "source": "says()"},
    "outputs": [{"output_type": "stream", "name": "stdout", "text": PRINTED}],
}
LONG_LINE = 'long = wide not in f"one {d} two"'
NOTEBOOK = {
    "cells": [folded("hide-input", f"a = (1)\n\n{LONG_LINE}\n", "A <title>", "Its <other>")]
    + [
        folded("hide-cell", text, name, name)
        for text, name in (
            ("first\n", "Set-up"),
            ("second\n", "Set-up, continued"),
            ("third\n", "Set-up, continued"),
            ("apart\n", "Training, continued"),
        )
    ]
    + [SAYS],
    "metadata": {
        "kernelspec": {"name": "python3", "display_name": "Python"},
        "language_info": {"name": "python", "pygments_lexer": "ipython3"},
    },
    "nbformat": 4,
    "nbformat_minor": 4,
}
INDEX = """# A

First *words*.

**The question.** Is it [told](#b2)?

```{toctree}
one
```

```{image} a.svg
:alt: first
```
```{image} a.svg
:alt: second
:width: 30px
:height: 20px
```

|   | named |
|---|---|
| x | y |

attention
: what looks

```{glossary}
注意力
  is attention
```

```{bibliography}
:all:
```

```{index} mask; causal
```

Call `f (1)`.

```{index} mask; causal
```

```{py:function} f(x: list[int], y=1)
```
"""
SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="525" height="168"></svg>'


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The pages of a small book in the book's theme, by name."""
    source = tmp_path_factory.mktemp("source")
    (source / "index.md").write_text(INDEX, encoding="utf-8")
    (source / "one.ipynb").write_text(json.dumps(NOTEBOOK))
    (source / "a.svg").write_text(SVG)
    entry = "@book{{{0}, title={{T}}, author={{A {0}}}, year=1}}"
    (source / "r.bib").write_text(entry.format("b1") + entry.format("b2"))
    book = ("book_site", "visitors", "head_words", "theme")
    others = ("myst_nb", "sphinx_book_theme", "sphinxcontrib.bibtex", "sphinxext.opengraph")
    settings = {
        "extensions": [*others, *(f"website.extensions.{name}" for name in book)],
        "project": "A",
        "html_title": "A",
        "html_theme": NAME,
        "html_logo": str(ROOT / "website" / "static" / "logo.svg"),
        "html_context": {"rooms": [".x { a: b }"]},
        "html_theme_options": {"use_download_button": True},
        "ogp_site_url": "https://example.org/",
        "ogp_social_cards": {"enable": False},
        "bibtex_bibfiles": ["r.bib"],
        "bibtex_cite_id": "cite-{key}",
        "nb_execution_mode": "off",
        "myst_enable_extensions": ["deflist"],
    }
    out = source / "_build"
    Sphinx(source, None, out, out / "doctrees", "html", settings, status=None).build()
    return {path.stem: lxml.html.parse(str(path)).getroot() for path in out.glob("*.html")}


def test_a_page_has_one_style_sheet_one_script_one_viewport_and_the_scheme_comes_first(built):
    for name, page in built.items():
        sheets = page.xpath("//link[@rel='stylesheet']/@href")
        assert [sheet.partition("?")[0] for sheet in sheets] == ["_static/site.css"]
        fonts = page.xpath("//link[@rel='preload'][@as='font'][@crossorigin]/@href")
        wanted = ("serif-bold", "serif", *(["serif-italic"] if name == "index" else []))
        assert fonts == [f"_static/fonts/{font}.woff2" for font in wanted]
        loaded = [script.partition("?")[0] for script in page.xpath("//script/@src")]
        search = ["_static/search.js"]
        assert loaded == ["_static/site.js", *(search if name == "search" else [])]
        late = "ancestor::template[@class='book-late']"  # which scheme.js lets come
        assert not page.xpath(f"//script[@src][not({late}) and not(@type='module')]")
        assert len(page.xpath("//meta[@name='viewport']")) == 1
        heads = page.xpath("//head/script | //head/link | //head/template | //head/style")
        scheme, sheet, script, room = heads[len(fonts) : len(fonts) + 4]
        assert "dataset.theme" in scheme.text
        assert (sheet.get("rel"), script.tag) == ("stylesheet", "template")
        assert room.text == ".x { a: b }"  # of a part


def test_a_page_asks_for_no_logo_and_is_not_laid_out_for_a_field(built):
    for name, page in built.items():
        assert not page.xpath("//img[contains(@src, 'logo')]")
        (icon,) = page.xpath("//link[@rel='icon']/@href")
        assert icon.startswith("data:image/svg+xml,")
        fields = page.xpath("//input[not(ancestor::template[@class='book-late'])]")
        assert bool(fields) == (name == "search")


def test_a_part_of_a_cell_has_its_name_alone(built):
    for page in built.values():
        for part in page.xpath("//div[contains(@class, 'cell')]"):
            assert "container" not in part.get("class").split()


def test_words_of_code_have_elements_only_where_they_look_otherwise(built):
    (code,) = built["index"].xpath("//article//p/code")
    assert (code.text, len(code)) == ("f (1)", 0)
    (signature,) = built["index"].xpath("//dt[contains(@class, 'sig')]")
    assert "".join(signature.itertext()).strip().startswith("f(x: list[int], y=1)")
    kinds = {element.get("class") for element in signature.iter("span")}
    assert kinds == {"sig-name descname", "sig-paren", "o", "default_value"}


def test_a_title_says_a_name_once(built):
    assert built["index"].findtext("head/title") == "A"
    assert built["genindex"].findtext("head/title") == "Index — A"


def test_the_index_has_a_section_for_each_letter_and_one_for_chinese(built):
    page = built["genindex"]
    row = page.xpath("//article/section/p[@class='book-letters']/a")
    assert [(a.text, a.get("href")) for a in row] == [(x, f"#{x}") for x in ("B", "F", "M", "中文")]
    b, f, m, chinese = page.xpath("//article/section/section[@class='book-letter']")  # book.css's
    assert [one.get("id") for one in (b, f, m, chinese)] == [a.text for a in row]
    (term,) = chinese.iter("a")
    assert (term.text, term.get("class")) == ("注意力", "book-term")
    assert term.get("href") == "index.html#term-注意力"
    (name,) = b.iter("a")
    assert (name.text, name.get("class")) == ("f()", None)
    (mask,) = m.xpath("./ul/li")
    assert mask.text.strip() == "mask"
    assert [a.text for a in mask.xpath("./ul/li/a")] == ["causal", "[1]"]


def test_buttons_and_the_sidebar_say_what_they_are(built):
    page = built["index"]
    named = {button.get("aria-label"): button for button in page.xpath("//button[@aria-label]")}
    for words in ("Chapters", "Colours: light, dark, or as the system has them"):
        assert named[words].get("title") == words
    assert page.xpath("//*[@id='pst-primary-sidebar']/@role") == ["complementary"]
    assert page.xpath("//main/@role | //*[@role='doc-biblioentry' or @role='list']") == []
    assert not page.xpath("//*[@id='ethical-ad-placement' or contains(@name, 'docsearch')]")


def test_the_download_menu_keeps_a_place_for_the_editions(built):
    (menu,) = built["index"].xpath("//*[contains(@class, 'dropdown-download-buttons')]/ul")
    assert menu[-1].get("class") == "book-editions"
    assert [words.text for words in menu.iter("span") if words.text] == [".md", ".pdf"]
    assert menu.xpath(".//a/@href") == ["_sources/index.md"]


def test_rows_cells_and_links_have_no_more_elements_and_names_than_somebody_asks_for(built):
    article = built["index"].find(".//article")
    assert [td.text for td in article.iter("td")][-2:] == ["x", "y"]
    assert article.xpath(".//tr/@class | .//td/p") == []
    assert article.xpath(".//a[@class='reference internal'] | .//*[@class='std std-ref']") == []
    assert article.xpath(".//a[contains(@href, 'cite-b2')]")[0].text_content() == "told"


def test_pictures_keep_their_place_and_wait(built):
    first, second = built["index"].xpath("//article//img")
    assert (first.get("width"), first.get("height")) == ("525", "168")
    assert (first.get("alt"), first.get("loading"), first.get("fetchpriority")) == (
        *("first", None, "high"),
    )
    assert (second.get("width"), second.get("height"), second.get("loading")) == (
        *("30", "20", "lazy"),
    )
    assert second.get("style") is None


def test_a_picture_below_the_first_screen_waits_as_others_do():
    for letters, wanted in ((600, [True, False]), (1200, [False, False])):
        page = nodes.document(None, None)
        page += [nodes.paragraph("", "a" * (letters // 2)) for _ in range(2)]
        page += [nodes.image(), nodes.image()]
        assert [opens(image) for image in page.findall(nodes.image)] == wanted


def test_code_keeps_its_text_when_its_lines_get_elements(built):
    code = built["one"].xpath("//article//pre")[0]
    assert code.text_content() == f"a = (1)\n\n{LONG_LINE}\n"
    assert [line.text_content() for line in code.find_class("line")] == [f"{LONG_LINE}\n"]
    classes = [inner.get("class") for inner in code.iter("span")]
    # a name, an operator or a bracket has no colour of its own; "not in" is one, and so is what a
    # string is made of
    assert classes == [None, "mi", "line", "k", "s", "s"]
    assert [span.text for span in code.iter("span") if span.get("class") in ("k", "s")] == [
        *("not in", 'f"one {', '} two"')
    ]


def test_a_printed_line_hangs_where_a_phone_is_too_narrow_for_it(built):
    (printed,) = built["one"].xpath("//article//div[contains(@class, 'output')]//pre")
    assert printed.text_content() == PRINTED
    assert [line.text_content() for line in printed.find_class("line")] == [f"{'b' * 43}\n"]


def test_a_fold_is_called_by_its_title(built):
    fold = built["one"].xpath("//article//details/summary")[0]
    assert (fold.text_content(), dict(fold.attrib)) == ("A <title>", {})
    assert dict(fold.getparent().attrib) == {"class": "hide"}


def test_a_fold_that_goes_on_is_one(built):
    _, *folds = built["one"].xpath("//article//details")
    code = [[pre.text_content() for pre in fold.xpath(".//pre")] for fold in folds]
    assert code == [["first\n", "second\n", "third\n"], ["apart\n"]]
    assert [fold.findtext("summary") for fold in folds] == ["Set-up", "Training, continued"]


def test_chinese_is_called_chinese_and_an_empty_head_heads_nothing(built):
    page = built["index"]
    assert [term.get("lang") for term in page.xpath("//dt[not(@class)]")] == [None, "zh-Hans"]
    first, second = page.xpath("//thead/tr/*")
    assert (first.tag, second.tag) == ("td", "th")
    assert [cell.tag for cell in page.xpath("//tbody/tr/*")] == ["td", "td"]


def test_a_table_can_be_scrolled_by_keyboard_without_a_script(built):
    (frame,) = built["index"].xpath("//table/parent::div")
    assert frame.get("tabindex") == "0"


def test_entries_of_the_bibliography_stand_in_one_list_without_deprecated_roles(built):
    (entries,) = built["index"].find_class("citation-list")
    assert [entry.get("class") for entry in entries] == ["citation", "citation"]
    assert built["index"].xpath("//p/a[contains(@href, '#cite-b2')]")[0].text_content() == "told"


def test_the_description_is_the_pages_own(built):
    path = "//meta[@name='description' or @property='og:description']/@content"
    (said,) = built["search"].xpath("//meta[@name='description']/@content")
    assert said.startswith("Search the chapters")
    assert built["index"].xpath(path) == ["Is it told?"] * 2


NUMBERED = """# 1. What chapter 2 asks

**The question.** Of what?

Chapter 2 and chapter 1, chapter 3 and `chapter 2`; see [A](#b1), and so on.

## 1.1 Sums

$$ a + b \\tag{1.1} $$

**Figure 1.1.** A picture.

**Exercise 1.1.** A task.
"""
LINKS = "# 2. B\n\n" + " ".join(f"[{to}](#{to}-1.1)" for to in ("eq", "fig", "ex", "sec"))


@pytest.fixture(scope="module")
def chapters(tmp_path_factory):
    """Two chapters of a small book, in no theme."""
    source = tmp_path_factory.mktemp("numbered")
    pages = {
        "index": "# A\n\n```{toctree}\nchapters/01_x\nchapters/02_y\nappendix/bibliography\n```",
        "chapters/01_x": NUMBERED,
        "chapters/02_y": LINKS,
        "appendix/bibliography": "# B\n\n```{bibliography}\n:all:\n```",
    }
    for name, text in pages.items():
        (source / name).parent.mkdir(exist_ok=True)
        (source / f"{name}.md").write_text(text, encoding="utf-8")
    (source / "r.bib").write_text("@book{b1, title={T}, author={A B}, year=1}")
    book = (f"website.extensions.{name}" for name in ("book_site", "formulas"))
    settings = {
        "extensions": ["myst_nb", "sphinxcontrib.bibtex", *book],
        "nb_execution_mode": "off",
        "html_math_renderer": "mathml",
        "html_theme": "basic",
        "bibtex_bibfiles": ["r.bib"],
        "bibtex_cite_id": "cite-{key}",
        "myst_enable_extensions": ["dollarmath"],
    }
    out = source / "_build"
    Sphinx(source, None, out, out / "doctrees", "html", settings, status=None).build()
    paths = out.glob("chapters/*.html")
    return {path.stem: lxml.html.parse(str(path)).find(".//div[@class='body']") for path in paths}


def test_chapters_and_entries_that_are_named_are_linked_but_not_a_chapter_in_itself(chapters):
    first = chapters["01_x"]
    [said] = (p for p in first.findall(".//p") if p.text_content().endswith(", and so on."))
    assert said.text_content() == (
        "Chapter\N{NO-BREAK SPACE}2 and chapter 1, chapter 3 and chapter 2; see A, and so on."
    )
    links = [(link.text_content(), link.get("href")) for link in said.findall(".//a")]
    there = "../appendix/bibliography.html#cite-b1"
    assert links == [("Chapter\N{NO-BREAK SPACE}2", "02_y.html"), ("A", there)]
    assert [link.get("class") for link in first.findall(".//h1/a")] == ["headerlink"]


def test_what_carries_a_number_is_reached_by_it(chapters):
    first = chapters["01_x"]
    kinds = [(p.get("id"), p.get("class")) for p in first.findall(".//p[@class]")]
    assert kinds == [
        (None, "book-question"),
        *(("fig-1.1", "book-figure"), ("ex-1.1", "book-exercise")),
    ]
    formula = first.find(".//div[@id='eq-1.1']")
    assert "tag" not in lxml.html.tostring(formula, encoding="unicode")
    assert formula.find("span[@class='eqno']").text == "(1.1)"
    assert formula.find(".//math").get("display") == "block"
    links = [link.get("href") for link in chapters["02_y"].findall(".//p/a")]
    assert links == [f"01_x.html#{name}-1.1" for name in ("eq", "fig", "ex", "sec")]


def asset(name, **attributes):
    """A sheet or a script as Sphinx tells of it; one without a name stands in the page."""
    return SimpleNamespace(filename=name and f"_static/{name}", attributes=attributes)


def test_what_a_part_of_a_page_brings_is_the_pages_own():
    part = asset("parts-1a/living/living.css")
    theirs = [asset("book.css"), asset(f"mystnb.{'a1' * 32}.css")]
    assert own([*theirs, part], SHEETS) == [part]
    said = asset(None, body="DOCUMENTATION_OPTIONS.pagename = 'a';")
    assert own([said, asset("doctools.js")], SCRIPTS) == []


@pytest.mark.parametrize(
    "new", [asset("new.css"), asset(None, body="let x")], ids=["sheet", "script"]
)
def test_a_sheet_or_a_script_that_an_extension_newly_brings_stops_the_build(new):
    with pytest.raises(ExtensionError, match="is new: "):
        own([asset("book.css"), new], SHEETS)


@pytest.mark.parametrize("name", [*UNUSED, *LEFT_BY_THE_THEME])
def test_what_is_left_out_on_purpose_must_still_be_there(tmp_path, name):
    for there in {*UNUSED, *LEFT_BY_THE_THEME}:
        (tmp_path / there).mkdir(parents=True)
    none_in_vain(tmp_path)
    (tmp_path / name).rmdir()
    with pytest.raises(ExtensionError, match=rf"there is no _static/{name}"):
        none_in_vain(tmp_path)


def test_a_picture_that_does_not_say_its_size_is_an_error(tmp_path):
    (tmp_path / "b.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"></svg>')
    with pytest.raises(ValueError, match=r"b\.svg does not say how large it is"):
        size_of(tmp_path / "b.svg")


def test_a_chapters_head_is_not_what_it_is_about(with_ticks):
    document = with_ticks(["a"])
    title = next(iter(document.findall(nodes.title)))
    head, text = (
        nodes.paragraph("", "3 claims", classes=["book-head"]),
        nodes.paragraph("", "Text."),
    )
    title.parent += [head, text]
    assert description(document) == "Text."


def test_what_is_said_in_a_pages_head_is_text_and_no_html():
    document, context = new_document("page"), {"meta": None}
    document += nodes.paragraph("", 'Is "a" < b?')
    describe(None, "page", "page.html", context, document)
    assert context["metatags"] == (
        '\n<meta name="description" content="Is &quot;a&quot; &lt; b?" />'
    )
    assert context["meta"] == {"og:description": 'Is "a" < b?'}


def test_fields_without_words_of_their_own_are_left_out_of_the_package():
    pair = namedtuple("Pair", "one two")
    assert says_nothing(None, "attribute", "one", pair.one, False, None)
    assert not says_nothing(None, "class", "Pair", pair, False, None)
    assert says_nothing(None, "class", "Pair", pair, True, None)  # as autodoc has decided


def test_descriptions_end_with_a_whole_word():
    assert cut("short") == "short"
    assert cut("as long as it may be", 20) == "as long as it may be"
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
            docname=page, domains={"std": domain}, doc2path=lambda name: notebook
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
    claim, turn, exercise = head.astext().split(" · ")  # which are not broken
    assert claim.split("\xa0") == ["1", "claim,", "each", "tested", "by", "code"]
    assert turn.split("\xa0") == ["1", "function", "to", "write", "yourself"]
    assert exercise == "1\xa0exercise"


def test_where_a_cell_saves_a_file_for_the_next_it_is_the_one_to_type_in():
    cells = [nodes.container("", nodes.literal_block("", t)) for t in ("%%writefile a.py", "a()")]
    nodes.section("", nodes.container("", nodes.literal_block("", "b()")), *cells)
    assert [typed_in(cell) for cell in cells] == [cells[0], cells[0]]
    assert typed_in(cells[0].parent[0]) is cells[0].parent[0]


def test_a_turn_of_several_lines_counts_once_and_what_is_not_there_is_not_counted(with_ticks):
    document = with_ticks(["○ Your turn 1.1: a\n○ Your turn 1.1: b\n○ Your turn 1.2: c\n"])
    head = next(p for p in document.findall(nodes.paragraph) if "book-head" in p["classes"])
    assert head.astext().split() == ["2", "functions", "to", "write", "yourself"]


def test_a_page_that_is_no_chapter_stays_as_it_is():
    document = new_document("page")
    document += nodes.literal_block("", "✓ printed", classes=["output", "stream"])
    before = document.pformat()
    set_ticks(App("appendix/page"), document)
    assert document.pformat() == before


def test_a_claim_that_stands_twice_is_an_error(with_ticks):
    with pytest.raises(ValueError, match="claim-a stands twice"):
        with_ticks([Claim("a", "theorem")], [Claim("a", "theorem")])


def test_the_next_chapter_asks_what_the_front_pages_map_asks():
    front = (ROOT / "intro.md").read_text(encoding="utf-8")
    asked = questions(front)
    assert list(asked) == [path.relative_to(ROOT).with_suffix("").as_posix() for path in NOTEBOOKS]
    assert all(question.endswith("?") for question in asked.values())
    assert asked["chapters/10_decoding"] == "How does it write?"
    why = asked["chapters/04_scaling_and_masks"]
    assert why == f"Why divide by {mathml(chr(92) + 'sqrt{d_k}')}, and who may look at whom?"


def test_the_link_to_the_next_page_has_its_question_and_all_follow_the_map(tmp_path):
    rows = "| 1 | [A](a.ipynb) | What? |\n| 2 | [B](b.ipynb) | Why? |\n"
    (tmp_path / "front.md").write_text(rows)
    app = SimpleNamespace(
        builder=SimpleNamespace(relations={"a": (None, None, "b"), "b": (None, "a", None)}),
        config=SimpleNamespace(root_doc="front"),
        env=SimpleNamespace(found_docs={"b", "a"}),
        srcdir=tmp_path,
    )
    contexts = {"a": {"next": {"title": "B"}}, "b": {"next": None}}
    for page, context in contexts.items():
        ask(app, page, "page.html", context, None)
    assert contexts["a"]["next_title"] == 'B <span class="book-asked">Why?</span>'
    assert contexts["b"] == {"next": None}
    changes = [outdated(app, app.env, set(), {page}, set()) for page in ("front", "a")]
    assert changes == [["a", "b"], []]


def test_an_old_address_leads_to_the_page_that_has_its_text():
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    old = config["sphinx"]["config"]["old_addresses"]
    assert old["chapters/14_the_family"] == "chapters/14_gpt_and_bert"
    assert all((ROOT / f"{new}.ipynb").is_file() for new in old.values())
    assert not any((ROOT / f"{name}.ipynb").exists() for name in old)


def with_old_addresses(folder, old, found):
    return SimpleNamespace(
        builder=SimpleNamespace(name="html"),
        config=SimpleNamespace(old_addresses=old),
        env=SimpleNamespace(found_docs=found, titles={"a/new": nodes.title("", "It & more")}),
        outdir=folder,
    )


def test_a_page_is_written_for_an_old_address_and_only_leads_on(tmp_path):
    write_pages(with_old_addresses(tmp_path, {"b/old": "a/new"}, {"a/new"}), None)
    path = tmp_path / "b" / "old.html"
    assert leads_on(path)
    page = lxml.html.parse(str(path)).getroot()
    assert page.xpath("//a/@href") == ["../a/new.html"]
    assert page.xpath("//meta/@content")[0] == "0; url=../a/new.html"
    assert page.findtext(".//title") == "It & more"
    assert "url=new.html" in page_for("a/old", "a/new", "")


@pytest.mark.parametrize("found", [set(), {"b/old", "a/new"}])
def test_an_old_address_that_is_in_use_or_leads_nowhere_stops_the_build(tmp_path, found):
    with pytest.raises(ExtensionError, match="b/old is a page, or a/new is none"):
        write_pages(with_old_addresses(tmp_path, {"b/old": "a/new"}, found), None)


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
    scheme = (FOLDER_OF_THEME / "scheme.js").read_text(encoding="utf-8")
    text = f"<!DOCTYPE html><head><script>{scheme}</script><style>{rule}</style></head><body>{body}"
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
    page.wait_for_function("!!window.idle")  # once something is painted, which may be later
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


ROOTS = """<!DOCTYPE html><meta charset="utf-8"><link rel="stylesheet" href="book.css">
<p style="font-size: 100px">by <math><msqrt><mn>4</mn></msqrt></math>, and
<math><msqrt><mfrac><mn>4</mn><mn>5</mn></mfrac></msqrt></math>"""


def test_a_small_root_leaves_no_gap_behind_it_and_a_large_one_reaches_around_its_fraction(
    tmp_path, browser
):
    shutil.copytree(ROOT / "website" / "static", tmp_path, dirs_exist_ok=True)
    (tmp_path / "roots.html").write_text(ROOTS, encoding="utf-8")
    server, base = serve(tmp_path)
    page = browser.new_page()
    page.goto(f"{base}roots.html")
    page.evaluate("document.fonts.ready")
    edges = "all => all.map((e) => [e, e.firstElementChild].map((x) => x.getBoundingClientRect()))"
    small, large = page.locator("msqrt").evaluate_all(edges)
    page.close()
    server.shutdown()
    server.server_close()
    assert small[0]["right"] - small[1]["right"] < 5  # of a letter that is 50 wide
    assert large[0]["height"] > large[1]["height"] > small[0]["height"]


EARLY = f"""<!DOCTYPE html><script>{(FOLDER_OF_THEME / "scheme.js").read_text("utf-8")}</script>
<template class="book-late"><script src="_static/site.js"></script></template>
<p>text</p><button class="search-button__button"><i>search</i></button>"""
LATE = "document.querySelector('button').onclick = () => { document.title += 'found' }"


@pytest.mark.parametrize(
    "script", [LATE, f"setTimeout(() => {{ {LATE} }})"], ids=["now", "in turn"]
)
def test_a_button_that_is_pressed_before_the_script_is_there_works_when_it_is(browser, script):
    page, waiting = browser.new_page(), []
    page.route("**/*", lambda route: route.fulfill(body=EARLY, content_type="text/html"))
    page.route("**/site.js", lambda route: waiting.append(route))
    page.goto("https://example.org/")
    page.locator("button i").click()
    assert page.title() == ""
    page.wait_for_function("document.querySelector('script[src]')")
    (asked,) = waiting
    asked.fulfill(body=script, content_type="text/javascript")
    page.wait_for_function("document.title === 'found'")
    page.locator("button i").click()
    assert page.title() == "foundfound"
    page.close()


FORMULA = f"""<!DOCTYPE html><script>{(FOLDER_OF_THEME / "scheme.js").read_text("utf-8")}</script>
<style>@font-face {{ font-family: "Book Math"; src: url(math.woff2) }}
@font-face {{ font-family: "Book Root"; src: url(root.woff2) }}
html:not([data-unseen]) math {{ font-family: "Book Math" }}</style>
<p>text <math><mi>x</mi></math></p>"""


def test_formulas_are_set_anew_once_when_their_font_has_come_or_failed(browser):
    page, asked = browser.new_page(), []
    page.route("**/*", lambda route: route.fulfill(body=FORMULA, content_type="text/html"))
    page.route("**/*.woff2", lambda route: asked.append(route))
    with page.expect_request("**/math.woff2"):
        page.goto("https://example.org/")
    page.wait_for_timeout(200)
    assert page.evaluate("document.documentElement.dataset.unseen") == ""
    (font,) = asked  # no root is on the page
    font.abort()
    page.wait_for_function("document.documentElement.dataset.unseen === undefined")
    page.close()
