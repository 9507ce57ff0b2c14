"""Which modules some code computes with, in a package made up to try the rules."""

import pytest

from transformer_book.experiments.imports import files_behind, imports_of_cell

PACKAGE = {
    "__init__.py": "from pack.model import Model\nfrom pack.loop import fit as train",
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
    "shelf/__init__.py": "from .one import One, Two\nown = One()",
    "shelf/one.py": "",
    "shelf/two.py": "",
}
SHELF = {"shelf/__init__.py"}
MODEL = {"model.py", "layers.py"}
LOOP = {"loop.py", "late.py"} | MODEL
CASES = {
    "a module": ("from pack.layers import Layer", {"layers.py"}),
    "and through it another": ("from pack.model import Model", MODEL),
    "a module as a name": ("from pack import layers", {"layers.py"}),
    "a name that an __init__ hands on": ("from pack import Model", MODEL),
    "or one under another name": ("from pack import train as fit", LOOP),
    "the package, and so every name": ("import pack", LOOP),
    "every name": ("from pack import *", LOOP),
    "a module, through which every name is seen": ("import pack.layers", LOOP),
    "what a name comes from": ("from pack.shelf import One", SHELF | {"shelf/one.py"}),
    "all of an __init__ whose own it is": (
        "from pack.shelf import own",
        SHELF | {"shelf/one.py"},
    ),
    "not what an __init__ imports besides": (
        "from pack.shelf.two import x",
        SHELF | {"shelf/two.py"},
    ),
    "within a function": ("def f():\n    from pack import late", {"late.py", "layers.py"}),
    "what runs, not what is for types": ("from pack.typed import *", {"typed.py", "layers.py"}),
    "a magic": ("if x:\n    %pip x\nfrom pack import layers", {"layers.py"}),
    "a cell's magic": ("%%time\nfrom pack import layers", {"layers.py"}),
    "a shell's line": ("names = !ls\nfrom pack import layers", {"layers.py"}),
    "none of it": ("text = 'import pack'\nimport packing, torch", None),
    "nothing that could run": ("from pack import layers\n1 +", None),
}


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("root")
    for name, text in PACKAGE.items():
        (root / "pack" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "pack" / name).write_text(text, encoding="utf-8")
    (root / "packing.py").write_text("", encoding="utf-8")
    return root


@pytest.mark.parametrize("case", CASES)
def test_a_cell_reaches(root, case):
    code, reached = CASES[case]
    expected = set() if reached is None else {"__init__.py"} | reached
    found = files_behind(imports_of_cell(code), root, ["pack"])
    assert found == sorted(root / "pack" / name for name in expected)
