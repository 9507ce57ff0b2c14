"""What a file may use in the exam: PyTorch and Python's own library, and no finished attention."""

import ast
import sys
from collections.abc import Iterator

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


def objection(source: str, file: str) -> str:
    """Why ``source`` cannot sit the exam, in a sentence; "" if it can."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError) as error:  # ValueError: a null byte
        where = f", line {error.lineno}" if isinstance(error, SyntaxError) else ""
        what = error.msg if isinstance(error, SyntaxError) else error
        return f"{file}{where}: Python cannot read this ({what}). Mend that line first."
    found = sorted(_objections(tree))
    return f"{file}, line {found[0][0]}: {found[0][1]}" if found else ""


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
            case ast.Attribute(attr=name, value=value) if ast.unparse(value) != "self":
                yield from _of_name(node.lineno, name)


def _of_module(line: int, module: str) -> Iterator[tuple[int, str]]:
    name = module.partition(".")[0]
    if name in ("transformer", "transformer_book"):
        yield line, f"it imports {name}, the book's own. Here every part has to be yours."
    elif name not in LIBRARIES:
        yield line, f"it imports {module}. Here you may use torch and Python's own library."


def _of_name(line: int, name: str) -> Iterator[tuple[int, str]]:
    if name in FINISHED:
        yield line, f"it takes PyTorch's finished {name}. Here you write attention yourself."
