"""What the tests of the living figures share: chapters' cells that are run, figures' pages."""

import contextlib
import math
import re
from collections.abc import Iterator
from pathlib import Path

import nbformat
import torch
from torch import nn

from transformer.cache import Memory
from transformer.data.tokens import PAD_ID
from transformer_book import claim, close, notebooks
from transformer_book.claims import claims_of
from website.extensions.page_parts import PARTS, SITE, copy_part
from website.server import serve

SOURCE = SITE / "living"
FIGURES = {  # the number of its chapter, where a figure has its place
    name: int(path.name[:2])
    for path in sorted(notebooks.CHAPTERS.glob("[0-9]*.ipynb"))
    for name in re.findall(r'data-figure=\\"(\w+)', path.read_text(encoding="utf-8"))
}
PAGE = """<!DOCTYPE html><html lang="en" data-theme="{scheme}"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width"><title>A figure</title>
<link rel="icon" href="data:,"><link rel="stylesheet" href="parts.css">
<link rel="stylesheet" href="living/living.css"></head>
<body style="margin: 8px"><div class="book-living" data-figure="{name}"><p>Without scripts</p></div>
<script type="module" src="living/figures.js"></script></body></html>"""


def cells_of(chapter: int) -> dict:
    cells = nbformat.read(notebooks.chapter_path(chapter), as_version=4).cells
    return {cell.id: cell for cell in cells}


def run_cells(chapter: int, *ids: str, **names) -> dict:
    """The names that cells of a chapter leave, run in this order; what they print is dropped."""
    space = {"math": math, "torch": torch, "nn": nn, "claim": claim, "close": close}
    space |= {"PAD_ID": PAD_ID, "Memory": Memory} | names
    return notebooks.run_cells(notebooks.chapter_path(chapter), ids, space)


def claimed(chapter: int) -> list[str]:
    """What a chapter's stored outputs claim."""
    cells = cells_of(chapter).values()
    return [made.text for cell in cells for made in claims_of(cell.get("outputs", []))]


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of the figures' pages, which are written into ``folder``."""
    write_pages(folder)
    server, base = serve(folder)
    yield base
    server.shutdown()
    server.server_close()


def write_pages(folder: Path) -> None:
    """Each figure's page beside a copy of the scripts, light and dark."""
    copy_part(PARTS["book-living"], folder)
    for name in FIGURES:
        for scheme in ("light", "dark"):
            page = PAGE.format(name=name, scheme=scheme)
            (folder / f"{name}-{scheme}.html").write_text(page, encoding="utf-8")
