"""Run the chapters as a reader leaves them: ``make turns FILL=right``, or ``FILL=wrong``.

A chapter is committed with all that its reader writes still empty. Here each turn and each exercise
is filled in, with its own solution under the reader's name or with a mistake that its check knows,
and the chapter runs in a new kernel. Nothing is stored.
"""

import argparse
import ast
import os
import re
import sys
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from tools.chapters import CHAPTERS, ENVIRONMENT
from tools.running import check_each, chosen, code_cells, execute_or_say, printed
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
    solved = {check: given for given, check in map(_checked, ast.parse(solution).body)}
    own, body = {node.name for node in _definitions(source)}, list[ast.stmt]()
    for statement in ast.parse(source).body:
        written, check = _checked(statement)
        if check and written not in own:  # an answer: a number or a word
            answer = f"{check}.right" if how == "right" else f"next(iter({check}.mistakes), -7)"
        elif check and how == "wrong":
            answer = f"next(iter({check}.mistakes.values()), lambda *given: given[0])"
        elif check:
            body += _definitions(solution)
            answer = solved.get(check, "")
            if answer not in {node.name for node in _definitions(solution)}:
                raise ValueError(f"{name} must have a solution that calls {check} with a function")
        if check:
            body += ast.parse(f"{written} = {answer}").body
        body.append(statement)
    if not any(check for _, check in map(_checked, body)):
        raise ValueError(f"{name} must call a check with what the reader writes, got none")
    return ast.unparse(ast.Module(body, []))


def _checked(statement: ast.stmt) -> tuple[str, str]:
    """What a statement gives to a check, a name, and the name of the check; else two times ""."""
    match statement:
        case ast.Expr(ast.Call(ast.Name(check), [ast.Name(given)])) if "check" in check:
            return given, check
    return "", ""


def _definitions(source: str) -> list[Definition]:
    return [node for node in ast.parse(source).body if isinstance(node, Definition)]


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
    """What goes wrong in a chapter whose turns and exercises are all ``how``."""
    committed, notebook = (nbformat.read(chapter, as_version=4) for _ in range(2))
    fill(notebook, how)
    if stopped := execute_or_say(notebook, chapter.parent):
        return stopped
    return complaints(committed, notebook, how)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make turns", description=__doc__.splitlines()[0])
    parser.add_argument("how", choices=SIGNS, help="what the reader has written")
    parser.add_argument("chapters", nargs="*", help="such as chapters/03_….ipynb; all if none")
    options = parser.parse_args(arguments)
    chapters = chosen(parser, options.chapters, CHAPTERS)
    os.environ |= ENVIRONMENT
    return check_each(chapters, lambda chapter: run(chapter, options.how))


if __name__ == "__main__":
    sys.exit(main())
