"""The ledger: every claim that the chapters make, with a link to where it is executed."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from transformer_book.claims import Claim, claims_of

HEAD = """\
# Ledger of claims

The book has {all} claims, which are sentences that a chapter states and tests. Each links to the \
line of code that tests it, and if it were false, the chapter would stop there with an error. \
There are three kinds of claims:

| kind | how many | what the line of code does |
|---|---|---|
| identity | {identity} | computes one thing in two ways, or counts, and holds the results equal |
| theorem | {theorem} | tests on examples what a proof, or the definition, says of all cases |
| experiment | {experiment} | measures something that could have come out otherwise |

"3 seeds" means that the experiment was made from three random starts, and that the sentence held \
for each of them, or for their average; "200 steps", for how long its models were trained. Some \
experiments take longer than a page has time for: their claims test results that are stored with \
the book. `make experiments` lists them and makes them anew, and `make chapters` writes this page.

<div class="book-ledger"><p>On the book's site you can choose here which claims are shown.</p></div>
"""


def claims(notebook: NotebookNode) -> list[Claim]:
    """What a chapter claims, in its order."""
    return [made for cell in notebook.cells for made in claims_of(cell.get("outputs", []))]


def title(notebook: NotebookNode) -> str:
    return notebook.cells[0].source.splitlines()[0].removeprefix("# ")


def ledger(paths: list[Path]) -> str:
    """The page ``appendix/ledger.md``, in Markdown."""
    chapters = [nbformat.read(path, as_version=4) for path in paths]
    kinds = Counter(made.kind for chapter in chapters for made in claims(chapter))
    head = HEAD.format_map(kinds + Counter(all=kinds.total()))
    return head + "".join(line for chapter in chapters for line in _section(chapter))


def _section(notebook: NotebookNode) -> Iterator[str]:
    if not claims(notebook):
        return
    numbered = re.match(r"(\d+\.) ", title(notebook))
    chapter, kind = (numbered[1], "Chapter ") if numbered else ("", "")
    n = len(claims(notebook))
    yield f"\n## {kind}{title(notebook)}\n\n<details>\n<summary>{n} claims</summary>\n\n"
    yield "| no. | claim | kind |\n|---|---|---|\n"
    for number, made in enumerate(claims(notebook), start=1):
        words = re.sub(r"([\\`*_{}\[\]<>|$])", r"\\\1", made.text)  # what Markdown would read
        yield f"| {chapter}{number} | [{words}](#{made.anchor}) | {made.description} |\n"
    yield "\n</details>\n"
