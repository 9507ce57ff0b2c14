"""How some parts of a page are written as HTML, where Sphinx and MyST-NB write it otherwise.

A long line of code wraps and hangs; folds are called by their titles, and one that goes on is one;
the code of a picture is behind a word at its caption; no role is said that is deprecated. Pictures
have a module of their own.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from html import unescape

from docutils import nodes
from myst_nb.sphinx_ import HideCodeCellNode, depart_HideCellInput
from pygments.formatters import HtmlFormatter
from pygments.token import (
    Comment,
    Keyword,
    Name,
    Number,
    Operator,
    Punctuation,
    String,
    Text,
    Whitespace,
)
from sphinx.addnodes import desc_sig_name, desc_sig_punctuation, desc_sig_space, desc_signature
from sphinx.application import Sphinx
from sphinx.highlighting import PygmentsBridge
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.writers.html5 import HTML5Translator

from website.extensions.pictures import visit_image

# Half of a chapter's elements would be names, signs and spaces of code: they look like all text.
UNCOLOURED = (Name, Name.Namespace, Operator, Punctuation, Whitespace)
# Kinds of one look, on the site, on paper and in the ePub, are one: neighbours share an element.
SAME = {
    **dict.fromkeys((Keyword.Constant, Keyword.Namespace, Operator.Word), Keyword),
    **dict.fromkeys((String.Affix, String.Doc, String.Double, String.Escape), String),
    **dict.fromkeys((String.Interpol, String.Single), String),
    **dict.fromkeys(UNCOLOURED, Text),
    Comment.Single: Comment,
    Name.Builtin.Pseudo: Name.Builtin,
    Number.Float: Number.Integer,
}
FRAME = '<div class="pst-scrollable-table-container">'  # which the theme puts around each table
OF_A_LINK = {"std", "std-ref", "std-term", "std-doc", "doc", "xref", "myst"}  # where it leads to
# The languages of a chapter's cells and of what they print, as MyST-NB calls them, and the letters
# that fit on a phone of 320 px, and of 360 px.
SHORT = {"ipython3": 32, "myst-ansi": 42}


def joined(tokens: Iterable) -> Iterator[tuple]:
    """Tokens of as few kinds as there are looks; a space between two of a kind is of it, too."""
    last, space = Text, ""
    for kind, text in tokens:
        if text.isspace() and "\n" not in text:
            space += text
            continue
        kind = SAME.get(kind, kind)
        if space:
            yield (kind if kind is last else Text), space
        yield kind, text
        last, space = kind, ""
    if space:
        yield Text, space


def hanging(line: str, short: int) -> str:
    """A line of code in an element that hangs, if some screen may be too narrow for the line."""
    letters = len(unescape(re.sub("<[^>]*>", "", line)).rstrip())
    return line if letters <= short else f'<span class="line">{line}</span>'


class BookFormatter(HtmlFormatter):
    """Code with elements only where a colour begins, and with ``hanging`` for each long line."""

    def __init__(self, *, short: int | None = None, **options) -> None:
        super().__init__(**options)
        self.short = short

    def format(self, tokens: Iterator, outfile) -> None:
        super().format(joined(tokens), outfile)

    def wrap(self, source: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
        if self.short is None:
            return super().wrap(source)
        lines = ((i, hanging(line, self.short)) for i, line in source)
        return super().wrap(lines)


def visit_code(translator: HTML5Translator, node: nodes.literal_block) -> None:
    if short := SHORT.get(node.get("language", "")):
        node["highlight_args"] = {**node.get("highlight_args", {}), "short": short}
    type(translator).visit_literal_block(translator, node)


def nothing(translator: HTML5Translator, node: nodes.Element) -> None:
    """No tag; what is inside is written all the same."""


def visit_words_of_code(translator: HTML5Translator, node: nodes.Element) -> None:
    """A name in the text, or a signature: its words need no elements of their own."""
    getattr(type(translator), f"visit_{type(node).__name__}")(translator, node)
    translator.protect_literal_text = 0


def depart_words_of_code(translator: HTML5Translator, node: nodes.Element) -> None:
    getattr(type(translator), f"depart_{type(node).__name__}")(translator, node)
    translator.protect_literal_text = 0


def visit_container(translator: HTML5Translator, node: nodes.container) -> None:
    """A part of a cell is called by its own name alone."""
    type(translator).visit_container(translator, node)
    if node["classes"] and node["classes"][0].startswith("cell"):
        translator.body[-1] = translator.body[-1].replace(" docutils container", "")


class CodeBehindItsPicture(SphinxPostTransform):
    """The code of a drawing or a plot comes behind it, and behind its caption if it has one."""

    default_priority = 200  # after MyST-NB has put a fold around it
    formats = ("html",)

    def run(self, **kwargs) -> None:
        for cell in list(self.document.findall(nodes.container)):
            fold = cell[0] if len(cell) > 1 else None
            if cell.get("hide_mode") != "input" or not isinstance(fold, HideCodeCellNode):
                continue
            if fold["prompt_show"].startswith("Solution"):  # whose output is what it should give
                continue
            cell.remove(fold)
            fold["classes"].append("book-code")
            caption = cell.next_node(descend=False, siblings=True)
            if isinstance(caption, nodes.paragraph) and "book-figure" in caption["classes"]:
                both = nodes.container(classes=["book-caption"])
                caption.parent.replace(caption, both)
                both.extend([caption, fold])
            else:
                cell.append(fold)


def visit_fold(translator: HTML5Translator, node: HideCodeCellNode) -> None:
    """A fold's title is what it is called; MyST-NB calls each "Toggle hidden content"."""
    words = translator.attval(node["prompt_show"])
    kind, summary = "hide", f"<summary>{words}</summary>"
    if "book-code" in node["classes"]:
        kind, summary = "hide book-code", f'<summary aria-label="Code: {words}">code</summary>'
    translator.body.append(f'<details class="{kind}">\n{summary}\n')


def visit_citation(translator: HTML5Translator, node: nodes.citation) -> None:
    """Without the roles that docutils gives: one of them is deprecated, the other needs it."""
    if not isinstance(node.previous_sibling(), nodes.citation):
        translator.body.append('<div class="citation-list">\n')
    translator.body.append(translator.starttag(node, "div", classes=[node.tagname]))


def visit_table(translator: HTML5Translator, node: nodes.table) -> None:
    """A wide one scrolls, by keyboard from the start; place.js takes the narrow ones away."""
    type(translator).visit_table(translator, node)
    if translator.body[-2:-1] == [FRAME]:
        translator.body[-2] = FRAME.replace(">", ' tabindex="0">')


def visit_row(translator: HTML5Translator, node: nodes.row) -> None:
    """No row is striped, so none has to say whether its number is even."""
    node.column = 0
    translator.body.append(translator.starttag(node, "tr", ""))


def is_plain(node: nodes.Element) -> bool:
    """Whether it changes nothing: a cell's only paragraph, or what a link says of itself."""
    if isinstance(node, nodes.paragraph):
        alone = isinstance(node.parent, nodes.entry) and len(node.parent) == 1
        return alone and not node["ids"] and not node["classes"]
    return bool(node["classes"]) and set(node["classes"]) <= OF_A_LINK and not node["ids"]


def unless_plain(step: str, kind: str) -> Callable[[HTML5Translator, nodes.Element], None]:
    """What a translator does to elements of a kind, but for those that are plain."""

    def go(translator: HTML5Translator, node: nodes.Element) -> None:
        if not is_plain(node):
            getattr(type(translator), f"{step}_{kind}")(translator, node)

    return go


def visit_link(translator: HTML5Translator, node: nodes.reference) -> None:
    """A link inside of the book looks like any other."""
    type(translator).visit_reference(translator, node)
    translator.body[-1] = translator.body[-1].replace(' class="reference internal"', "")


def visit_entry(translator: HTML5Translator, node: nodes.entry) -> None:
    """A column without a name has no ``<th>``, which would head nothing."""
    if isinstance(node.parent.parent, nodes.thead) and not node.astext():
        node.parent.column += 1
        translator.body.append("<td></td>\n")
        raise nodes.SkipNode
    type(translator).visit_entry(translator, node)


def setup(app: Sphinx) -> dict[str, bool]:
    PygmentsBridge.html_formatter = BookFormatter
    app.add_post_transform(CodeBehindItsPicture)
    for node, visit, depart in (
        (nodes.image, visit_image, nothing),
        (nodes.literal_block, visit_code, None),
        (nodes.literal, visit_words_of_code, depart_words_of_code),
        (desc_signature, visit_words_of_code, depart_words_of_code),
        *(
            (part, nothing, nothing)
            for part in (desc_sig_name, desc_sig_punctuation, desc_sig_space)
        ),
        (nodes.container, visit_container, None),
        (nodes.citation, visit_citation, None),
        (nodes.table, visit_table, None),
        (nodes.entry, visit_entry, None),
        (nodes.row, visit_row, None),
        *(
            (kind, unless_plain("visit", kind.__name__), unless_plain("depart", kind.__name__))
            for kind in (nodes.paragraph, nodes.inline)
        ),
        (nodes.reference, visit_link, None),
        (HideCodeCellNode, visit_fold, depart_HideCellInput),
    ):
        app.add_node(node, override=True, html=(visit, depart))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
