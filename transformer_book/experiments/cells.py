"""A chapter's own code, outside of its page: experiments train the models that the reader sees."""

import ast
import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from types import SimpleNamespace

from transformer_book.experiments.imports import (
    Import,
    bare,
    files_behind,
    imports_of_cell,
    python_of_cell,
)
from transformer_book.experiments.provenance import ROOT
from transformer_book.notebooks import cells_of, chapter_path, run

PACKAGES = ("transformer", "transformer_book")
MACHINE = Path(__file__).parent  # its own modules run and store, but compute no number
RUNNER = MACHINE.parent / "notebooks.py"  # nor does this


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

    def code(self, *modules: str) -> str:
        """A hash of what these cells and ``modules`` compute with.

        That is the cells' Python and that of the packages' files which they reach through names
        that they use. Comments, docstrings and layout do not count, nor do data; so the hash is
        another where a number may be, and not where a sentence is.
        """
        sources = _with_used_imports([source for _, source in self.sources()])
        imports = [one for source in sources for one in imports_of_cell(source)]
        return code_of(sources, [*imports, *(Import(module) for module in modules)])


def chapter(number: int, *patterns: str, definitions: tuple[str, ...] = ()) -> Cells:
    """Cells of a chapter of the book. Raises ValueError where there is none of this number."""
    return Cells(chapter_path(number), patterns, definitions)


def code_of(sources: Iterable[str], imports: Iterable[Import]) -> str:
    """The hash of Python sources and of the files behind ``imports``; see :meth:`Cells.code`."""
    paths = files_behind(imports, ROOT, PACKAGES)
    files = [p for p in paths if p.parent != MACHINE and p != RUNNER]
    texts = [*sources, *(path.read_text(encoding="utf-8") for path in files)]
    meant = hashlib.sha256(json.dumps([bare(text) for text in texts]).encode())
    return meant.hexdigest()[:16]


@cache
def _names(cells: Cells) -> SimpleNamespace:
    pieces = ((f"{cells.path.name}, {name}", source) for name, source in cells.sources())
    return SimpleNamespace(**run(pieces, {"__name__": cells.path.stem}))


def _with_used_imports(sources: Iterable[str]) -> list[str]:
    """Without the imports whose names none of the sources uses, such as those for plots."""
    trees = [ast.parse(source) for source in sources]
    names = {node.id for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Name)}
    for tree in trees:
        imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
        for node in imports:
            node.names = [alias for alias in node.names if _bound(alias) in names]
        empty = [node for node in imports if not node.names]
        tree.body = [node for node in tree.body if node not in empty]
    return [ast.unparse(tree) for tree in trees]


def _bound(alias: ast.alias) -> str:
    return alias.asname or alias.name.partition(".")[0]


def _matches(cell_id: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(cell_id, pattern) for pattern in patterns)


def _definitions(source: str) -> str:
    kept = [n for n in ast.parse(source).body if isinstance(n, ast.FunctionDef | ast.ClassDef)]
    return "\n".join(ast.unparse(node) for node in kept)
