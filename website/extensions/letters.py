"""A row of letters above a glossary, each a link to its first term."""

from docutils import nodes
from sphinx.addnodes import glossary
from sphinx.application import Sphinx


def add_letters(app: Sphinx, doctree: nodes.document) -> None:
    """Runs on each page that was read; a page without a glossary stays as it is."""
    for entries in list(doctree.findall(glossary)):
        first: dict[str, str] = {}
        for item in entries.findall(nodes.definition_list_item):
            term = item.next_node(nodes.term)
            first.setdefault(term.astext()[0].upper(), term["ids"][0])
        row = nodes.paragraph(classes=["book-letters"])
        for letter, place in sorted(first.items()):
            row += nodes.reference("", letter, refid=place, internal=True)
            row += nodes.Text(" ")
        entries.parent.insert(entries.parent.index(entries), row)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("doctree-read", add_letters)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
