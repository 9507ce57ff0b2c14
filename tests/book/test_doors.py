"""Three houses: the library, what chapters and experiments use, the site; imports go one way."""

import ast
import re
import subprocess
import sys
import tomllib

import jaxtyping
import pytest
import torch

from tools.chapters import ROOT
from transformer.masks import padding_mask

HOUSES = ("transformer", "transformer_book", "website")  # each may know those before it
TOOLS = "tools"  # which run the chapters, and which none of the houses knows


def imported_by(path):
    """The first names of all modules that a file imports, in functions and for types, too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Import(names=names):
                yield from (alias.name.partition(".")[0] for alias in names)
            case ast.ImportFrom(module=str(module), level=0):
                yield module.partition(".")[0]


def all_imported_by(house):
    return {name for path in (ROOT / house).rglob("*.py") for name in imported_by(path)}


@pytest.mark.parametrize("house", HOUSES)
def test_a_house_knows_only_those_before_it(house):
    later = {*HOUSES[HOUSES.index(house) + 1 :], TOOLS, "tests", "benchmarks"}
    assert all_imported_by(house) & later == set()
    assert house in all_imported_by(house)  # the search has found imports


def test_the_library_takes_only_what_pip_installs_with_it():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = {wanted.split(">=")[0].replace("-", "_") for wanted in project["dependencies"]}
    others = all_imported_by("transformer") - {"transformer"} - set(sys.stdlib_module_names)
    assert others == names
    more = {
        w.split(">=")[0].replace("-", "_") for w in project["optional-dependencies"]["chapters"]
    }
    known = {*names, "transformer", "transformer_book", *sys.stdlib_module_names}
    by_hand = {"transformers"}  # chapter_14/smollm2.py, a program that says how it is installed
    others = {name.lower() for name in all_imported_by("transformer_book") - known}
    assert others == more | by_hand


BLOCKED = """
import sys
from importlib import import_module
from pkgutil import walk_packages
for name in ("IPython", "matplotlib", "matplotlib_inline", "transformer_book", "website"):
    sys.modules[name] = None  # an import of it fails
import transformer
for module in walk_packages(transformer.__path__, "transformer."):
    if not module.name.endswith("__main__"):
        import_module(module.name)
print(len(sys.modules))
"""


def test_the_library_is_imported_without_what_chapters_need():
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_reference_lists_every_module_that_a_reader_may_import_once():
    pages = [path.read_text(encoding="utf-8") for path in (ROOT / "appendix").glob("api*.md")]
    listed = re.findall(r"^\.\. automodule:: (\S+)$", "\n".join(pages), flags=re.M)
    assert len(set(listed)) == len(listed)
    paths = (path.relative_to(ROOT) for path in (ROOT / "transformer").rglob("*.py"))
    names = [path.with_suffix("").parts for path in paths]
    rooms = {".".join(name) for name in names if not name[-1].startswith("_")}
    house = ("checks", "files", "tensors", "memory", "commands")
    house = tuple(f"transformer.{name}" for name in house)
    words = ("transformer.data.grammar.function_words", "transformer.data.grammar.lexicon")
    assert {name for name in rooms if not name.startswith((*house, *words))} == {
        name for name in listed if not name.startswith("transformer_book")
    }


def test_shapes_are_checked_while_the_tests_run():
    with pytest.raises(jaxtyping.TypeCheckError):
        padding_mask(torch.zeros(3, dtype=torch.int64))
