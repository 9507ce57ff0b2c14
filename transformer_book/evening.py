"""What the reader of "One evening" has typed up to some cell of the page, as one file.

Of each name that the page writes more than once, the file holds the last.
"""

import ast
import re
import symtable
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from transformer_book.experiments.imports import python_of_cell
from transformer_book.notebooks import CHAPTERS, cells_of

PAGE = CHAPTERS / "one_evening.ipynb"
NEW = re.compile(r"  # new\b.*")  # which marks what has changed since the last time


@dataclass
class Statement:
    """A statement of a cell: the names that it gives, and those of the file that it needs."""

    text: str
    names: tuple[str, ...]  # what it defines or imports; a statement without is always wanted
    needs: set[str]
    is_long: bool
    blank: int  # lines above it


def file_of(until: str, ends: str, *, page: Path = PAGE) -> str:
    """The code that ``ends`` needs, as the cells up to the cell ``until`` leave it; then ``ends``.

    Raises ValueError if there is no such cell.
    """
    known = {name: each for each in _last_of_each(page, until) for name in each.names}
    needed, found = set(), {name for name, assigned in _symbols(ends) if not assigned}
    while found:
        needed |= found
        found = {name for n in found & set(known) for name in known[n].needs} - needed
    text, before = "", None
    for each in _last_of_each(page, until):
        if each.names and not needed & set(each.names):
            continue
        if before is not None:
            text += "\n" * (2 if each.is_long or before.is_long else each.blank)
        text, before = text + each.text + "\n", each
    last = "".join(f"    {line}\n" for line in ends.splitlines())
    return f'{text}\n\nif __name__ == "__main__":\n{last}'


def _last_of_each(page: Path, until: str) -> list[Statement]:
    """Each name's last definition, where its first one was."""
    found: dict[tuple[str, ...], Statement] = {}
    for each in _statements(page, until):
        key = each.names or (each.text,)
        if key in found:
            added = each.text.startswith(f"{each.names[0]} +=")
            text = f"{found[key].text}\n{each.text}" if added else each.text
            each = replace(each, text=text, blank=found[key].blank)
        found[key] = each
    return list(found.values())


def _statements(page: Path, until: str) -> Iterator[Statement]:
    """Imports, assignments and definitions; what only shows something is left out."""
    for name, cell in cells_of(page).items():
        if not cell.is_code or name == "set-up" or cell.source.startswith("# @title Drawing"):
            continue
        source, end = python_of_cell(cell.source), -1
        for node in ast.parse(source).body:
            is_long = isinstance(node, ast.FunctionDef | ast.ClassDef)
            first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
            text = "\n".join(source.splitlines()[first - 1 : node.end_lineno])
            text, blank, end = NEW.sub("", text), min(first - 1 - end, 1), node.end_lineno or first
            symbols = _symbols(text)
            names = tuple(name for name, assigned in symbols if assigned and name != "file")
            if isinstance(node, ast.Import | ast.ImportFrom):
                yield Statement(text, names, set(), False, blank)
            elif names and not isinstance(node, ast.For):
                yield Statement(text, names, {name for name, _ in symbols}, is_long, blank)
        if name == until:
            return
    raise ValueError(f"until must be the id of a code cell in {page.name}, got {until!r}")


def _symbols(source: str) -> list[tuple[str, bool]]:
    """The file's names that a statement speaks of, and whether it gives them a value."""
    top = symtable.symtable(source, "<cell>", "exec")
    symbols = top.get_symbols()
    found = {s.get_name(): s.is_assigned() or s.is_imported() for s in symbols}
    tables = list(top.get_children())
    while tables:
        table = tables.pop()
        for symbol in table.get_symbols():
            if symbol.is_global():
                found.setdefault(symbol.get_name(), False)
        tables += table.get_children()
    return list(found.items())
