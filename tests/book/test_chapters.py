"""What holds of every notebook, besides that it runs (which nbval sees to)."""

import ast
import copy
import re

import nbformat
import pytest

from tests.book.chapter_rules import always, rules_for
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


# Chapter 4 broken once for each thing that a rule may say: ``c`` finds a cell of it.


def find(notebook, kind):
    """The first cell of code of such a name, or with such an output, or any with such a source."""
    for cell in code_cells(notebook):
        shown = {name for output in cell.outputs for name in output.get("data", {})}
        if cell.id.startswith(kind) or kind in shown:
            return cell
    return next(c for c in notebook.cells if c.id != "set-up" and kind in c.source)


def text(cell, old, new):
    assert old in cell.source
    cell.source = cell.source.replace(old, new, 1)


def set_up(notebook):
    return code_cells(notebook)[0]


def tell(cell, said):
    cell.outputs = [nbformat.v4.new_output("stream", text=said)]


BROKEN = {
    "its kernel is an editor's": lambda n, c: n.metadata.kernelspec.update(display_name=".venv"),
    "an editor has left something": lambda n, c: c("solution").metadata.update(scrolled=True),
    "ran as None": lambda n, c: c("solution").update(execution_count=None),
    "are not what its stamp was made of": lambda n, c: tell(c("solution"), "edited"),
    "stores an error or a warning": lambda n, c: c("solution").outputs[0].update(name="stderr"),
    "is not the set-up cell": lambda n, c: text(set_up(n), "One", "Two"),
    "must be tagged remove-cell": lambda n, c: set_up(n).metadata.update(tags=[]),
    "names '/home/'": lambda n, c: tell(c("solution"), "/home/me/book"),
    "tells nbval in a comment": lambda n, c: text(c("solution"), "\n", "\n# NBVAL_SKIP\n"),
    "and its outputs claim []": lambda n, c: tell(c("claim("), ""),
    "makes a claim or show of its own": lambda n, c: text(c("solution"), "\n", "\nclaim = 1\n"),
    "claims what always holds: 1 < 2": lambda n, c: text(
        c("claim("), "\n", "\nclaim('one', 1 < 2, 'identity')\n"
    ),
    "which no claim has made": lambda n, c: tell(c("solution"), "✓ it works"),
    "is tagged hide-cel": lambda n, c: c("solution").metadata.update(tags=["hide-cel"]),
    "is folded without # @title": lambda n, c: text(c("solution"), "# @title", "#"),
    "its fold does not say": lambda n, c: text(c("solution"), "Solution", "The solution"),
    "has no words for those": lambda n, c: c("# @title Plot").metadata.pop("mystnb"),
    "are not those of its one drawing": lambda n, c: c(
        "image/svg+xml"
    ).metadata.mystnb.image.update(alt="a box"),
    "no **Figure …** in the next cell": lambda n, c: n.cells.insert(
        n.cells.index(c("# @title Plot")) + 1, nbformat.v4.new_markdown_cell("Look.")
    ),
    "not in a figures.ink(…)": lambda n, c: text(
        c("# @title Plot"), "\n", "\nplt.text(0, 0, 'faint', color=figures.ORANGE)\n"
    ),
    "its figures are": lambda n, c: text(c("**Figure 4.2.**"), "4.2", "4.9"),
    "its sections are": lambda n, c: text(c("## 4.2 "), "4.2", "4.9"),
    "names exercise 4.77": lambda n, c: text(c("## 4.2 "), "\n", "\nSee exercise 4.77.\n"),
    "its reader has no turn": lambda n, c: [
        cell.update(id=f"my-{cell.id}") for cell in n.cells if cell.id.startswith("your-turn-")
    ],
    "it asks": lambda n, c: c("exercise-4-1").update(id="exercise-4-9"),
    "must be open, and say first": lambda n, c: tell(c("your-turn-"), "✓ Your turn 4.1: right"),
    "its check must be named check_4_1": lambda n, c: text(
        c("exercise-4-1"), "check_4_1", "check_41"
    ),
    "no cell solution-4-1 follows": lambda n, c: n.cells.remove(c("solution-4-1")),
    "solution-4-2: is not folded": lambda n, c: c("solution-4-2").metadata.pop("tags"),
    "does not print ✓ Exercise 4.1": lambda n, c: tell(c("solution-4-1"), "✗ Exercise 4.1"),
    "no <summary>Hint before": lambda n, c: text(c("<summary>Hint"), "Hint", "More"),
    "no later cell runs with": lambda n, c: text(c(".use("), ".use(", ".take("),
}


@pytest.mark.parametrize("said", BROKEN)
def test_a_broken_rule_is_found(said):
    notebook = copy.deepcopy(NOTEBOOKS[CHAPTERS[4]])
    BROKEN[said](notebook, lambda kind: find(notebook, kind))
    found = [line for rule in rules_for(notebook) for line in rule(notebook)]
    assert any(said in line for line in found), found


HOLD_ANYWAY = ("True", "1 < 2", "x == x", "x[0] is x[0]", "a > 0.3 or True", "x <= x and 1 < 2")
MAY_FAIL = ("a > 0.3", "x == y", "run(0) == run(0)", "a > 0.3 and True", "x < x + 1")


@pytest.mark.parametrize("condition", HOLD_ANYWAY + MAY_FAIL)
def test_what_holds_anyway_is_told_from_what_may_fail(condition):
    assert always(ast.parse(condition, mode="eval").body) == (condition in HOLD_ANYWAY)
