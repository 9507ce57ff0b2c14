"""What a page's head says of it: a description that ends with a whole word, or a Chinese sign."""

from html import escape
from textwrap import shorten

from docutils import nodes
from sphinx.application import Sphinx

from website.words import said, speaks_chinese

LENGTH = 160


def description(doctree: nodes.document) -> str:
    """The chapter's question, or else the first paragraph of a page, up to a whole word."""
    texts = [p for p in doctree.findall(nodes.paragraph) if "book-head" not in p["classes"]]
    asked = [p for p in texts if "book-question" in p["classes"]]
    told = (p.astext().removeprefix(said("The question.")).strip() for p in asked or texts)
    text = next(filter(None, told), "")
    if speaks_chinese():
        return text if len(text) <= LENGTH // 2 else f"{text[: LENGTH // 2]}…"
    return shorten(text, LENGTH, placeholder="…", break_on_hyphens=False)


def describe(
    app: Sphinx, page: str, template: str, context: dict, doctree: nodes.document | None
) -> None:
    """Says it to sphinxext.opengraph, which would cut a page's first letters."""
    if doctree is not None and (words := description(doctree)):
        context["meta"] = {**(context["meta"] or {}), "og:description": words}
        head = f'\n<meta name="description" content="{escape(words)}" />'
        context["metatags"] = context.get("metatags", "") + head


def setup(app: Sphinx) -> None:
    app.connect("html-page-context", describe, priority=400)  # before sphinxext.opengraph
