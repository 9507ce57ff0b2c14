"""Run the chapters as a reader leaves them: ``make turns FILL=right``, or ``FILL=wrong``.

A chapter is committed with all that its reader writes still empty. Here each turn and each exercise
is filled in, with its own solution under the reader's name or with a mistake that its check knows,
and the chapter runs in a new kernel. Nothing is stored.
"""

import argparse
import ast
import asyncio
import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode

from tools.chapters import CHAPTERS, ENVIRONMENT, code_cells, execute
from tools.needs import lacking
from tools.rehearsal import printed
from transformer_book.claims import claims_of

SIGNS = {"right": "✓", "wrong": "✗"}
TURN = re.compile(r"your-turn-|exercise-\d+-\d+$")
USED = "→ From here on this page runs with "
Definition = ast.FunctionDef | ast.ClassDef


def turns(notebook: NotebookNode) -> dict[str, NotebookNode]:
    """The code cells that a reader fills in, by their names."""
    return {cell.id: cell for cell in code_cells(notebook) if TURN.match(cell.id)}


def fill(notebook: NotebookNode, how: str) -> None:
    """Write into each turn and exercise what is ``how``: "right" or "wrong".

    Raises ValueError for a cell that checks no name, and for one without a solution.
    """
    cells = {cell.id: cell for cell in code_cells(notebook)}
    for name, cell in turns(notebook).items():
        solution = cells.get(f"solution-{name.removeprefix('exercise-')}")
        if solution is None:
            raise ValueError(f"{name} must have a solution, got no cell of its name")
        cell.source = filled(cell.source, solution.source, how, name)


def filled(source: str, solution: str, how: str, name: str = "cell") -> str:
    """The cell ``source`` with what each of its checks is given, before the check is called."""
    calls = dict(_checked(source))
    if not calls:
        raise ValueError(f"{name} must call a check with what the reader writes, got none")
    solved = {check: given for given, check in _checked(solution)}
    lines = source.splitlines()
    for written, check in calls.items():
        definition = _definitions(source).get(written)
        if definition is None:  # an answer: a number or a word
            answer = f"{check}.right" if how == "right" else f"next(iter({check}.mistakes), -7)"
            text = f"{written} = {answer}"
        elif how == "wrong":
            mistake = f"next(iter({check}.mistakes.values()), lambda *given: given[0])"
            text = f"def {written}(*given):\n    return {mistake}(*given)"
        elif solved.get(check) in _definitions(solution):
            text = _renamed(solution, solved[check], written)
        else:
            raise ValueError(f"{name} must have a solution that calls {check} with a function")
        (at,) = (i for i, line in enumerate(lines) if line.startswith(f"{check}({written})"))
        lines[at:at] = [*text.splitlines(), ""]
    return "\n".join(lines)


def _checked(source: str) -> Iterator[tuple[str, str]]:
    """What is given to checks at the end of a cell, a name, and the name of the check."""
    for statement in ast.parse(source).body:
        match statement:
            case ast.Expr(ast.Call(ast.Name(check), [ast.Name(given)])) if "check" in check:
                yield given, check


def _definitions(source: str) -> dict[str, Definition]:
    found = (node for node in ast.parse(source).body if isinstance(node, Definition))
    return {node.name: node for node in found}


def _renamed(solution: str, old: str, new: str) -> str:
    """The definition of ``old`` under the name ``new``, behind the helpers that its cell has."""
    definitions = _definitions(solution)
    names = {node.id for node in ast.walk(definitions[old]) if isinstance(node, ast.Name)}
    helpers = [node for name, node in definitions.items() if name in names - {old}]
    texts = [ast.get_source_segment(solution, node) or "" for node in helpers]
    own = ast.get_source_segment(solution, definitions[old]) or ""
    return "\n\n\n".join([*texts, re.sub(rf"\b{old}\b", new, own)])


def complaints(committed: NotebookNode, ran: NotebookNode, how: str) -> list[str]:
    """What a chapter that ran shows, and should not where all that is written is ``how``."""
    wrong = []
    for name, cell in turns(ran).items():
        signs = {line[0] for line in printed(cell) if line[:1] in ("○", *SIGNS.values())}
        if signs != {SIGNS[how]}:
            wrong.append(f"cell {name} should print {SIGNS[how]}, but it prints {printed(cell)}")
    for was, now in zip(code_cells(committed), code_cells(ran), strict=True):
        used = [line for line in printed(now) if line.startswith(USED)]
        wrong += [f"cell {now.id} says: {line}" for line in used if not _fits(line, how)]
        if repr(claims_of(was.outputs)) != repr(claims_of(now.outputs)):
            wrong.append(f"cell {now.id} does not claim what the committed one does")
    return wrong


def _fits(line: str, how: str) -> bool:
    """Whether a line that says with whose function the page goes on is as it should be."""
    if how == "right":
        return line.startswith(f"{USED}your ")
    return line.endswith(", because yours is not right yet.")


def run(chapter: Path, how: str) -> list[str]:
    """All that goes wrong in a chapter whose turns and exercises are all ``how``."""
    committed, notebook = (nbformat.read(chapter, as_version=4) for _ in range(2))
    fill(notebook, how)
    for cell in code_cells(notebook):
        cell.outputs, cell.execution_count = [], None
    try:
        asyncio.run(execute(notebook))
    # a RuntimeError: the kernel did not start, or died
    except (CellExecutionError, RuntimeError) as error:
        began = [cell.id for cell in code_cells(notebook) if cell.execution_count or cell.outputs]
        why = str(error).strip().splitlines()[-1]
        return [f"cell {began[-1] if began else 'set-up'} stopped: {why}"]
    return complaints(committed, notebook, how)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make turns", description=__doc__.splitlines()[0])
    parser.add_argument("how", choices=SIGNS, help="what the reader has written")
    parser.add_argument("chapters", nargs="*", help="such as chapters/03_….ipynb; all if none")
    options = parser.parse_args(arguments)
    known = {path.name: path for path in CHAPTERS}
    names = [Path(chapter).name for chapter in options.chapters] or list(known)
    if unknown := set(names) - set(known):
        parser.error(f"no chapter is named {', '.join(sorted(unknown))}")
    os.environ |= ENVIRONMENT
    failed = False
    for chapter in (known[name] for name in names):
        if reason := lacking(chapter):
            print(f"{chapter.name}: skipped\n    {reason}", flush=True)
            continue
        start = time.perf_counter()
        wrong = run(chapter, options.how)
        line = f"{chapter.name}: {'failed' if wrong else 'ok'}, {time.perf_counter() - start:.0f} s"
        print(line, *wrong, sep="\n    ", flush=True)
        failed |= bool(wrong)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
