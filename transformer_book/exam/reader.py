"""The reader's file, and how the exam calls what is in it."""

import contextlib
import inspect
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from transformer_book.answers import copy_of, is_unchanged
from transformer_book.exam.report import INDENT, NotThereYet, Wrong
from transformer_book.exam.similar_names import similar
from transformer_book.your_turn import YourTurn, is_empty

MOVED, UNNOTICED = 1e-3, 1e-5  # float32 leaves some 1e-6 where nothing has moved
WITH_YOUR_WEIGHTS = "with your weights in it, the book's gives the same numbers"


@dataclass
class Mine:
    """The reader's file once it has run; ``tell`` prints a line while a part is asked."""

    module: ModuleType
    path: Path
    tell: Callable[[str], None] = print
    mask_axes: int | None = None  # which the reader's heads take, 3 or 4, once that is known

    def get(self, name: str, *takes: str) -> Any:
        """The function or class ``name``, which can be called with as many arguments as named.

        Raises NotThereYet if it is not written, Wrong if it takes others.
        """
        thing = getattr(self.module, name, None)
        if thing is None:
            names = [n for n, other in vars(self.module).items() if self._is_mine(other)]
            raise NotThereYet(f"{self.path.name} has no {name} yet{_has(names, name)}")
        if not callable(thing):
            raise Wrong(f"{name} is no function and no class, but {type(thing).__name__}")
        if is_gap(thing):
            methods = [n for n, method in vars(thing).items() if isinstance(method, FunctionType)]
            if methods and thing.forward is nn.Module.forward:
                has = _has(methods, "forward", "__call__")
                raise NotThereYet(f"{name} has no forward yet{has}")
            raise NotThereYet(f"{self.path.name} has no {name} yet")
        if takes:
            check_takes(name, thing, takes)
        return thing

    def has(self, name: str) -> bool:
        thing = getattr(self.module, name, None)
        return callable(thing) and not is_gap(thing)

    def _is_mine(self, thing: object) -> bool:
        return callable(thing) and getattr(thing, "__module__", None) == self.module.__name__

    def call(self, what: str, function: Callable, *arguments: Any) -> Any:
        """What it returns for copies of ``arguments``; raises Wrong where anything is odd."""
        copies = list(map(copy_of, arguments))
        try:
            answer = function(*copies)
        except Wrong:
            raise
        except Exception as error:  # the reader's, whatever it is: it is told
            raise Wrong(f"{what}: your code stopped{self.where(error)}") from error
        names = _names(function, len(arguments))
        for name, now, before in zip(names, copies, arguments, strict=True):
            if not is_unchanged(now, before):
                look = "The caller still needs it: write x = x + y rather than x += y."
                raise Wrong(f"{what} changes its argument {name}", look)
        if answer is None:
            raise Wrong(f"{what} gives back nothing", "Does its last line say return?")
        return answer

    def where(self, error: BaseException) -> str:
        """`` in line 7 (x = y), with KeyError: …``, the line being the reader's, if one is."""
        frames = traceback.extract_tb(error.__traceback__)
        lines = [f for f in frames if Path(f.filename) == self.path]
        line = f" in line {lines[-1].lineno}, {lines[-1].line}" if lines else ""
        name = "".join(traceback.format_exception_only(error)).strip().splitlines()
        return f"{line}\n{INDENT}{name[0]}" if name else line


def _has(names: list[str], wanted: str, *also: str) -> str:
    near = [name for name in names if name in also or similar(name, wanted)]
    return f" (it has {', '.join(near)})" if near else ""


@contextlib.contextmanager
def look_behind(*pieces: str, look: str) -> Iterator[None]:
    """Adds ``look`` to a Wrong that holds one of ``pieces``, of errors that say little."""
    try:
        yield
    except Wrong as wrong:
        if any(piece in str(wrong) for piece in pieces):
            raise Wrong(str(wrong), f"Look at this: {look}") from wrong
        raise


def is_gap(thing: Any) -> bool:
    """Whether only dots are there: a function, or a class, without a body of its own."""
    if isinstance(thing, type) and issubclass(thing, nn.Module):
        forward = thing.forward
        return forward is nn.Module.forward or is_empty(forward)
    return isinstance(thing, FunctionType) and is_empty(thing)


def check_takes(name: str, function: Callable, takes: tuple[str, ...]) -> None:
    """Raises Wrong where ``function`` cannot be called with so many arguments."""
    if not can_take(function, len(takes)):
        raise Wrong(
            f"the exam calls {name}({', '.join(takes)}), but yours is "
            f"{name}{inspect.signature(function)}",
            "The names of the arguments are yours, their number and order are the table's.",
        )


def can_take(function: Callable, n: int) -> bool:
    """Whether it can be called with ``n`` arguments; what is not written in Python, always."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return True
    try:
        signature.bind(*range(n))
    except TypeError:
        return False
    return True


def module_of(mine: Mine, name: str, sizes: dict[str, int], takes: tuple[str, ...]) -> nn.Module:
    """What the reader's class makes, in evaluation mode; it can be called with what it takes."""
    what = f"{name}({', '.join(map(str, sizes.values()))})"
    made = mine.call(what, mine.get(name, *sizes), *sizes.values())
    if not isinstance(made, nn.Module):
        look = f"Write class {name}(nn.Module), and super().__init__() first in its __init__."
        raise Wrong(f"{what} is no nn.Module, so nobody finds its parameters", look)
    check_takes("forward", made.forward, takes)
    return made.eval()


def compared(
    name: str,
    right: Callable,
    attempt: Callable,
    inputs: list[tuple],
    mistakes: Mapping[str, Callable],
) -> str:
    """What "Your turn" says of ``attempt``; raises what it does not find right."""
    first, *lines = YourTurn(name, right, inputs, mistakes=mistakes).report(attempt)
    if first.startswith("✓"):
        return first.partition(": ")[2]
    if first.startswith("○"):
        raise NotThereYet(f"{name} holds only dots so far")
    lines = [line.replace("    hint: ", "    Look at this: ") for line in lines]
    raise Wrong("\n".join(["another answer than the book's, in the smallest case", *lines]))


def shaken(module: nn.Module, seed: int = 0) -> nn.Module:
    """``module`` with all its numbers moved, for those of a new one hide mistakes."""
    draw = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=draw))
    return module


def far(a: Tensor, b: Tensor, tolerance: float = 1e-3) -> bool:
    """Whether two tensors differ, in shape or by more than rounding."""
    return a.shape != b.shape or not torch.allclose(a, b, rtol=tolerance, atol=tolerance)


def check_steady(one: Tensor, other: Tensor) -> None:
    """Raises Wrong where chance has a say in evaluation mode."""
    if far(one, other):
        look = "What is random, such as dropout, must stop at model.eval() (section 9.5)"
        raise Wrong("the same call twice gives two answers", look)


def tensor_of(what: str, answer: Any, shape: tuple[int, ...], **example: Any) -> Tensor:
    """``answer``, if it is a tensor of numbers of this shape. Raises Wrong otherwise."""
    if not isinstance(answer, Tensor):
        raise Wrong(f"{what} gives a {type(answer).__name__}, and a tensor is wanted")
    if tuple(answer.shape) != shape:
        wanted = f"{what} has shape {tuple(answer.shape)}, and {shape} is wanted"
        raise Wrong(wanted, **example)
    answer = answer.detach()
    if answer.isnan().any():
        look = "Does a mask leave some query nothing at all? Softmax of nothing but -inf is nan."
        raise Wrong(f"{what} holds nan, which is no number", f"{look} (section 4.5)")
    return answer


def _names(function: Callable, n: int) -> list[str]:
    """The names of the first ``n`` arguments, as the reader has called them."""
    function = function.forward if isinstance(function, nn.Module) else function
    try:
        names = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        names = []
    return [*names[:n], *(f"number {i + 1}" for i in range(len(names), n))]
