"""Three houses: the library, what chapters and experiments use, the site; imports go one way."""

import ast
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from tools.chapters import ROOT

HOUSES = ("transformer", "transformer_book", "website")  # each may know those before it
TOOLS = "tools"  # which run the chapters, and which none of the houses knows
LAZY = ("transformer", "transformer.training", "transformer_book.translator")


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
    assert {name.lower() for name in all_imported_by("transformer_book") - known} == more


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


def names_for_types(package):
    """Where a reader who does not run the code sees each name come from."""
    init = ROOT.joinpath(*package.split("."), "__init__.py")
    (block,) = (
        node for node in ast.parse(init.read_text(encoding="utf-8")).body
        if isinstance(node, ast.If)
    )  # fmt: skip
    return {a.asname: (n.module, a.name) for n in block.body for a in n.names}


@pytest.mark.parametrize("package", LAZY)
def test_a_lazy_door_hands_on_what_it_says_to_type_checkers(package):
    door = import_module(package)
    shown = names_for_types(package)
    assert sorted(shown) == door.__all__
    # Python puts a module that is imported under its name into its package, in the place of ours.
    inside = Path(door.__file__).parent.iterdir()
    assert set(shown).isdisjoint(path.stem for path in inside if path.suffix in ("", ".py"))
    for name, (module, original) in shown.items():
        assert getattr(door, name) is getattr(import_module(module), original)
    assert set(door.__all__) <= set(dir(door))
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'missing'"):
        _ = door.missing


def test_a_lazy_door_loads_one_room():
    code = "import sys, transformer.training as t; t.paper_schedule; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    rooms = {name for name in done.stdout.split() if name.startswith("transformer.training.")}
    assert rooms == {"transformer.training.objective"}
