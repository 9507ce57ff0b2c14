"""How cells, pictures and tables are written as HTML, where Sphinx and MyST-NB do it otherwise.

A long line of code wraps below its own indentation; folds are called by their titles, and the code
of a picture is behind a word at its caption; a picture keeps its place while it loads.
"""

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from urllib.parse import quote

import imagesize
from docutils import nodes
from myst_nb.sphinx_ import HideCodeCellNode, depart_HideCellInput
from pygments.formatters import HtmlFormatter
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Text
from sphinx.addnodes import desc_parameterlist
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.highlighting import PygmentsBridge
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.writers.html5 import HTML5Translator

from website.words import said

# Kinds of one look, on the site, on paper and in the ePub, are one. Half of a chapter's elements
# would be names, signs and spaces of code: they look like all text.
MERGED = {
    **dict.fromkeys((Name, Name.Namespace, Operator, Punctuation, Text.Whitespace), Text),
    **dict.fromkeys((Keyword.Constant, Keyword.Namespace, Operator.Word), Keyword),
    **dict.fromkeys((String.Affix, String.Doc, String.Double, String.Escape), String),
    **dict.fromkeys((String.Interpol, String.Single), String),
    Comment.Single: Comment,
    Name.Builtin.Pseudo: Name.Builtin,
    Number.Float: Number.Integer,
}
TAG = re.compile("<[^>]*>")
LIST = re.compile("(?<=<)d[ld]\\b|(?<=</)d[ld]\\b")
SHORT = 32  # letters of a line of code that fit on a phone of 320 px


def hanging(lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Each long line in an element that hangs; of several blank lines only the first is seen."""
    blank = False
    for i, line in lines:
        text = unescape(TAG.sub("", line)).rstrip()
        if blank and not text:
            line = f'<span class="blank">{line}</span>'
        elif len(text) > SHORT:
            indent = len(text) - len(text.lstrip())
            style = f' style="--in: {indent}"' if indent else ""
            line = f'<span class="line"{style}>{line}</span>'
        blank = not text
        yield i, line


class BookFormatter(HtmlFormatter):
    def format(self, tokens, outfile) -> None:
        super().format(((MERGED.get(kind, kind), text) for kind, text in tokens), outfile)

    def wrap(self, source: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
        return super().wrap(hanging(source))


class CodeBehindItsPicture(SphinxPostTransform):
    """The code of a drawing or a plot comes behind it, and behind its caption if it has one.

    A link to the caption leads to the picture.
    """

    default_priority = 200  # after MyST-NB has put a fold around it
    formats = ("html",)

    def run(self, **kwargs) -> None:
        for cell in list(self.document.findall(nodes.container)):
            fold = cell[0] if len(cell) > 1 else None
            if cell.get("hide_mode") != "input" or not isinstance(fold, HideCodeCellNode):
                continue
            if fold["prompt_show"].startswith(
                said("Solution")
            ):  # whose output is what it should give
                continue
            cell.remove(fold)
            fold["classes"].append("book-code")
            caption = cell.next_node(descend=False, siblings=True)
            if isinstance(caption, nodes.paragraph) and "book-figure" in caption["classes"]:
                both = nodes.container(classes=["book-caption"])
                caption.parent.replace(caption, both)
                both.extend([caption, fold])
                cell["ids"], caption["ids"] = caption["ids"], []
            else:
                cell.append(fold)


def visit_fold(translator: HTML5Translator, node: HideCodeCellNode) -> None:
    """A fold's title is what it is called; MyST-NB calls each "Toggle hidden content"."""
    words = translator.attval(node["prompt_show"])
    kind, summary = "hide", f"<summary>{words}</summary>"
    if "book-code" in node["classes"]:
        kind, summary = (
            "hide book-code",
            f'<summary aria-label="{said("Code")}: {words}">{said("code")}</summary>',
        )
    translator.body.append(f'<details class="{kind}">\n{summary}\n')


def visit_image(translator: HTML5Translator, node: nodes.image) -> None:
    """It comes when the reader is near, at the size that MyST-NB has read, or else its own."""
    builder = translator.builder
    size = [node.get(side, "").removesuffix("px") for side in ("width", "height")]
    if not all(side.isdecimal() for side in size):
        size = [round(side) for side in imagesize.get(Path(builder.srcdir) / node["uri"])]
        if min(size) <= 0:
            raise ExtensionError(f"{node['uri']} is no picture in this folder, or has no size")
    width, height = size
    source = f"{builder.imgpath}/{quote(builder.images[node['uri']])}"
    attributes = {"src": source, "alt": node.get("alt", ""), "loading": "lazy"}
    attributes |= {"width": width, "height": height}
    translator.body.append(translator.emptytag(node, "img", "\n", **attributes))


def visit_citation(translator: HTML5Translator, node: nodes.citation) -> None:
    """Writes a citation without docutils' roles: one of them is deprecated, the other needs it."""
    if not isinstance(node.previous_sibling(), nodes.citation):
        translator.body.append('<div class="citation-list">\n')
    translator.body.append(translator.starttag(node, "div", classes=[node.tagname]))


def visit_entry(translator: HTML5Translator, node: nodes.entry) -> None:
    """A column without a name has no ``<th>``, which would head nothing."""
    if isinstance(node.parent.parent, nodes.thead) and not node.astext():
        node.parent.column += 1
        translator.body.append("<td></td>\n")
        raise nodes.SkipNode
    type(translator).visit_entry(translator, node)


def depart_parameters(translator: HTML5Translator, node: desc_parameterlist) -> None:
    """Parameters on lines of their own are a list: Sphinx's ``<dl>`` has no ``<dt>``."""
    type(translator).depart_desc_parameterlist(translator, node)
    if node.get("multi_line_parameter_list"):
        body = translator.body
        start = max(i for i, piece in enumerate(body) if piece.startswith("<dl"))
        names = {"dl": "ul", "dd": "li"}
        body[start:] = [LIST.sub(lambda tag: names[tag[0]], piece) for piece in body[start:]]


def leave_out(app: Sphinx, page: str, template: str, context: dict, doctree: object) -> None:
    """Leaves MyST-NB's style sheet out: what a cell looks like is said in ``static/cells.css``."""
    context["css_files"] = [
        sheet for sheet in context["css_files"] if "_static/mystnb" not in str(sheet.filename)
    ]


def setup(app: Sphinx) -> None:
    PygmentsBridge.html_formatter = BookFormatter
    app.add_post_transform(CodeBehindItsPicture)
    app.add_node(HideCodeCellNode, override=True, html=(visit_fold, depart_HideCellInput))
    app.add_node(nodes.image, override=True, html=(visit_image, lambda *_: None))
    app.add_node(nodes.citation, override=True, html=(visit_citation, None))
    app.add_node(nodes.entry, override=True, html=(visit_entry, None))
    parameters = HTML5Translator.visit_desc_parameterlist, depart_parameters
    app.add_node(desc_parameterlist, override=True, html=parameters)
    app.connect("html-page-context", leave_out, priority=900)  # after the theme has put it in
