"""What a reader of a notebook would miss; each rule says what is wrong with one.

``test_chapters.py`` asks them of every notebook.
"""

import ast
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from tools.chapters import (
    CELL_METADATA,
    FOLDED,
    METADATA,
    ROOT,
    TITLE,
    code_cells,
    drawings,
    is_fresh,
    words_for,
)
from tools.set_up import is_evening, set_up_source
from transformer_book import figures
from transformer_book.claims import claims_of
from transformer_book.experiments.imports import python_of_cell

HINT = re.compile(r"<details>\s*<summary>[^<]*\bHint\b")
NUMBERED = re.compile(r"# (\d+)\. ")
PATH = re.compile(r"(?<![\w.:/])/(?:home|Users|root|tmp|var|usr|opt|mnt|content)/|[A-Z]:\\\\Users")
NUMBERS = {
    "section": r"^## (\d+\.\d+) ",
    "equation": r"\\tag\{(\d+\.\d+)\}",
    "figure": r"^\*\*Figure (\d+\.\d+)\.\*\*",
    "exercise": r"^\*\*Exercise (\d+\.\d+)\.\*\*",
}

Rule = Callable[[NotebookNode], Iterator[str]]


def chapter_of(notebook: NotebookNode) -> int | None:
    """Its number, if it has one."""
    numbered = NUMBERED.match(notebook.cells[0].source)
    return int(numbered[1]) if numbered else None


def markdown(notebook: NotebookNode) -> str:
    return "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")


def tags(cell: NotebookNode) -> set[str]:
    return set(cell.metadata.get("tags", []))


def printed(cell: NotebookNode) -> str:
    return "".join(o.text for o in cell.outputs if o.output_type == "stream")


def parsed(cell: NotebookNode) -> ast.Module:
    return ast.parse(python_of_cell(cell.source))


def it_is_a_notebook_with_the_books_kernel(notebook: NotebookNode) -> Iterator[str]:
    nbformat.validate(notebook)
    if {k: v for k, v in notebook.metadata.items() if k != "transformer_book"} != METADATA:
        yield "its kernel is an editor's: run make chapters"
    if any(set(cell.metadata) - CELL_METADATA for cell in notebook.cells):
        yield "an editor has left something in its cells: run make chapters"


def it_was_run_from_top_to_bottom(notebook: NotebookNode) -> Iterator[str]:
    """nbval says nothing of a cell that was never run."""
    for number, cell in enumerate(code_cells(notebook), start=1):
        if cell.execution_count != number:
            yield f"{cell.id}: ran as {cell.execution_count}, not as {number}: run make chapters"
        for output in cell.outputs:
            if output.output_type == "error" or output.get("name") == "stderr":
                yield f"{cell.id}: stores an error or a warning"


def its_stamp_is_its_own(notebook: NotebookNode) -> Iterator[str]:
    if not is_fresh(notebook):
        yield "its code or its outputs are not what its stamp was made of: run make chapters"


def it_begins_with_the_set_up(notebook: NotebookNode) -> Iterator[str]:
    first = code_cells(notebook)[0]
    if first.id != "set-up" or first.source != set_up_source(evening=is_evening(notebook)):
        yield f"{first.id}: is not the set-up cell of this repository: run make chapters"
    elif tags(first) != {"remove-cell"} or first.outputs:
        yield "set-up: must be tagged remove-cell, and show nothing"


def it_knows_no_path_of_a_machine(notebook: NotebookNode) -> Iterator[str]:
    text = json.dumps([{k: c[k] for k in ("source", "outputs") if k in c} for c in notebook.cells])
    yield from (f"names {path!r}" for path in PATH.findall(text))
    yield from (f"names {path}" for path in (str(ROOT), str(Path.home())) if path in text)


def claims_are_made_where_they_stand(notebook: NotebookNode) -> Iterator[str]:
    for cell in code_cells(notebook)[1:]:
        made, calls = [each.text for each in claims_of(cell.outputs)], claim_calls(cell)
        said = [c.args[0].value for c in calls if c.args and isinstance(c.args[0], ast.Constant)]
        if not set(said) <= set(made) or len(made) < len(calls) or (made and not calls):
            yield f"{cell.id}: calls {said}, and its outputs claim {made}"


def claim_calls(cell: NotebookNode) -> list[ast.Call]:
    calls = (node for node in ast.walk(parsed(cell)) if isinstance(node, ast.Call))
    return [c for c in calls if isinstance(c.func, ast.Name) and c.func.id == "claim"]


def ticks_are_claims(notebook: NotebookNode) -> Iterator[str]:
    """Only a check of what the reader writes prints a line with a tick."""
    for cell in code_cells(notebook):
        ticks = re.findall(r"^✓ (?!(?:Your turn|Exercise) \d+\.\d+\b).*$", printed(cell), re.M)
        if ticks:
            yield f"{cell.id}: prints {ticks[0]!r}, which no claim has made"


def folds_say_what_is_in_them(notebook: NotebookNode) -> Iterator[str]:
    for cell in notebook.cells:
        known = (
            FOLDED | {"nbval-ignore-output", "remove-output"}
            if cell.id != "set-up"
            else {"remove-cell"}
        )
        if unknown := tags(cell) - known:
            yield f"{cell.id}: is tagged {', '.join(sorted(unknown))}"
        title = TITLE.match(cell.source)
        prompt = cell.metadata.get("mystnb", {}).get("code_prompt_show")
        if tags(cell) & FOLDED and not title:
            yield f"{cell.id}: is folded without # @title in its first line"
        elif tags(cell) & FOLDED and prompt != title[1].strip():
            yield f"{cell.id}: its fold does not say {title[1]!r}: run make chapters"


def pictures_have_words_and_captions(notebook: NotebookNode) -> Iterator[str]:
    for n, cell in enumerate(notebook.cells):
        shown = {kind for output in cell.get("outputs", []) for kind in output.get("data", {})}
        if not shown & {"image/png", "image/svg+xml"}:
            continue
        words = cell.metadata.get("mystnb", {}).get("image", {}).get("alt")
        if not words:
            yield f"{cell.id}: has no words for those who do not see it"
        elif (own := [*filter(None, map(words_for, drawings(cell)))]) and own != [words]:
            yield f"{cell.id}: its words are not those of its one drawing: run make chapters"
        after = [following.source for following in notebook.cells[n + 1 : n + 2]]
        if cell.id != "map" and not "".join(after).startswith("**Figure "):
            yield f"{cell.id}: no **Figure …** in the next cell"


def words_in_plots_are_dark(notebook: NotebookNode) -> Iterator[str]:
    """A colour that is good for a line is too faint for words on white."""
    for cell in code_cells(notebook):
        calls = (node for node in ast.walk(parsed(cell)) if isinstance(node, ast.Call))
        for call in (c for c in calls if getattr(c.func, "attr", "") in {"text", "annotate"}):
            for color in (each.value for each in call.keywords if each.arg == "color"):
                faint = isinstance(color, ast.Attribute) and (
                    getattr(figures, color.attr) in figures.INKS
                )
                if faint or "#" in str(getattr(color, "value", "")):
                    yield f"{cell.id}: writes in {ast.unparse(color)}, not in a figures.ink(…)"


def numbers_run_without_a_gap(notebook: NotebookNode) -> Iterator[str]:
    for kind, pattern in NUMBERS.items():
        found = re.findall(pattern, markdown(notebook), flags=re.M)
        wanted = [f"{chapter_of(notebook)}.{n + 1}" for n in range(len(found))]
        if found != wanted:
            yield f"its {kind}s are {found}"


def numbers_that_are_named_exist(notebook: NotebookNode) -> Iterator[str]:
    text, chapter = markdown(notebook), chapter_of(notebook)
    there = {kind: re.findall(pattern, text, flags=re.M) for kind, pattern in NUMBERS.items()}
    for kind, number in re.findall(rf"\b(\w+) ({chapter}\.\d+)\b", text):
        if number not in there.get(kind.lower(), [number]):
            yield f"names {kind} {number}, which it has not"


def turns_and_exercises_can_be_tried_and_are_solved(notebook: NotebookNode) -> Iterator[str]:
    chapter, cells = chapter_of(notebook), notebook.cells
    ids = [cell.id for cell in cells]
    turns = [cell for cell in code_cells(notebook) if cell.id.startswith("your-turn-")]
    if not turns:
        yield "its reader has no turn: no cell your-turn-…"
    tried = [(turn, f"Your turn {chapter}.{n}", f"solution-{turn.id}")
             for n, turn in enumerate(turns, start=1)]  # fmt: skip
    for cell in code_cells(notebook):
        if exercise := re.fullmatch(r"exercise-(\d+)-(\d+)", cell.id):
            number = ".".join(exercise.groups())
            if f"\ncheck_{number.replace('.', '_')}" not in cell.source:
                yield f"{cell.id}: its check must be named check_{number.replace('.', '_')}"
            tried.append((cell, f"Exercise {number}", cell.id.replace("exercise", "solution")))
    asked = [f"Exercise {n}" for n in re.findall(NUMBERS["exercise"], markdown(notebook), re.M)]
    if asked != [what for _, what, _ in tried[len(turns) :]]:
        yield f"it asks {asked}, and its starters are {[cell.id for cell, *_ in tried]}"
    for cell, what, solution in tried:
        rest = cells[ids.index(cell.id) + 1 :]
        solutions = [n for n, each in enumerate(rest) if each.id == solution]
        if tags(cell) & FOLDED or not printed(cell).startswith("○"):
            yield f"{cell.id}: must be open, and say first that nothing is written yet"
        if not solutions:
            yield f"{cell.id}: no cell {solution} follows"
        elif "hide-cell" not in tags(solved := rest[solutions[0]]):
            yield f"{solution}: is not folded"
        elif not re.search(rf"^✓ {re.escape(what)}(?!\.?\d)", printed(solved), re.M):
            yield f"{solution}: does not print ✓ {what}"
        if cell not in turns or not solutions:
            continue
        if not any(HINT.search(each.source) for each in rest[: solutions[0]]):
            yield f"{cell.id}: no <summary>Hint before its solution"
        for name in re.findall(r"^def (\w+)", cell.source, re.MULTILINE):
            if not any(re.search(rf"\.use\(\s*{name},", each.source) for each in rest):
                yield f"{cell.id}: no later cell runs with {name}: check.use({name}, …)"


OF_EVERY_NOTEBOOK: tuple[Rule, ...] = (
    it_is_a_notebook_with_the_books_kernel,
    it_was_run_from_top_to_bottom,
    its_stamp_is_its_own,
    it_begins_with_the_set_up,
    it_knows_no_path_of_a_machine,
    claims_are_made_where_they_stand,
)
OF_EVERY_PAGE: tuple[Rule, ...] = (
    ticks_are_claims,
    folds_say_what_is_in_them,
    pictures_have_words_and_captions,
    words_in_plots_are_dark,
)
OF_EVERY_CHAPTER: tuple[Rule, ...] = (numbers_run_without_a_gap, numbers_that_are_named_exist)
NOT_OF_CHAPTER_0: tuple[Rule, ...] = (turns_and_exercises_can_be_tried_and_are_solved,)
OF_ITS_OWN_KIND = ("# One evening", "# The exam")  # where the reader writes all that runs


def rules_for(notebook: NotebookNode) -> tuple[Rule, ...]:
    if notebook.cells[0].source.startswith(OF_ITS_OWN_KIND):
        return OF_EVERY_NOTEBOOK
    if (chapter := chapter_of(notebook)) is None:
        return OF_EVERY_NOTEBOOK + OF_EVERY_PAGE
    rules = OF_EVERY_NOTEBOOK + OF_EVERY_PAGE + OF_EVERY_CHAPTER
    return rules + (NOT_OF_CHAPTER_0 if chapter else ())
