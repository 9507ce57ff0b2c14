"""What a file may use in the exam: PyTorch and Python's own library, and no finished attention."""

import ast
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

LIBRARIES = {"torch", *sys.stdlib_module_names}
FINISHED = {
    "MultiheadAttention",
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
    "flex_attention",
    "multi_head_attention_forward",
    "scaled_dot_product_attention",
}


def objection(path: Path) -> str:
    """Why the file cannot sit the exam, in a sentence; "" if it can."""
    if path.suffix == ".ipynb":
        return (
            f"{path.name} is a notebook, and the exam reads a Python file. Write %%writefile "
            "mine.py at the top of the cell with your code, run it, and give mine.py to the exam."
        )
    if path.suffix != ".py":
        return f"{path.name} must be a Python file, with a name that ends in .py"
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError) as error:  # ValueError: a null byte
        number = getattr(error, "lineno", None)
        where = f", line {number}" if number else ""
        what = error.msg if isinstance(error, SyntaxError) else error
        return f"{path.name}{where}: Python cannot read this ({what}). Mend that line first."
    except (RecursionError, MemoryError):
        return f"{path.name}: Python cannot read this, for an expression in it is too long or deep."
    objections = sorted(_objections(tree))
    return f"{path.name}, line {objections[0][0]}: {objections[0][1]}" if objections else ""


def _objections(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                for alias in names:
                    yield from _of_module(node.lineno, alias.name)
            case ast.ImportFrom(module=module, names=names):
                yield from _of_module(node.lineno, "." * node.level + (module or ""))
                for alias in names:
                    yield from _of_name(node.lineno, alias.name)
            case ast.Attribute(value=ast.Name("self")):
                pass
            case ast.Attribute(attr=name):
                yield from _of_name(node.lineno, name)
            case ast.Module(body=body):
                yield from _training(body)


def _of_module(line: int, module: str) -> Iterator[tuple[int, str]]:
    name = module.partition(".")[0]
    if name in ("transformer", "transformer_book"):
        yield line, f"it imports {name}, the book's own. Here every part has to be yours."
    elif name not in LIBRARIES:
        yield line, f"it imports {module}. Here you may use torch and Python's own library."


def _of_name(line: int, name: str) -> Iterator[tuple[int, str]]:
    if name in FINISHED:
        yield line, f"it takes PyTorch's finished {name}. Here you write attention yourself."


def _training(body: Sequence[ast.stmt]) -> Iterator[tuple[int, str]]:
    """The file of One evening trains as soon as it is run."""
    for statement in body:
        match statement:
            case ast.Assign(value=ast.Call(func=ast.Name("train"))):
                yield statement.lineno, "it trains when it is run. Delete the lines that train."
