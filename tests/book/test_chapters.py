"""What holds of every notebook, besides that it runs (which nbval sees to)."""

import re

import nbformat
import pytest

from tests.book.chapter_rules import rules_for
from tools import chapters
from tools.chapters import CHAPTERS, LEDGER, ROOT, code_cells
from tools.ledger import ledger
from transformer_book.claims import claims_of

NOTEBOOKS = {path: nbformat.read(path, as_version=4) for path in chapters.NOTEBOOKS}
RULES = [
    pytest.param(path, rule, id=f"{path.stem}-{rule.__name__}")
    for path, notebook in NOTEBOOKS.items()
    for rule in rules_for(notebook)
]


@pytest.mark.parametrize(("path", "rule"), RULES)
def test_keeps_the_rules(path, rule):
    assert list(rule(NOTEBOOKS[path])) == []


def test_there_are_chapters_and_the_toc_lists_every_notebook():
    there = {path for room in ("chapters", "appendix") for path in (ROOT / room).glob("*.ipynb")}
    assert set(NOTEBOOKS) == there
    assert [path for path in NOTEBOOKS if path in CHAPTERS] == CHAPTERS != []
    for path in CHAPTERS:
        assert NOTEBOOKS[path].cells[0].source.startswith(f"# {int(path.name[:2])}. ")


def claimed(path):
    return claims_of(output for cell in code_cells(NOTEBOOKS[path]) for output in cell.outputs)


def test_no_claim_is_made_twice():
    anchors = [made.anchor for path in NOTEBOOKS for made in claimed(path)]
    assert len(set(anchors)) == len(anchors) > 0


def test_the_ledger_lists_every_claim_once_and_nothing_else():
    page = LEDGER.read_text(encoding="utf-8")
    row = r"^\| (?:\d+\.)?\d+ \| \[.+\]\(#(claim-[a-z0-9-]+)\) \| .+ \|$"
    linked = re.findall(row, page, flags=re.M)
    assert linked == [made.anchor for path in NOTEBOOKS for made in claimed(path)]
    assert page == ledger(list(NOTEBOOKS)), "the ledger is out of date: run make chapters"
