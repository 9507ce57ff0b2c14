"""Which files of a package some code depends on, found without running it.

The rules are Python's: an import of ``a.b.c`` also runs the ``__init__`` of ``a`` and of ``a.b``,
and an import inside a function counts. What stands under ``if TYPE_CHECKING:`` does not run, but an
``__init__`` that fetches names at first use, as :mod:`transformer` does, says there where they come
from; so ``from a import name`` follows that one name.
"""

import ast
from collections.abc import Collection, Iterable, Iterator
from functools import cache
from importlib.util import resolve_name
from pathlib import Path
from typing import NamedTuple

from IPython.core.inputtransformer2 import TransformerManager


class Import(NamedTuple):
    module: str
    name: str = "*"  # ``import module`` gives access to every name, as * does
    bound: str = ""  # what ``from module import name as bound`` makes of it


class _Finder(ast.NodeVisitor):
    """Collects imports: those that run, and those under ``if TYPE_CHECKING:``."""

    def __init__(self, package: str):
        self.package = package  # where relative imports start from
        self.run: list[Import] = []
        self.for_types: list[Import] = []

    def visit_If(self, node: ast.If) -> None:
        if ast.unparse(node.test) not in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            return self.generic_visit(node)
        before = len(self.run)
        for statement in node.body:
            self.visit(statement)
        self.for_types += self.run[before:]
        del self.run[before:]
        for statement in node.orelse:
            self.visit(statement)
        return None

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self.run += [Import(module) for module in _with_parents(alias.name)]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = resolve_name("." * node.level + (node.module or ""), self.package)
        self.run += [Import(module, alias.name, alias.asname or alias.name) for alias in node.names]


@cache
def _find(source: str, package: str = "") -> _Finder:
    finder = _Finder(package)
    finder.visit(ast.parse(source))
    return finder


@cache
def python_of_cell(source: str) -> str:
    """A notebook's cell without what only IPython understands; the body of a %%magic stays."""
    if source.startswith("%%"):
        source = source.partition("\n")[2]
    return TransformerManager().transform_cell(source)


def imports_of_cell(source: str) -> list[Import]:
    """None where the cell is no Python: it is the kernel that says so, when the cell runs."""
    try:
        return _find(python_of_cell(source)).run
    except SyntaxError:
        return []


def files_behind(
    imports: Iterable[Import], root: Path, packages: Collection[str], *, as_run: bool = True
) -> list[Path]:
    """The files of these packages that ``imports`` reach, directly or through others, sorted.

    Not ``as_run``, an ``__init__`` counts for the names that are taken from it alone: what else it
    imports does run, but cannot change what these names compute.
    """
    modules: set[Path] = set()
    ahead, done = list(imports), set()
    while ahead:
        each = ahead.pop()
        if each in done or each.module.partition(".")[0] not in packages:
            continue
        done.add(each)
        for name in _with_parents(f"{each.module}.{each.name}"):
            if (path := _file_of(name, root)) and path not in modules:
                modules.add(path)
                if as_run or path.name != "__init__.py":
                    ahead += _imports_of_module(path, root).run
        ahead += _handed_on(each, root, as_run=as_run)
    others = {file for module in modules for file in _beside(module.parent)}
    return sorted(modules | others)


def _with_parents(module: str) -> list[str]:
    parts = module.split(".")
    return [".".join(parts[: n + 1]) for n in range(len(parts))]


def _file_of(module: str, root: Path) -> Path | None:
    path = root.joinpath(*module.split("."))
    found = (path / "__init__.py", path.with_suffix(".py"))
    return next((file for file in found if file.is_file()), None)


def _imports_of_module(path: Path, root: Path) -> _Finder:
    package = ".".join(path.relative_to(root).parts[:-1])
    return _find(path.read_text(encoding="utf-8"), package)


def _handed_on(each: Import, root: Path, *, as_run: bool) -> list[Import]:
    """Where an ``__init__`` takes this name from: at first use or, not ``as_run``, at all."""
    path = _file_of(each.module, root)
    if path is None or path.name != "__init__.py":
        return []
    finder = _imports_of_module(path, root)
    others = finder.for_types if as_run else [*finder.for_types, *finder.run]
    return [other for other in others if each.name in ("*", other.bound)]


def _beside(folder: Path) -> Iterator[Path]:
    """What is no module in a folder, and in those below it that hold none: scripts, styles, data.

    An editor's hidden files and the caches of Python are left out.
    """
    for path in folder.iterdir():
        if path.name.startswith((".", "__pycache__")):
            continue
        if path.is_dir() and not any(path.glob("*.py")):
            yield from _beside(path)
        elif path.is_file() and path.suffix != ".py":
            yield path
