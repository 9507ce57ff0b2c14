"""A chapter's own code, outside of its page: experiments train the models that the reader sees."""

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from types import SimpleNamespace

from transformer_book.notebooks import cells_of, chapter_path, python_of_cell, run


@dataclass(frozen=True)
class Cells:
    """The code cells of the notebook ``path`` whose ids match one of the patterns, in its order.

    Of those that match ``definitions``, only functions and classes: what else the cell does, such
    as to train them for the page, is left out.
    """

    path: Path
    patterns: tuple[str, ...]
    definitions: tuple[str, ...] = ()

    def sources(self) -> list[tuple[str, str]]:
        """The id and the Python of each."""
        code = {name: cell for name, cell in cells_of(self.path).items() if cell.is_code}
        sources = []
        for name, cell in code.items():
            if _matches(name, self.patterns):
                sources.append((name, python_of_cell(cell.source)))
            elif _matches(name, self.definitions):
                sources.append((name, _definitions(python_of_cell(cell.source))))
        return sources

    def names(self) -> SimpleNamespace:
        """What the cells leave behind; they run once in a process, and what they print is lost."""
        return _names(self)


def chapter(number: int, *patterns: str, definitions: tuple[str, ...] = ()) -> Cells:
    """Cells of a chapter of the book. Raises ValueError where there is none of this number."""
    return Cells(chapter_path(number), patterns, definitions)


@cache
def _names(cells: Cells) -> SimpleNamespace:
    pieces = ((f"{cells.path.name}, {name}", source) for name, source in cells.sources())
    return SimpleNamespace(**run(pieces, {"__name__": cells.path.stem}))


def _matches(cell_id: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(cell_id, pattern) for pattern in patterns)


def _definitions(source: str) -> str:
    kept = [n for n in ast.parse(source).body if isinstance(n, ast.FunctionDef | ast.ClassDef)]
    return "\n".join(ast.unparse(node) for node in kept)
