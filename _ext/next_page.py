"""At a page's foot: the next chapter, with the question that it answers."""

import re
from html import escape

from docutils import nodes
from sphinx.application import Sphinx

from _ext.formulas import mathml

QUESTION = re.compile(r"[^.?!]*\?")


def first_question(paragraph: nodes.paragraph) -> str:
    """The first sentence of a paragraph that asks, as HTML; nothing if none does."""
    found = QUESTION.search(paragraph.astext().removeprefix("The question."))
    asked = escape(found[0].strip("\n ”)")) if found else ""
    formulas = {math.astext() for math in paragraph.findall(nodes.math)}
    for tex in sorted(formulas, key=len, reverse=True):  # one may stand in another
        asked = asked.replace(escape(tex), mathml(tex))
    return asked


def note_question(app: Sphinx, doctree: nodes.document) -> None:
    for paragraph in doctree.findall(nodes.paragraph):
        if "book-question" in paragraph["classes"]:
            app.env.metadata[app.env.docname]["question"] = first_question(paragraph)


def ask(
    app: Sphinx, page: str, template: str, context: dict, doctree: nodes.document | None
) -> None:
    """Adds the next chapter's question to the link to it; ``next_title`` is the theme's."""
    _, _, following = getattr(app.builder, "relations", {}).get(page, (None, None, None))
    if following and (asked := app.env.metadata[following].get("question")):
        title = context["next"]["title"]
        context["next_title"] = f'{title} <span class="book-asked">{asked}</span>'


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("doctree-read", note_question, priority=600)  # after book_site has found it
    app.connect("html-page-context", ask)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
