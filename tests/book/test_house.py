"""What chapters and the reference may show, and how the tests themselves run."""

import ast
import os
import re
import warnings
from importlib.util import find_spec

import jaxtyping
import nbformat
import pytest
import torch

from tools.chapters import NOTEBOOKS, ROOT, code_cells
from transformer.masks import padding_mask
from transformer_book.notebooks import python_of_cell

MODULES = sorted((ROOT / "transformer").rglob("*.py"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_chapter_shows_or_imports_a_private_name(path):
    private = []
    for cell in code_cells(nbformat.read(path, as_version=4)):
        for node in ast.walk(ast.parse(python_of_cell(cell.source))):
            match node:
                case ast.Call(func=ast.Name(id="show"), args=args):
                    parts = [part for arg in args for part in ast.unparse(arg).split(".")]
                case ast.ImportFrom(module=str(module)) if module.startswith("transformer"):
                    parts = module.split(".") + [alias.name for alias in node.names]
                case _:
                    continue
            # names between two underscores, such as __call__, are Python's
            private += [p for p in parts if p.startswith("_") and not p.endswith("__")]
    assert private == []


def test_shapes_are_checked_while_the_tests_run():
    with pytest.raises(jaxtyping.TypeCheckError):
        padding_mask(torch.zeros(3, dtype=torch.int64))


def test_all_annotations_are_checked_but_those_of_the_grammar():
    rooms = [ROOT / "transformer", ROOT / "transformer_book"]
    paths = [path.relative_to(ROOT) for room in rooms for path in room.rglob("*.py")]
    names = {".".join(p.with_suffix("").parts).removesuffix(".__init__"): p for p in paths}
    loaders = {name: type(find_spec(name).loader).__name__ for name in names}
    left_out = {name for name, loader in loaders.items() if loader != "_JaxtypingLoader"}
    grammar = {name for name in names if name.startswith("transformer.data.grammar")}
    assert left_out == {"transformer", "transformer.data"} | grammar
    for name in left_out - grammar:
        tree = ast.parse((ROOT / names[name]).read_text(encoding="utf-8"))
        assert not [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


def test_a_warning_of_ours_is_an_error_and_no_others():
    for module in ("transformer.masks", "transformer_book", "website.press"):
        with pytest.raises(UserWarning, match="ours"):
            warnings.warn_explicit("ours", UserWarning, "a.py", 1, module=module)
    for module in ("torch.utils.mkldnn", "transformers", "pytest_benchmark"):
        with warnings.catch_warnings(record=True) as said:  # which leaves the filters as they are
            warnings.warn_explicit("theirs", UserWarning, "a.py", 1, module=module)
        assert len(said) == 1


def test_one_thread_is_used():
    assert torch.get_num_threads() == 1
    assert os.environ["TOKENIZERS_PARALLELISM"] == "false"
    assert os.environ["TQDM_DISABLE"] == "1"


def test_the_package_s_pages_list_every_module_that_a_reader_may_import_once():
    pages = [path.read_text(encoding="utf-8") for path in (ROOT / "appendix").glob("api*.md")]
    listed = re.findall(r"^\.\. automodule:: (\S+)$", "\n".join(pages), flags=re.M)
    assert len(set(listed)) == len(listed)
    names = [path.relative_to(ROOT).with_suffix("").parts for path in MODULES]
    rooms = {".".join(name) for name in names if not name[-1].startswith("_")}
    house = ("checks", "files", "tensors", "memory", "commands")
    house = tuple(f"transformer.{name}" for name in house)
    words = ("transformer.data.grammar.function_words", "transformer.data.grammar.lexicon")
    assert {name for name in rooms if not name.startswith((*house, *words))} == {
        name for name in listed if not name.startswith("transformer_book")
    }
