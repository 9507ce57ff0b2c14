"""Which files of a package some code computes with, found without running it.

An import inside a function counts, one under ``if TYPE_CHECKING:`` does not. An ``__init__`` counts
for the names that are taken from it alone: what else it imports does run, but cannot change what
these names compute.
"""

import ast
from collections.abc import Collection, Iterable
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
    """Collects the imports that run."""

    def __init__(self, package: str):
        self.package = package  # where relative imports start from
        self.imports: list[Import] = []

    def visit_If(self, node: ast.If) -> None:
        if ast.unparse(node.test) not in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            return self.generic_visit(node)
        for statement in node.orelse:
            self.visit(statement)
        return None

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self.imports += [Import(module) for module in _with_parents(alias.name)]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = resolve_name("." * node.level + (node.module or ""), self.package)
        self.imports += [Import(module, a.name, a.asname or a.name) for a in node.names]


@cache
def _imports(source: str, package: str = "") -> list[Import]:
    finder = _Finder(package)
    finder.visit(ast.parse(source))
    return finder.imports


@cache
def bare(source: str) -> str:
    """Python without comments, docstrings and layout: what it computes."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        match node:
            case ast.Module(body=body) | ast.ClassDef(body=body) | ast.FunctionDef(body=body):
                if body and isinstance(body[0], ast.Expr) and _is_text(body[0].value):
                    node.body = body[1:] or [ast.Pass()]
    return ast.unparse(tree)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


@cache
def python_of_cell(source: str) -> str:
    """A notebook's cell without what only IPython understands; the body of a %%magic stays."""
    if source.startswith("%%"):
        source = source.partition("\n")[2]
    return TransformerManager().transform_cell(source)


def imports_of_cell(source: str) -> list[Import]:
    """None where the cell is no Python: it is the kernel that says so, when the cell runs."""
    try:
        return _imports(python_of_cell(source))
    except SyntaxError:
        return []


def files_behind(imports: Iterable[Import], root: Path, packages: Collection[str]) -> list[Path]:
    """The modules of these packages that ``imports`` reach, directly or through others, sorted."""
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
                if path.name != "__init__.py":
                    ahead += _imports_of_module(path, root)
        ahead += _handed_on(each, root)
    return sorted(modules)


def _with_parents(module: str) -> list[str]:
    parts = module.split(".")
    return [".".join(parts[: n + 1]) for n in range(len(parts))]


def _file_of(module: str, root: Path) -> Path | None:
    path = root.joinpath(*module.split("."))
    found = (path / "__init__.py", path.with_suffix(".py"))
    return next((file for file in found if file.is_file()), None)


def _imports_of_module(path: Path, root: Path) -> list[Import]:
    package = ".".join(path.relative_to(root).parts[:-1])
    return _imports(path.read_text(encoding="utf-8"), package)


def _handed_on(each: Import, root: Path) -> list[Import]:
    """Where an ``__init__`` takes this name from; all that it imports, if the name is its own."""
    path = _file_of(each.module, root)
    if path is None or path.name != "__init__.py":
        return []
    imports = _imports_of_module(path, root)
    home = [other for other in imports if other.bound == each.name]
    is_module = _file_of(f"{each.module}.{each.name}", root)
    return home if home or is_module else imports
