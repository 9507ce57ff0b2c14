"""A glossary has a list for each letter, which a browser lays out when the reader comes near it.

Above it stands a row of all letters, each a link to its first term.
"""

from docutils import nodes
from sphinx.addnodes import glossary
from sphinx.application import Sphinx

from website.words import alphabetical


def add_letters(app: Sphinx, doctree: nodes.document) -> None:
    """Runs on each page that was read; a page without a glossary stays as it is."""
    for entries in list(doctree.findall(glossary)):
        (whole,) = entries.children
        first: dict[str, str] = {}
        lists: dict[str, nodes.definition_list] = {}
        for item in list(whole.children):
            term = item.next_node(nodes.term)
            letter = alphabetical(term.astext())[0].upper()
            first.setdefault(letter, term["ids"][0])
            lists.setdefault(letter, nodes.definition_list(**whole.attributes)).append(item)
        entries.children = []
        entries += lists.values()
        row = nodes.paragraph(classes=["book-letters"])
        for letter, place in sorted(first.items()):
            row += nodes.reference("", letter, refid=place, internal=True)
            row += nodes.Text(" ")
        entries.parent.insert(entries.parent.index(entries), row)


def setup(app: Sphinx) -> None:
    app.connect("doctree-read", add_letters)
