"""The rules of a chapter; each says what is wrong with a notebook.

CONTRIBUTING.md has the rules in words; ``test_chapter_rules.py`` breaks each of them.
"""

import ast
import re
from collections.abc import Callable, Iterator

from nbformat import NotebookNode

from tests.book.tautologies import conditions_that_cannot_fail
from tools.chapters import FOLDED, TITLE, code_cells, drawings, words_for
from transformer_book import figures
from transformer_book.claims import claims_of
from transformer_book.experiments.imports import python_of_cell

OPEN_LINES, FOLDED_LINES = 12, 25
TITLE_LETTERS = 72
OPEN_TICKS = 20
WORDS, WORDS_OF_CHAPTER_0 = (2000, 5000), (400, 2000)
EXERCISES = (4, 6)
ENDS_WITH = ("The translator so far", "Summary", "Exercises", "Further reading")
# Folds, and what stands where the site puts a living figure or the translator.
NOT_COUNTED = re.compile(r"<details\b.*?</details>|<div class=\"book-.*?</div>", flags=re.DOTALL)
HINT = re.compile(r"<details>\s*<summary>[^<]*\bHint\b")
EXERCISE = re.compile(r"^\*\*Exercise (\d+\.\d+)\.\*\*", flags=re.M)
NUMBERED = re.compile(r"# \d+\. ")

Rule = Callable[[NotebookNode], Iterator[str]]


def chapter_of(notebook: NotebookNode) -> int:
    return int(notebook.cells[0].source.removeprefix("# ").partition(".")[0])


def tags(cell: NotebookNode) -> set[str]:
    return set(cell.metadata.get("tags", []))


def is_open(cell: NotebookNode) -> bool:
    return cell.cell_type == "code" and not tags(cell) & (FOLDED | {"remove-cell"})


def printed(cell: NotebookNode) -> str:
    return "".join(o.text for o in cell.outputs if o.output_type == "stream")


def prints(cell: NotebookNode, start: str) -> bool:
    """Whether a line begins with ``start``, as a whole word or number."""
    return bool(re.search(rf"^{re.escape(start)}(?!\.?\d)", printed(cell), flags=re.M))


def alt_of(cell: NotebookNode) -> str:
    return cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "")


def has_caption(notebook: NotebookNode, cell: NotebookNode) -> bool:
    following = notebook.cells[notebook.cells.index(cell) + 1 :][:1]
    return bool(following) and following[0].source.startswith("**Figure ")


def it_has_a_map(notebook: NotebookNode) -> Iterator[str]:
    maps = [cell for cell in code_cells(notebook) if cell.id == "map"]
    if not maps or not drawings(maps[0]):
        yield "no cell map draws the model"


def tags_are_known(notebook: NotebookNode) -> Iterator[str]:
    for cell in notebook.cells:
        known = FOLDED | {"nbval-ignore-output"} if cell.id != "set-up" else {"remove-cell"}
        if unknown := tags(cell) - known:
            yield f"{cell.id}: is tagged {', '.join(sorted(unknown))}"
        if tags(cell) >= FOLDED:
            yield f"{cell.id}: hide-cell hides the input, too"


def folds_say_what_is_in_them(notebook: NotebookNode) -> Iterator[str]:
    for cell in notebook.cells:
        if not tags(cell) & FOLDED:
            continue
        title = TITLE.match(cell.source)
        prompt = cell.metadata.get("mystnb", {}).get("code_prompt_show")
        if not title:
            yield f"{cell.id}: is folded without # @title in its first line"
        elif cell.metadata.get("cellView") != "form" or prompt != title[1].strip():
            yield f"{cell.id}: its fold does not say {title[1]!r}: run make chapters"
        elif len(title[1]) > TITLE_LETTERS:
            yield f"{cell.id}: its title has {len(title[1])} letters, {TITLE_LETTERS} at most"


def cells_are_short(notebook: NotebookNode) -> Iterator[str]:
    for cell in code_cells(notebook):
        lines = len(cell.source.splitlines())
        most = OPEN_LINES if is_open(cell) else FOLDED_LINES
        if lines > most:
            yield f"{cell.id}: has {lines} lines, {most} at most"


def open_cells_plot_and_import_nothing(notebook: NotebookNode) -> Iterator[str]:
    for cell in filter(is_open, notebook.cells):
        if "plt." in cell.source:
            yield f"{cell.id}: plots in an open cell"
        nodes = ast.walk(ast.parse(python_of_cell(cell.source)))
        if any(isinstance(node, ast.Import | ast.ImportFrom) for node in nodes):
            yield f"{cell.id}: imports in an open cell"


def it_begins_with_its_question(notebook: NotebookNode) -> Iterator[str]:
    """Right under the title; imports come after it."""
    kinds = [cell.cell_type for cell in notebook.cells[:2]]
    if kinds != ["markdown", "markdown"]:
        yield "no text follows its title: it opens with code"
    for cell in notebook.cells[:2]:
        for asked in re.findall(r"^\*\*The question\.\*\* .*$", cell.source, re.MULTILINE):
            if "?" not in asked:
                yield f"{cell.id}: its question asks nothing"


def imports_are_folded(notebook: NotebookNode) -> Iterator[str]:
    found = [cell for cell in code_cells(notebook) if cell.id == "imports"]
    if not found or is_open(found[0]):
        yield "no folded cell imports"
        return
    one = f"{found[0].source.splitlines()[0]}, continued"  # which the site folds into it
    for cell in code_cells(notebook):
        body = ast.parse(python_of_cell(cell.source)).body
        imports = body and all(isinstance(node, ast.Import | ast.ImportFrom) for node in body)
        if imports and cell != found[0] and not is_open(cell) and not cell.source.startswith(one):
            yield f"{cell.id}: imports in a fold of its own: its first line is to be {one!r}"


def drawings_have_words(notebook: NotebookNode) -> Iterator[str]:
    for cell in filter(drawings, notebook.cells):
        words = words_for(drawings(cell)[0]) or ""
        if len(drawings(cell)) > 1 or "class='drawing'" not in drawings(cell)[0]:
            yield f"{cell.id}: shows other than one drawing of transformer_book.drawings"
        if "hide-input" not in tags(cell):
            yield f"{cell.id}: draws without the tag hide-input"
        if len(words) <= 40:
            yield f"{cell.id}: its drawing says too little of itself: {words!r}"
        elif alt_of(cell) != words:
            yield f"{cell.id}: its text is not the drawing's: run make chapters"
        if cell.id != "map" and not has_caption(notebook, cell):
            yield f"{cell.id}: no **Figure …** in the next cell"


def plots_have_words(notebook: NotebookNode) -> Iterator[str]:
    for cell in code_cells(notebook):
        if any("image/png" in output.get("data", {}) for output in cell.outputs):
            if len(alt_of(cell)) <= 40:
                yield f"{cell.id}: its plot has no words for those who do not see it"
            if not has_caption(notebook, cell):
                yield f"{cell.id}: no **Figure …** in the next cell"


def words_in_plots_are_dark(notebook: NotebookNode) -> Iterator[str]:
    """A colour that is good for a line is too faint for words on white."""
    for cell in code_cells(notebook):
        for call in ast.walk(ast.parse(python_of_cell(cell.source))):
            if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
                continue
            if call.func.attr not in {"text", "annotate"}:
                continue
            for color in (each.value for each in call.keywords if each.arg == "color"):
                name = getattr(color, "attr", "")
                faint = isinstance(color, ast.Attribute) and getattr(figures, name) in figures.INKS
                if faint or "#" in str(getattr(color, "value", "")):
                    yield f"{cell.id}: writes in {ast.unparse(color)}, not in a figures.ink(…)"


def open_ticks_are_few(notebook: NotebookNode) -> Iterator[str]:
    cells = [cell for cell in code_cells(notebook) if "hide-cell" not in tags(cell)]
    n = sum(len(claims_of(cell.outputs)) for cell in cells)
    if n > OPEN_TICKS:
        yield f"{n} open ticks, {OPEN_TICKS} at most"


def ticks_are_claims(notebook: NotebookNode) -> Iterator[str]:
    """Only a check of what the reader writes prints a line with a tick."""
    for cell in code_cells(notebook):
        ticks = re.findall(r"^✓ (?!(?:Your turn|Exercise) \d+\.\d+\b).*$", printed(cell), re.M)
        if ticks:
            yield f"{cell.id}: prints {ticks[0]!r}, which no claim has made"


def claims_can_fail(notebook: NotebookNode) -> Iterator[str]:
    for cell in code_cells(notebook):
        for condition in conditions_that_cannot_fail(cell):
            yield f"{cell.id}: claims what always holds: {condition}"


def it_has_the_length_of_a_chapter(notebook: NotebookNode) -> Iterator[str]:
    least, most = WORDS if chapter_of(notebook) else WORDS_OF_CHAPTER_0
    text = (NOT_COUNTED.sub("", c.source) for c in notebook.cells if c.cell_type == "markdown")
    n = sum(len(each.split()) for each in text)
    if not least <= n <= most:
        yield f"{n} open words, not {least} to {most}"


def it_ends_as_every_chapter(notebook: NotebookNode) -> Iterator[str]:
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    headings = [re.sub(r"^\d+\.\d+ ", "", each) for each in re.findall(r"^## (.+)$", text, re.M)]
    if tuple(headings[-4:]) != ENDS_WITH:
        yield f"ends with {headings[-4:]}, not with {ENDS_WITH}"


def the_reader_has_a_turn(notebook: NotebookNode) -> Iterator[str]:
    chapter, cells = chapter_of(notebook), notebook.cells
    turns = [cell for cell in code_cells(notebook) if cell.id.startswith("your-turn-")]
    if not turns:
        yield "no cell your-turn-…"
    for number, turn in enumerate(turns, start=1):
        yield from starts_empty(turn, "○")
        rest = cells[cells.index(turn) + 1 :]
        ids = [cell.id for cell in rest]
        if f"solution-{turn.id}" not in ids:
            yield f"{turn.id}: no cell solution-{turn.id} follows"
            continue
        written = re.findall(r"^def (\w+)", turn.source, re.MULTILINE)
        for name in written:
            used = rf"\.use\(\s*{name},"
            if not any(re.search(used, cell.source) for cell in rest):
                yield f"{turn.id}: no later cell runs with {name}: check.use({name}, …)"
        position = ids.index(f"solution-{turn.id}")
        if not any(HINT.search(cell.source) for cell in rest[:position]):
            yield f"{turn.id}: no <summary>Hint before its solution"
        yield from is_solved(rest[position], f"✓ Your turn {chapter}.{number}")


def every_exercise_can_be_tried(notebook: NotebookNode) -> Iterator[str]:
    chapter = chapter_of(notebook)
    found: list[str] = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            found += EXERCISE.findall(cell.source)
        elif re.fullmatch(r"(exercise|solution)-\d+-\d+", cell.id):
            found.append(cell.id)
    n = sum(name.startswith("exercise-") for name in found)
    numbers = [f"{chapter}.{i + 1}" for i in range(n)]
    names = [(number, number.replace(".", "-")) for number in numbers]
    wanted = [(number, f"exercise-{name}", f"solution-{name}") for number, name in names]
    if (
        found != [each for three in wanted for each in three]
        or not EXERCISES[0] <= n <= EXERCISES[1]
    ):
        yield f"exercises, starters and solutions are {found}"
        return
    cells = {cell.id: cell for cell in notebook.cells}
    for number, name in names:
        yield from starts_empty(cells[f"exercise-{name}"], f"○ Exercise {number}")
        solution = cells[f"solution-{name}"]
        yield from is_solved(solution, f"✓ Exercise {number}")
        if solution.source.splitlines()[0] != f"# @title Solution {number}":
            yield f"{solution.id}: does not begin with # @title Solution {number}"


def starts_empty(cell: NotebookNode, start: str) -> Iterator[str]:
    """What is wrong with a cell that the reader is to fill in."""
    if not is_open(cell):
        yield f"{cell.id}: is folded"
    if not printed(cell).startswith(start):
        yield f"{cell.id}: does not print {start} … first"


def is_solved(cell: NotebookNode, line: str) -> Iterator[str]:
    """What is wrong with a solution."""
    if "hide-cell" not in tags(cell):
        yield f"{cell.id}: is not folded"
    if not prints(cell, line):
        yield f"{cell.id}: does not print {line}"


OF_EVERY_PAGE: tuple[Rule, ...] = (
    tags_are_known,
    folds_say_what_is_in_them,
    cells_are_short,
    open_cells_plot_and_import_nothing,
    drawings_have_words,
    plots_have_words,
    words_in_plots_are_dark,
    open_ticks_are_few,
    ticks_are_claims,
    claims_can_fail,
)
OF_EVERY_CHAPTER: tuple[Rule, ...] = (
    it_begins_with_its_question,
    it_has_a_map,
    it_has_the_length_of_a_chapter,
)
NOT_OF_CHAPTER_0: tuple[Rule, ...] = (
    imports_are_folded,
    it_ends_as_every_chapter,
    the_reader_has_a_turn,
    every_exercise_can_be_tried,
)


def rules_for(notebook: NotebookNode) -> tuple[Rule, ...]:
    """Of a chapter, or of a notebook without a number that is made as chapters are."""
    if not NUMBERED.match(notebook.cells[0].source):
        return (*OF_EVERY_PAGE, imports_are_folded)
    return OF_EVERY_CHAPTER + OF_EVERY_PAGE + (NOT_OF_CHAPTER_0 if chapter_of(notebook) else ())
