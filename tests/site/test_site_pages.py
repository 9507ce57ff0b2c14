"""What the site adds to a page of Jupyter Book: numbers, links, formulas, ✓ lines, questions."""

import io
import shutil
from types import SimpleNamespace

import lxml.html
import nbformat
import pytest
from docutils import nodes
from docutils.utils import new_document
from pygments.lexers.python import PythonLexer
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

from tools.chapters import NOTEBOOKS, ROOT
from transformer_book.claims import Claim
from website.checks.site_check import leads_on
from website.extensions.code import BookFormatter
from website.extensions.formulas import mathml
from website.extensions.next_page import questions
from website.extensions.ticks import set_ticks

NUMBERED = """# 1. What chapter 2 asks

**The question.** Of what?

Chapter 2 and chapter 1, chapter 3 and `chapter 2`; see [A](#b1), and so on.

Of a $k$-gram ($a$, $b$), 40 % is said: `40 %`.

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
    book = (f"website.extensions.{name}" for name in ("book_site", "formulas", "no_break"))
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


def test_a_line_does_not_break_between_a_formula_and_the_sign_after_it(chapters):
    [said] = (p for p in chapters["01_x"].findall(".//p") if p.text_content().startswith("Of a"))
    whole = [part.text_content() for part in said.findall("span[@class='book-unbroken']")]
    assert whole == ["k-gram", "(a,", "b),"]
    assert said.text_content() == "Of a k-gram (a, b), 40\N{NARROW NO-BREAK SPACE}% is said: 40 %."


CODE = """def a_function(of, some, arguments): ...


    return a_value_that_is_far_too_long_for_a_phone
"""


def test_a_long_line_hangs_below_its_own_beginning_and_of_two_blank_lines_one_is_seen():
    html = io.StringIO()
    BookFormatter().format(PythonLexer().get_tokens(CODE), html)
    page = lxml.html.fromstring(html.getvalue())
    lines = page.xpath("//span[@class='line']")
    assert [line.text_content().strip().split()[0] for line in lines] == ["def", "return"]
    assert [line.get("style") for line in lines] == [None, "--in: 4"]
    [hidden] = page.xpath("//span[@class='blank']")
    assert hidden.text_content() == "\n"
    assert page.text_content().strip() == CODE.strip()  # what is copied has both


def test_formulas_are_set_when_the_site_is_built():
    made = mathml(r"\begin{aligned} a &= \operatorname{diag}(b) \\ c &= \log d \end{aligned}", True)
    assert made.startswith("<math")
    assert made.count("<mtr>") == 2
    assert "&" not in made.replace("&amp;", "")


def test_a_formula_that_cannot_be_set_stops_the_build():
    with pytest.raises(ExtensionError, match=r"\\\\frac\{a' cannot be set: .*ParseError") as told:
        mathml(r"\frac{a")
    assert len(str(told.value)) < 300  # without the program that says so


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
        *(["○ Your turn 1.1: empty\n"], [Claim("a", "theorem"), right], ["○ Exercise 1.2\n"]),
        ["○ Your turn 1.1: empty\n"],  # it waits in two cells, and is one
    )
    cells = [c for c in document.findall(nodes.container) if "cell" in c["classes"]]
    assert ["book-yours" in cell["classes"] for cell in cells] == [True, False, True, True]
    head = next(p for p in document.findall(nodes.paragraph) if "book-head" in p["classes"])
    claim, turn, exercise = head.astext().split(" · ")  # which are not broken
    assert claim.split("\xa0") == ["1", "claim,", "each", "tested", "by", "code"]
    assert turn.split("\xa0") == ["1", "function", "to", "write", "yourself"]
    assert exercise == "1\xa0exercise"


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


def test_an_old_address_leads_to_a_page_of_the_book():
    old = list((ROOT / "website" / "templates").glob("chapters/*.html"))
    assert "14_the_family" in {path.stem for path in old}
    for path in old:
        assert leads_on(path)
        [new] = lxml.html.parse(str(path)).xpath("//a/@href")
        assert new in path.read_text(encoding="utf-8").partition("\n")[0]
        assert (ROOT / "chapters" / new).with_suffix(".ipynb").is_file()


ROOTS = """<!DOCTYPE html><meta charset="utf-8"><link rel="stylesheet" href="book.css">
<p style="font-size: 100px">by <math><msqrt><mn>4</mn></msqrt></math>, and
<math><msqrt><mfrac><mn>4</mn><mn>5</mn></mfrac></msqrt></math>"""


def test_a_small_root_leaves_no_gap_behind_it_and_a_large_one_reaches_around_its_fraction(
    tmp_path, browser, served
):
    shutil.copytree(ROOT / "website" / "static", tmp_path, dirs_exist_ok=True)
    (tmp_path / "roots.html").write_text(ROOTS, encoding="utf-8")
    page = browser.new_page()
    page.goto(f"{served(tmp_path)}roots.html")
    page.evaluate("document.fonts.ready")
    edges = "all => all.map((e) => [e, e.firstElementChild].map((x) => x.getBoundingClientRect()))"
    small, large = page.locator("msqrt").evaluate_all(edges)
    page.close()
    assert small[0]["right"] - small[1]["right"] < 5  # of a letter that is 50 wide
    assert large[0]["height"] > large[1]["height"] > small[0]["height"]
