"""Lines of their own for what a cell has found: ✓ holds, ○ waits for the reader.

A notebook shows them as output like any other: a claim, and what a check says of the reader's
answer. Here each becomes a paragraph, and that of a claim gets the address by which the ledger and
other chapters reach it. A cell that waits for the reader is marked as one, and a chapter says at
its head what it has.
"""

import re
from itertools import groupby

import nbformat
from docutils import nodes
from sphinx.application import Sphinx

from transformer_book.claims import claims_of
from website.extensions.book_site import anchor
from website.words import said

SIGN = {"✓": "holds", "○": "waits"}
LINE = re.compile(r"^[✓○] .", re.MULTILINE)
CHAPTER = re.compile(r"chapters/\w+")  # a notebook, with a number or without


def tick(sign: str, text: str) -> nodes.paragraph:
    paragraph = nodes.paragraph(classes=["book-tick", f"book-{SIGN[sign]}"])
    paragraph += nodes.inline("", sign, classes=["book-sign"])
    paragraph += nodes.inline("", said(text))
    return paragraph


def claim_line(app: Sphinx, text: str, address: str) -> nodes.paragraph:
    """The line of a claim, which can be linked to."""
    paragraph = tick("✓", text)
    paragraph["classes"].append("book-claim")
    anchor(app, paragraph, address)
    paragraph += nodes.reference(
        "",
        "#",
        refid=paragraph["ids"][0],
        classes=["headerlink"],
        reftitle=said("Link to this claim"),
    )
    return paragraph


def split(block: nodes.literal_block) -> list[nodes.Element]:
    """What a cell printed, with a paragraph for each line that begins with a sign."""
    parts: list[nodes.Element] = []
    for signed, lines in groupby(block.astext().splitlines(), lambda line: bool(LINE.match(line))):
        if signed:
            parts += [tick(line[0], line[2:]) for line in lines]
        elif (text := "\n".join(lines)).strip():
            part = block.copy()  # its classes and language, without what is in it
            part["ids"] = []
            part.rawsource = text
            part += nodes.Text(text)
            parts.append(part)
    return parts


def typed_in(cell: nodes.Element) -> nodes.Element:
    """The cell that the reader types in: the one before, if that saves a file for this one."""
    before = cell.parent[max(0, cell.parent.index(cell) - 1)]
    return before if before.astext().startswith("%%writefile") else cell


def set_ticks(app: Sphinx, doctree: nodes.document) -> None:
    """Runs on each page that was read, before anything is resolved."""
    if not CHAPTER.fullmatch(app.env.docname):
        return
    # the page is made of what is shown; the data behind it stands in the notebook alone
    notebook = nbformat.read(app.env.doc2path(app.env.docname), as_version=4)
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    address = {repr(made): made.anchor for made in claims_of(outputs)}
    for block in list(doctree.findall(nodes.literal_block)):
        text = block.astext()
        if "text_plain" in block["classes"] and text in address:
            block.replace_self(claim_line(app, text.removeprefix("✓ "), address[text]))
        elif "stream" in block["classes"] and LINE.search(text):
            parts = split(block)
            if any("book-waits" in part["classes"] for part in parts):
                typed_in(block.parent.parent)["classes"].append("book-yours")
            block.replace_self(parts)
    add_head(doctree)


def add_head(doctree: nodes.document) -> None:
    """Under a chapter's title, in one line: how many claims, turns and exercises it has."""
    of_class = [p for p in doctree.findall(nodes.paragraph) if "book-tick" in p["classes"]]
    waiting = [p.astext() for p in of_class if "book-waits" in p["classes"]]
    turns, exercises = (
        {found[0] for text in waiting if (found := re.search(rf"{said(kind)} \d+\.\d+", text))}
        for kind in ("Your turn", "Exercise")
    )
    counts = {
        "claim{}, each tested by code": sum("book-claim" in p["classes"] for p in of_class),
        "function{} to write yourself": len(turns),
        "exercise{}": len(exercises),
    }
    told = [said(f"{n} {what.format('s' * (n != 1))}") for what, n in counts.items() if n]
    title = next(iter(doctree.findall(nodes.title)))
    if told:
        head = nodes.paragraph(classes=["book-head"])
        unbroken = (part.replace(" ", "\N{NO-BREAK SPACE}") for part in told)
        head += nodes.Text(" · ".join(unbroken))
        title.parent.insert(title.parent.index(title) + 1, head)


def setup(app: Sphinx) -> None:
    app.connect("doctree-read", set_ticks)
