"""At a page's foot: the next chapter, with the question that the front page's map gives to it."""

import re
from html import escape

from docutils import nodes
from sphinx.application import Sphinx

from website.extensions.chinese import text_of
from website.extensions.formulas import mathml

ROW = re.compile(r"^\| (?:\d+ )?\| \[[^]]+\]\((\S+)\.ipynb\) \| (.+) \|$", re.MULTILINE)
FORMULA = re.compile(r"\$(.+?)\$")


def questions(front: str) -> dict[str, str]:
    """The question of each page in the map, as HTML."""

    def as_html(asked: str) -> str:
        parts = FORMULA.split(asked)
        return "".join(mathml(p) if i % 2 else escape(p) for i, p in enumerate(parts))

    return {page: as_html(asked) for page, asked in ROW.findall(front)}


def ask(
    app: Sphinx, page: str, template: str, context: dict, doctree: nodes.document | None
) -> None:
    """Adds the next chapter's question to the link to it; ``next_title`` is the theme's."""
    _, _, following = getattr(app.builder, "relations", {}).get(page, (None, None, None))
    if asked := questions(text_of(app, app.config.root_doc)).get(following):
        title = context["next"]["title"]
        context["next_title"] = f'{title} <span class="book-asked">{asked}</span>'


def setup(app: Sphinx) -> None:
    app.connect("html-page-context", ask)
