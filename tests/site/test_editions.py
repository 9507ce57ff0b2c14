"""The PDF and the ePub of a small book, and of the same book with planted faults."""

import re
import shutil
import zipfile
from contextlib import nullcontext
from html import unescape
from urllib.parse import unquote

import pikepdf
import pytest
from lxml import etree

import website.editions.offer
from tests.package.unchecked import unchecked
from tools.chapters import ROOT
from transformer_book.drawings import Drawing
from website.editions import epub, pdf
from website.editions.book import book_pages
from website.editions.cover import looks
from website.editions.offer import offer, publish
from website.editions.pages import Fault, words
from website.editions.sandbox import opened

LONG_CLAIM = "claim-" + "-".join(f"word{i}" for i in range(30))
CONFIG = """title: A small book
author: Nobody
html: {baseurl: "https://example.org/book/"}
sphinx: {config: {release: "First edition, 1999"}}
"""
TOC = """root: intro
parts:
  - caption: "Part I · First"
    chapters: [{file: chapters/01_one}]
  - caption: Appendix
    chapters: [{file: appendix/two}, {file: appendix/ledger}]
"""
# Which has colours for a dark page, too.
PICTURE = Drawing(30, "A box that stands alone, for nothing is to be seen here.")._repr_svg_()
WORDS = " ".join(f"<p>This paragraph, number {i}, has some words to read.</p>" for i in range(12))
PAGE = """<!DOCTYPE html><html lang="en"><head><title>T</title></head><body><nav>menu</nav>
<article class="bd-article"><section id="top"><h1>{title}<a class="headerlink" href="#top">#</a>
</h1>{text}</section></article></body></html>"""


def cell(code, output="", title="", tag="hide-cell", kind=""):
    """A cell as code.py has it, folded if it has a title."""
    code = f'<div class="cell_input"><div class="highlight"><pre>{code}</pre></div></div>'
    output = f'<div class="cell_output">{output}</div>' if output else ""
    if not title:
        return f'<div class="cell {kind}">{code}{output}</div>'
    summary = f"<summary>{title}</summary>"
    inside, after = (code + output, "") if tag == "hide-cell" else (code, output)
    fold = f'<details class="hide">{summary}{inside}</details>'
    return f'<div class="cell tag_{tag}">{fold}{after}</div>'


def printed(text):
    return f'<div class="output stream"><pre>{text}</pre></div>'


def tick(text, place="", kind="holds"):
    place = place and f' id="{place}"'
    return f'<p class="book-tick book-{kind}"{place}>{text}</p>'


MATHML = "http://www.w3.org/1998/Math/MathML"
INLINE = f'<math xmlns="{MATHML}"><mi>x</mi><mspace width="1em"/><mo>&lt;</mo><mn>2</mn></math>'
DISPLAY = f'<math xmlns="{MATHML}" display="block"><mfrac><mn>1</mn><mi>x</mi></mfrac></math>'
RUN = """<span></span><span class="line">→ From here on this page runs with yours
</span>9 words"""
TURN = "<span># @title Solution: your turn</span>\ndef mine_solution():\n    mine()"
ONE = f"""
<section id="sec-1.1"><h2>1.1 Sums</h2>{WORDS}
<p>Let <span class="math">{INLINE}</span>; see
<a href="../appendix/two.html#term-sum">sum</a>, <a href="#eq-1.1"><span>(1.1)</span></a>,
<a href="two-more.html">elsewhere</a> and
<a href="#{LONG_CLAIM}">shown</a>; <a href="../intro.html">preface</a>.</p>
<div class="math" id="eq-1.1"><div class="book-formula">{DISPLAY}</div>
<span class="eqno">(1.1)<a class="headerlink" href="#eq-1.1">#</a></span></div>
{cell("import secret_imports", title="Imports")}
{cell("code_of_drawing()", '<img alt="a box" src="../_images/box.svg">', "Drawing", "hide-input")}
{cell("code_of_proof()", tick("✓ it holds", LONG_CLAIM), "Checks of section 1.1")}
{cell("code_of_table()", printed("a table"), "Checks of section 1.2")}
{cell("def mine():<br/>", tick("○ not written yet", kind="waits"), kind="book-yours")}
{cell("go_on()", printed(RUN))}
<details><summary>Hint</summary><p>Add <em>sums</em>.</p></details>
{cell(TURN, printed("✓ right"), "Solution: your turn")}
{cell("code_of_package()", title="The package's check")}</section>
<section id="exercises"><h2>Exercises</h2><p class="book-exercise" id="ex-1.1">Exercise 1.1.</p>
{cell("answer = ...", tick("○ no answer yet", kind="waits"), kind="book-yours")}
{cell("answer = 5", printed("✓ five"), "Solution 1.1")}
<details><summary>The proof</summary><p>By counting.</p></details>
<p class="book-exercise">Exercise 1.2. <a href="#sec-1.1">The first section</a>; see
<a href="../appendix/two.html#cite-a2020">A (2020)</a></p></section>"""


TWO = f"""<dl class="glossary"><dt id="term-sum">sum</dt><dt id="term-和">和</dt><dd>{WORDS}</dd>
<dt id="term-none">none (at all)</dt><dd><a href="../chapters/01_one.html">Chapter 1</a></dd></dl>
<p>All claims are in the <a href="ledger.html">ledger</a>.</p>
<div class="citation" id="cite-a2020"><p>A. Author. 2020.</p></div>"""


@pytest.fixture(scope="module", autouse=True)
def looked():
    """The cover's numbers are computed once, and without the slow check of annotations."""
    with unchecked():
        looks()


def write_book(folder, *faults):
    """Writes the book, with words replaced by others, and gives its folder and its site's."""
    site, texts = folder / "site", {}
    texts["intro"] = PAGE.format(title="A small book", text=WORDS)
    texts["chapters/01_one"] = PAGE.format(title="1. One", text=ONE)
    texts["appendix/two"] = PAGE.format(title="Two", text=TWO)
    texts["appendix/ledger"] = PAGE.format(title="Ledger", text=WORDS)
    texts["chapters/two-more"] = PAGE.format(title="Not in the book", text=WORDS)
    for before, after in faults:
        assert any(before in text for text in texts.values()), before
        texts = {name: text.replace(before, after) for name, text in texts.items()}
    (site / "_images").mkdir(parents=True)
    (site / "_images/box.svg").write_text(PICTURE, encoding="utf-8")
    (site / "_images/broken.png").write_bytes(b"no picture")
    for name, text in texts.items():
        path = site / f"{name}.html"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (folder / "_config.yml").write_text(CONFIG, encoding="utf-8")
    (folder / "_toc.yml").write_text(TOC, encoding="utf-8")
    return folder, site


def test_folds_are_opened_emptied_or_moved_and_nothing_waits(tmp_path):
    _, pages, files = book_pages(*write_book(tmp_path), pdf.address)
    assert [page.title for page in pages] == [
        *("A small book", "Preface", "Part I · First", "1. One", "Appendix", "Two", "Index")
    ]
    one = pages[3].body.text_content()
    for left_out in ("secret_imports", "code_of_drawing", "code_of_proof", "code_of_package"):
        assert left_out not in one
    for left_out in ("@title", "The package's check", "menu", "From here on", "yet", "...", "○"):
        assert left_out not in one
    assert "section 1.1" not in one  # a heading of ticks alone
    order = ["1. One", "1.1 Sums", "it holds", "Checks of section 1.2", "a table", "def mine"]
    order += ["9 words", "Hint", "Add sums", "Exercise 1.1", "Exercise 1.2"]
    order += ["Solutions", "Solution: your turn", "mine()", "right"]
    order += ["Solution 1.1", "answer = 5", "five", "The proof", "By counting"]
    places = [
        one.find(words, one.find("Solutions") if "olution" in words else 0) for words in order
    ]
    assert -1 not in places
    assert [title for _, title in pages[3].sections] == ["1.1 Sums", "Exercises", "Solutions"]
    assert list(files) == ["_images/box.svg"]


def test_links_lead_into_the_book_or_become_text(tmp_path):
    _, pages, _ = book_pages(*write_book(tmp_path), epub.address)
    links = [link.get("href") for link in pages[3].body.iter("a")]
    in_chapter = ["01_one.xhtml#eq-1.1", f"01_one.xhtml#{LONG_CLAIM}"]
    assert links[:4] == ["two.xhtml#term-sum", *in_chapter, "intro.xhtml"]
    assert "elsewhere" in pages[3].body.text_content()
    assert "in the ledger." in pages[5].body.text_content()
    assert [a.get("href") for a in pages[2].body.iter("a")] == ["01_one.xhtml"]


def test_the_imprint_names_author_edition_and_licence(tmp_path):
    _, pages, _ = book_pages(*write_book(tmp_path), epub.address)
    for said in ("A small book", "Nobody", "First edition, 1999", "Creative Commons"):
        assert said in pages[0].body.text_content()


def test_the_index_says_where_a_term_and_a_function_are(tmp_path):
    _, pages, _ = book_pages(*write_book(tmp_path), epub.address)
    lines = {words(line[0]): line for line in pages[6].body.iter("p")}
    assert {name: [words(a) for a in line[1:]] for name, line in lines.items()} == {
        "mine": ["1.1"],  # and not the solution's
        "none (at all)": ["1"],  # whose chapter the glossary names
        "sum": ["1.1"],  # linked and stressed there
    }
    goal = lines["sum"][1].get("href").partition("#")[2]
    assert [element.text for element in pages[3].body.xpath(f"//*[@id='{goal}']")] == ["1.1 Sums"]


def test_a_reference_gets_its_page_unless_it_is_near(tmp_path, browser):
    book, site = write_book(tmp_path)
    config, pages, _ = book_pages(book, site, pdf.address)
    page, _ = opened(browser, pdf.document(config, pages), site)
    place = page.evaluate(
        "[...document.querySelectorAll('.book-at')].map(e => e.closest('a').hash)"
    )
    page.evaluate("n => edition.number(n)", {name[1:]: 70 + "-".count(name) for name in place})
    text = page.inner_text("[id='01_one']")
    assert "preface (p.\xa070)" in text
    assert "(1.1) and" in text.replace(", elsewhere", "")
    assert "The first section (p.\xa070)" in text
    assert page.inner_text("#book_index p:last-child") == "sum 70"
    page.close()


@pytest.mark.parametrize(
    ("before", "after", "complaint"),
    [
        ("two.html#term-sum", "two.html#term-product", "links to .*term-product, which is not"),
        ("#eq-1.1", "#eq-1.2", "01_one: links to #eq-1.2, which is not there"),
        ("box.svg", "circle.svg", "01_one: the picture .*circle.svg is not there"),
        ("words to read", "\\frac{1}{2}", "raw TeX"),
    ],
)
def test_a_fault_in_a_page_is_named(tmp_path, before, after, complaint):
    book, site = write_book(tmp_path, (before, after))
    with pytest.raises(Fault, match=complaint):
        book_pages(book, site, pdf.address)


def test_the_pdf_has_contents_bookmarks_and_links_that_lead_there(browser, tmp_path):
    target = tmp_path / "out" / "small.pdf"
    n_pages = pdf.make(browser, *write_book(tmp_path), target)
    with pikepdf.open(target) as made:
        assert len(made.pages) == n_pages
        assert made.Root.MarkInfo.Marked  # tagged, for screen readers
        assert made.docinfo["/Title"] == "A small book"
        number = pdf.numbers(made)
        assert number["intro"] == 4  # after cover, imprint and contents
        assert number["intro"] < number["part-01_one"] < number["01_one"] < number["two"] <= n_pages
        assert number["01_one"] <= number["01_one--sec-1.1"] <= number["01_one--solutions"]
        notes = [note for page in made.pages for note in page.get("/Annots", [])]
        goals = [str(note.Dest).removeprefix("/") for note in notes if "/Dest" in note]
        assert len(goals) > 10
        assert {*goals} <= {*number}
        assert not any("book.invalid" in str(note.get("/A", "")) for note in notes)
        assert made.Root.Lang == "en"
        with made.open_outline() as outline:
            [*front, part, appendix] = outline.root
            assert [i.title for i in front] == ["A small book", "Contents", "Preface"]
            assert part.title == "Part I · First"
            [chapter] = part.children
            assert chapter.title == "1. One"
            assert [c.title for c in chapter.children] == ["1.1 Sums", "Exercises", "Solutions"]
            assert [page.title for page in appendix.children] == ["Two", "Index"]
        width, height = (float(made.pages[0].mediabox[i]) for i in (2, 3))
        assert (width, height) == (pytest.approx(595, abs=1), pytest.approx(842, abs=1))


@pytest.mark.parametrize(
    ("before", "after", "complaint"),
    [
        ("box.svg", "broken.png", "01_one: the picture cannot be read: .*broken.png"),
        ("Add ", "<img alt='' src='../_images/box.svg' style='min-width:30cm'>", "cut off"),
        ("Add ", "<span style='white-space:nowrap'>" + "long " * 99 + "</span>", "cut off"),
        ("<mi>x</mi></mfrac>", "<mtext>" + "x" * 400 + "</mtext></mfrac>", "cut off"),
        ("Add ", "\ue123", "no font on this machine has \ue123"),
    ],
)
def test_the_pdf_is_not_printed_with_a_fault(browser, tmp_path, before, after, complaint):
    target = tmp_path / "small.pdf"
    with pytest.raises(Fault, match=complaint):
        pdf.make(browser, *write_book(tmp_path, (before, after)), target)
    assert not target.exists()


@pytest.fixture(scope="module")
def archive(browser, tmp_path_factory):
    """The small ePub, made once for all tests that read it."""
    folder = tmp_path_factory.mktemp("epub")
    assert epub.make(browser, *write_book(folder), folder / "small.epub") == 7
    with zipfile.ZipFile(folder / "small.epub") as opened:
        yield opened


def test_the_epub_begins_with_its_type_and_has_all_its_files(archive):
    first = archive.infolist()[0]
    assert (first.filename, first.compress_type) == ("mimetype", zipfile.ZIP_STORED)
    assert archive.read("mimetype") == b"application/epub+zip"
    package = archive.read("book/package.opf").decode()
    listed = set(re.findall(r'<item [^>]*href="([^"]+)"', package))
    assert {f"book/{name}" for name in listed} == {
        name for name in archive.namelist() if name.startswith("book/") and "opf" not in name
    }
    assert archive.read("book/cover.png").startswith(b"\x89PNG")
    assert re.search(r'href="01_one.xhtml"[^>]*properties="mathml"', package)
    assert "https://example.org/book/" in package
    assert "prefers-color-scheme" in PICTURE
    assert b"prefers-color-scheme" not in archive.read("book/_images/box.svg")


def test_the_epub_has_formulas_as_mathml(archive):
    text = archive.read("book/01_one.xhtml")
    assert b"<math xmlns=" in text  # without a prefix, which not every program reads
    page = etree.fromstring(text)
    inline, display = page.iter(f"{{{MATHML}}}math")
    assert [child.tag for child in inline] == [
        f"{{{MATHML}}}{n}" for n in ("mi", "mspace", "mo", "mn")
    ]
    assert "".join(inline.itertext()) == "x<2"
    assert display.get("display") == "block"
    assert display.getparent().getnext().text == "(1.1)"


def test_every_link_of_the_epub_leads_somewhere(archive):
    texts = {n: archive.read(n).decode() for n in archive.namelist() if n.endswith(".xhtml")}
    links = [
        (name, *unquote(unescape(link)).partition("#")[::2])
        for name, text in texts.items()
        for link in re.findall(r'<\w*:?a [^>]*href="([^":]+)"', text)
    ]
    assert len(links) == 23
    for name, file, place in links:
        goal = texts[f"book/{file}" if file else name]
        assert not place or f'id="{place}"' in goal
    assert '<a href="part-01_one.xhtml">Part I · First</a><ol>' in texts["book/nav.xhtml"]


@pytest.mark.skipif(not shutil.which("java"), reason="epubcheck needs Java")
def test_epubcheck_finds_nothing_but_what_was_planted(archive, tmp_path):
    with zipfile.ZipFile(tmp_path / "bad.epub", "w") as bad:
        for item in archive.infolist():
            content = archive.read(item.filename)
            bad.writestr(item, content.replace(b'href="two.xhtml#term-sum"', b'href="no.xhtml"'))
    found = re.findall(r"^(?:FATAL|ERROR|WARNING).*", epub.check(tmp_path / "bad.epub"), re.M)
    assert found
    assert all("no.xhtml" in line for line in found), found


SIDEBAR = """<nav>chapters</nav><p class="book-editions"></p><p>other</p>"""
PLACE = '<div class="book-editions"></div>'


@pytest.fixture
def shelf(tmp_path):
    """A site of two pages, with the front page's place for links."""
    (tmp_path / "chapters").mkdir()
    (tmp_path / "intro.html").write_text(f"<p>before</p>{PLACE}{SIDEBAR}<p>after</p>")
    (tmp_path / "chapters/one.html").write_text(SIDEBAR)
    return tmp_path


def hrefs(page):
    return re.findall(r'href="([^"]+)"', page.read_text())


def test_the_site_links_to_the_editions_that_stand_beside_it(shelf):
    name = "the-transformer-executed"
    before = {path: path.read_text() for path in shelf.rglob("*.html")}
    offer(shelf)
    assert {path: path.read_text() for path in before} == before
    (shelf / f"{name}.epub").write_bytes(b"x" * 1_240_000)
    offer(shelf)
    assert hrefs(shelf / "intro.html") == [f"{name}.epub"] * 2
    (shelf / f"{name}.pdf").write_bytes(b"x" * 2_000_000)
    for _ in range(2):
        offer(shelf)
        text = (shelf / "intro.html").read_text()
        assert hrefs(shelf / "intro.html") == [f"{name}.pdf", f"{name}.epub"] * 2
        assert "PDF</a> (2.0 MB) or" in text
        assert "ePub</a> (1.2 MB)." in text
        assert hrefs(shelf / "chapters/one.html") == [f"../{name}.pdf", f"../{name}.epub"]
        assert all("<p>other</p>" in path.read_text() for path in before)
    for path in shelf.glob(f"{name}.*"):
        path.unlink()
    offer(shelf)
    assert {path: path.read_text() for path in before} == before


def test_the_front_page_has_the_place_for_links():
    assert f"\n{PLACE}\n" in (ROOT / "intro.md").read_text(encoding="utf-8")


def test_an_edition_with_a_fault_is_not_offered(shelf, browser, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(website.editions.offer, "ROOT", tmp_path)
    monkeypatch.setattr(website.editions.offer, "SITE", shelf)
    monkeypatch.setattr(website.editions.offer, "chromium", lambda: nullcontext(browser))

    def make(content, fault=None):
        def write(_, target):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(content)
            if fault:
                raise Fault(fault)
            return "3 pages"

        return publish("pdf", write)

    assert make("good") == 0
    assert capsys.readouterr().out.startswith("3 pages, 0.0 MB: _build/pdf/the-transformer-ex")
    assert len(hrefs(shelf / "intro.html")) == 2
    assert make("bad", "a fault") == 1
    assert capsys.readouterr().err == "a fault\n"
    assert list(tmp_path.rglob("*.pdf")) == []
    assert hrefs(shelf / "intro.html") == []
