"""Which files a chapter depends on: in a package made up to try the rules, and in the real one."""

import json
import subprocess
import sys
from functools import cache

import nbformat
import pytest

from tools.chapters import CHAPTERS, PACKAGES, ROOT, code_cells
from transformer_book.experiments.imports import files_behind, imports_of_cell

PACKAGE = {
    "__init__.py": """
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from pack.model import Model as Model
    from pack.loop import fit as train
""",
    "model.py": "import torch\nfrom pack.layers import Layer",
    "layers.py": "",
    "loop.py": "from pack import model\nfrom .late import f",
    "late.py": "def f():\n    from pack.layers import Layer",
    "typed.py": """
import typing
if typing.TYPE_CHECKING:
    import pack.loop
else:
    from pack.layers import Layer
""",
    "shelf/__init__.py": "from .one import One, Two",
    "shelf/one.py": "",
    "shelf/two.py": "",
    "shelf/style.css": "",
    "shelf/words/few.txt": "",
    "shelf/.hidden": "",
    "shelf/__pycache__/one.pyc": "",
    "shelf/deep/__init__.py": "",
    "shelf/deep/script.js": "",
}
SHELF = {"shelf/__init__.py", "shelf/one.py", "shelf/style.css", "shelf/words/few.txt"}
MODEL = {"model.py", "layers.py"}
LOOP = {"loop.py", "late.py"} | MODEL


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("root")
    for name, text in PACKAGE.items():
        (root / "pack" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "pack" / name).write_text(text, encoding="utf-8")
    (root / "packing.py").write_text("", encoding="utf-8")
    return root


@pytest.mark.parametrize(
    ("code", "reached"),
    [
        pytest.param("from pack.layers import Layer", {"layers.py"}, id="a module"),
        pytest.param("from pack.model import Model", MODEL, id="and through it another"),
        pytest.param("from pack import layers", {"layers.py"}, id="a module as a name"),
        pytest.param("from pack import Model", MODEL, id="a name fetched at first use"),
        pytest.param("from pack import train as fit", LOOP, id="or one under another name"),
        pytest.param("from pack import fit", set(), id="but not what it is called at home"),
        pytest.param("import pack", LOOP, id="the package, and so every name"),
        pytest.param("from pack import *", LOOP, id="every name"),
        pytest.param("import pack.layers", LOOP, id="a module, through which every name is seen"),
        pytest.param("from pack.shelf import One", SHELF, id="what an __init__ imports"),
        pytest.param("import pack.shelf.two as two", SHELF | LOOP | {"shelf/two.py"}, id="parents"),
        pytest.param("from pack.shelf.two import x", SHELF | {"shelf/two.py"}, id="run first"),
        pytest.param("from pack.late import f", {"late.py", "layers.py"}, id="within a function"),
        pytest.param("def f():\n    from pack import late", {"late.py", "layers.py"}, id="twice"),
        pytest.param("from pack.typed import *", {"typed.py", "layers.py"}, id="what runs"),
        pytest.param(
            "from pack.shelf.deep import x",
            SHELF | {"shelf/deep/__init__.py", "shelf/deep/script.js"},
            id="files that are no modules",
        ),
        pytest.param("if x:\n    %pip x\nfrom pack import layers", {"layers.py"}, id="a magic"),
        pytest.param("%%time\nfrom pack import layers", {"layers.py"}, id="a cell's magic"),
        pytest.param("names = !ls\nfrom pack import layers", {"layers.py"}, id="a shell's line"),
        pytest.param("x = (7\n    % 2)\nfrom pack import layers", {"layers.py"}, id="remainder"),
        pytest.param("text = 'import pack'\nimport packing, torch", None, id="none of it"),
        pytest.param("from pack import layers\n1 +", None, id="nothing that could run"),
    ],
)
def test_a_cell_reaches(root, code, reached):
    expected = set() if reached is None else {"__init__.py"} | reached
    found = files_behind(imports_of_cell(code), root, ["pack"])
    assert found == sorted(root / "pack" / name for name in expected)


@pytest.mark.parametrize(
    ("code", "reached"),
    [
        pytest.param("from pack.shelf import One", SHELF, id="what a name comes from"),
        pytest.param("from pack.shelf.two import x", SHELF - {"shelf/one.py"} | {"shelf/two.py"},
                     id="not what an __init__ imports besides"),
        pytest.param("from pack.late import f", {"late.py", "layers.py"}, id="all of a module"),
        pytest.param("from pack import train as fit", LOOP, id="a name fetched at first use"),
    ],
)  # fmt: skip
def test_what_can_change_a_name_is_less_than_what_runs(root, code, reached):
    found = files_behind(imports_of_cell(code), root, ["pack"], as_run=False)
    assert found == sorted(root / "pack" / name for name in {"__init__.py"} | reached)


@cache
def chapter_imports(path):
    cells = code_cells(nbformat.read(path, as_version=4))
    return [each for cell in cells if cell.id != "set-up" for each in imports_of_cell(cell.source)]


@cache
def files_of(path):
    """The files of the real packages that a chapter depends on."""
    return files_behind(chapter_imports(path), ROOT, PACKAGES)


def users(name):
    """The numbers of the chapters that depend on a file of the real package."""
    file = ROOT / name
    assert file.is_file()
    return {int(path.name[:2]) for path in CHAPTERS if file in files_of(path)}


def test_an_edit_makes_only_the_chapters_stale_that_use_it():
    every = {int(path.name[:2]) for path in CHAPTERS}
    assert users("transformer_book/claims.py") == every
    for name in ("page.py", "elements.js", "explorer.js", "explorer.css"):
        assert users(f"transformer_book/explorer/{name}") == {12}
    assert users("transformer/attention.py") == every
    assert {1, 2} <= users("transformer/recurrent/cells.py") <= every - {3, 4, 6}
    for name in ("checkpoint", "step"):
        assert len(users(f"transformer/training/{name}.py")) <= 2
    # the family's blocks are there, too, and what trains an experiment whose runs a chapter reads
    assert users("transformer/model.py") <= every - {1, 3, 4, 5, 6, 7}
    for file in (ROOT / "transformer" / "commands").glob("*.py"):
        assert users(file.relative_to(ROOT)) == set()


# Executes each chapter's imports in turn, and says which modules of the package were loaded by it.
LOAD = f"""
import json, sys
PACKAGES = {PACKAGES}
loaded = {{}}
for chapter, lines in json.load(sys.stdin).items():
    for name in [name for name in sys.modules if name.partition(".")[0] in PACKAGES]:
        del sys.modules[name]
    exec("\\n".join(lines))
    found = (m for name, m in sys.modules.items() if name.partition(".")[0] in PACKAGES)
    loaded[chapter] = [module.__file__ for module in found]
print(json.dumps(loaded))
"""


def test_what_a_chapter_really_loads_is_among_what_it_depends_on():
    reached = {path.name: chapter_imports(path) for path in CHAPTERS}
    statements = {"*": "import {0}"}
    lines = {
        chapter: [
            statements.get(each.name, "from {0} import {1}").format(*each)
            for each in imports
            if each.module.partition(".")[0] in PACKAGES
        ]
        for chapter, imports in reached.items()
    }
    done = subprocess.run(
        [sys.executable, "-c", LOAD],
        cwd=ROOT, input=json.dumps(lines), stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    for chapter, loaded in json.loads(done.stdout).items():
        assert set(loaded) <= set(map(str, files_of(ROOT / "chapters" / chapter)))
        assert len(loaded) > 5
