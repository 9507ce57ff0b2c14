"""What a file may use in the exam: PyTorch and Python's own library, and no finished attention."""

import ast
import sys
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
    try:
        tree = ast.parse(path.read_bytes())
    except SyntaxError as error:
        where = f"{path.name}, line {error.lineno}" if error.lineno else path.name
        return f"{where}: Python cannot read this ({error.msg}). Mend that line first."
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt | ast.expr) and (why := _why_not(node)):
            return f"{path.name}, line {node.lineno}: {why}"
    return ""


def _why_not(node: ast.AST) -> str:
    """What is not allowed in a piece of the file; "" if nothing is."""
    modules, names = list[str](), list[str]()
    match node:
        case ast.Import(names=imported):
            modules = [alias.name for alias in imported]
        case ast.ImportFrom(module=module, names=imported, level=level):
            modules, names = ["." * level + (module or "")], [alias.name for alias in imported]
        case ast.Attribute(value=ast.Name("self")):
            pass
        case ast.Attribute(attr=name):
            names = [name]
    for module in modules:
        library = module.partition(".")[0]
        if library in ("transformer", "transformer_book"):
            return f"it imports {library}, the book's own. Here every part has to be yours."
        if library not in LIBRARIES:
            return f"it imports {module}. Here you may use torch and Python's own library."
    for name in FINISHED.intersection(names):
        return f"it takes PyTorch's finished {name}. Here you write attention yourself."
    return ""
