"""The ledger: every claim that the chapters make, with a link to where it is executed."""

import re
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from transformer.book.claims import anchor_of

# What the check of an exercise says of the solution is not a claim of the chapter's.
CLAIM = re.compile(r"^✓ (?!(?:Your turn|Exercise) \d+\.\d+\b)(.+)$", flags=re.MULTILINE)
HEAD = """\
# Ledger of claims

Each line is a claim: a sentence that a chapter states and tests, in the line of code behind the \
link. Were it false, the chapter would stop there with an error. "For three seeds" means that it \
was tested from three random starts and held for each. There are {n}; `make chapters` writes this \
page from what the chapters print.
"""


def claims(notebook: NotebookNode) -> list[str]:
    """What a chapter claims, in its order."""
    outputs = (o for c in notebook.cells for o in c.get("outputs", []))
    printed = "".join(o.text for o in outputs if o.output_type == "stream")
    return CLAIM.findall(printed)


def title(notebook: NotebookNode) -> str:
    return notebook.cells[0].source.splitlines()[0].removeprefix("# ")


def ledger(paths: list[Path]) -> str:
    """The page ``appendix/ledger.md``, in Markdown."""
    chapters = [nbformat.read(path, as_version=4) for path in paths]
    n = sum(len(claims(chapter)) for chapter in chapters)
    return HEAD.format(n=n) + "".join(line for chapter in chapters for line in _section(chapter))


def _section(notebook: NotebookNode) -> Iterator[str]:
    if not claims(notebook):
        return
    chapter = title(notebook).partition(".")[0]
    yield f"\n## Chapter {title(notebook)}\n\n| no. | claim |\n|---|---|\n"
    for number, text in enumerate(claims(notebook), start=1):
        words = re.sub(r"([\\`*_{}\[\]<>|$])", r"\\\1", text)
        yield f"| {chapter}.{number} | [{words}](#{anchor_of(text)}) |\n"
