"""Conditions of claims that hold whatever the chapter computes, found without running them.

Only what is certain is refused: a condition that merely is hard to miss has to be broken by hand.
"""

import ast
from collections.abc import Iterable
from itertools import pairwise

from nbformat import NotebookNode

from transformer_book.experiments.imports import python_of_cell

SAME = {"close", "equal", "allclose", "array_equal", "isclose"}  # of twice the same: True
KEEPS_THE_SIGN = {"item", "min", "max", "sum", "mean"}
NEVER_NEGATIVE = {"len", "abs", "numel", "norm", "square", "count", "nelement"}
NAMED = (ast.Name, ast.Call, ast.Attribute, ast.Subscript, ast.Lambda, ast.Await)


def claim_calls(cell: NotebookNode) -> list[ast.Call]:
    """The calls of claim in a cell, as syntax, in their order."""
    calls = [n for n in ast.walk(ast.parse(python_of_cell(cell.source))) if isinstance(n, ast.Call)]
    made = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "claim"]
    return sorted(made, key=lambda call: (call.lineno, call.col_offset))


def conditions_that_cannot_fail(cell: NotebookNode) -> list[str]:
    """The conditions of a cell's claims that are always true, as they are written.

    A condition that is a name stands for all that the cell gives it: it is refused if each of
    these values is always true.
    """
    values = _values(ast.parse(python_of_cell(cell.source)))
    refused = []
    for call in claim_calls(cell):
        holds = _condition(call)
        meant = values.get(holds.id, []) if isinstance(holds, ast.Name) else [holds]
        if meant and all(map(always, meant)):
            refused.append(" or ".join(map(ast.unparse, meant)))
    return refused


def always(node: ast.expr) -> bool:
    """Whether an expression is true whatever its names stand for."""
    match node:
        case _ if _is_constant(node):
            return True  # a false one would have stopped the chapter
        case ast.BoolOp(op=ast.Or(), values=values):
            texts = set(map(ast.dump, values))
            denied = {ast.dump(v.operand) for v in values if isinstance(v, ast.UnaryOp)}
            return any(map(always, values)) or bool(texts & denied)
        case ast.BoolOp(values=values):
            return any(map(_is_constant, values)) or all(map(always, values))
        case ast.UnaryOp(op=ast.Not(), operand=ast.UnaryOp(op=ast.Not(), operand=inner)):
            return always(inner)
        case ast.IfExp(body=body, orelse=other):
            return always(body) and always(other)
        case ast.NamedExpr(value=value):
            return always(value)
        case ast.Compare(left=left, ops=ops, comparators=rest):
            sides = pairwise([left, *rest])
            return all(_holds_anyway(op, a, b) for op, (a, b) in zip(ops, sides, strict=True))
        case ast.Call():
            return _call_holds_anyway(node)
    return False


def _call_holds_anyway(call: ast.Call) -> bool:
    match call:
        case ast.Call(func=ast.Name(id="isinstance"), args=[thing, ast.Name(id=kind)]):
            return kind == "object" or _is_constant(thing)
        case ast.Call(func=ast.Name(id="bool"), args=[value]):
            return always(value)
        case ast.Call(func=ast.Attribute(value=value, attr="all" | "any" | "item"), args=[]):
            return always(value)
        case ast.Call(func=ast.Name(id="all" | "any"), args=[ast.List() | ast.Tuple() as parts]):
            return all(map(always, parts.elts))
        case ast.Call(func=ast.Name(id="all" | "any"), args=[ast.GeneratorExp(elt=part)]):
            return always(part)
        case ast.Call(args=[a, b, *_]):
            return _name(call) in SAME and _identical(a, b)
    return False


def _holds_anyway(op: ast.cmpop, a: ast.expr, b: ast.expr) -> bool:
    if isinstance(op, ast.Eq | ast.Is | ast.LtE | ast.GtE) and _identical(a, b):
        return True
    if isinstance(op, ast.Lt | ast.LtE):  # turned round
        a, b = b, a
    elif not isinstance(op, ast.Gt | ast.GtE):
        return False
    bound = _number(b)
    strict = isinstance(op, ast.Gt | ast.Lt)
    return (
        _is_never_negative(a) and bound is not None and (bound < 0 or (bound == 0 and not strict))
    )


def _identical(a: ast.expr, b: ast.expr) -> bool:
    """Whether both sides are one expression; a call may well return another thing each time."""
    calls = any(isinstance(node, ast.Call) for node in ast.walk(a))
    return ast.dump(a) == ast.dump(b) and not calls


def _is_never_negative(node: ast.expr) -> bool:
    match node:
        case ast.Call(
            func=ast.Attribute(value=value, attr="item" | "min" | "max" | "sum" | "mean")
        ):
            return _is_never_negative(value)
        case ast.Call():
            return _name(node) in NEVER_NEGATIVE
        case ast.BinOp(op=ast.Pow(), right=ast.Constant(value=int(power))):
            return power % 2 == 0
    return False


def _is_constant(node: ast.expr) -> bool:
    """Whether nothing in it has a name: what it says is known when it is written."""
    return not any(isinstance(part, NAMED) for part in ast.walk(node))


def _number(node: ast.expr) -> float | None:
    try:
        return float(ast.literal_eval(node))
    except (ValueError, TypeError):
        return None


def _name(call: ast.Call) -> str:
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def _condition(call: ast.Call) -> ast.expr:
    named = [keyword.value for keyword in call.keywords if keyword.arg == "holds"]
    return named[0] if named else call.args[1]


def _values(tree: ast.Module) -> dict[str, list[ast.expr]]:
    """What a cell assigns to each name, where that is one expression."""
    values: dict[str, list[ast.expr]] = {}
    for target, value in _assignments(ast.walk(tree)):
        values.setdefault(target, []).append(value)
    return values


def _assignments(nodes: Iterable[ast.AST]) -> Iterable[tuple[str, ast.expr]]:
    for node in nodes:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield name, value
            case ast.AugAssign(target=ast.Name(id=name)):
                yield name, ast.Name(id=name)  # it depends on what it was
            case ast.NamedExpr(target=ast.Name(id=name), value=value):
                yield name, value
            case ast.Assign(targets=targets):
                names = (n for target in targets for n in ast.walk(target))
                yield from ((n.id, n) for n in names if isinstance(n, ast.Name))
