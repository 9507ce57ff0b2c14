"""What the exam says of a part, and how it calls what the reader has written."""

import contextlib
import inspect
import io
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from transformer_book.answers import copy_of, is_unchanged
from transformer_book.exam.names import near
from transformer_book.your_turn import YourTurn, is_empty

INDENT = "    "
MOVED, UNNOTICED = 1e-3, 1e-5  # float32 leaves some 1e-6 where nothing has moved
WITH_YOUR_WEIGHTS = "with your weights in it, the book's gives the same numbers"
FILE = "the file"  # what is asked before any part: whether it runs


class NotThereYet(Exception):
    """A part that cannot be asked, for something is not written; it says what."""


class Wrong(Exception):
    """What is wrong with a part: the symptom, then the smallest example that shows it."""

    def __init__(self, symptom: str, *look_at: str, **example: Any):
        shown = [f"{name}: {shown_as(value)}" for name, value in example.items()]
        super().__init__("\n".join([symptom, *(INDENT + line for line in (*shown, *look_at))]))


@dataclass(frozen=True)
class Result:
    """``mark``: ✓ right, ○ not there, ✗ wrong."""

    part: str
    mark: str
    text: str


@dataclass
class Mine:
    """The reader's file once it has run; ``known`` is what one part found out for another."""

    module: ModuleType
    path: Path
    known: dict[str, Any] = field(default_factory=dict)
    waits: dict[str, str] = field(default_factory=dict)  # what to say where a part is not right

    def get(self, name: str, *takes: str) -> Any:
        """The function or class ``name``, which can be called with as many arguments as named.

        Raises NotThereYet if it is not written, Wrong if it takes others.
        """
        found = getattr(self.module, name, None)
        if found is None or is_gap(found):
            instead = near(self.module, name) if found is None else []
            has = f" (it has {', '.join(instead)})" if instead else ""
            raise NotThereYet(f"{self.path.name} has no {name} yet{has}")
        if not callable(found):
            raise Wrong(f"{name} is no function and no class, but {type(found).__name__}")
        if takes:
            check_takes(name, found, takes)
        return found

    def has(self, name: str) -> bool:
        found = getattr(self.module, name, None)
        return callable(found) and not is_gap(found)

    def needs(self, name: str, ask: Callable[["Mine"], str]) -> None:
        """Raises NotThereYet where the part ``name``, which ``ask`` asks, is wrong, or waits."""
        if name not in self.waits:
            self.waits[name] = ""
            try:
                ask(self)
            except NotThereYet as gap:
                self.waits[name] = str(gap)
            except Exception:  # Wrong, or what the exam did not expect: its own line tells it
                self.waits[name] = f"waits for {name}, which is not right yet"
        if self.waits[name]:
            raise NotThereYet(self.waits[name])

    def call(self, what: str, function: Callable, *given: Any) -> Any:
        """What it returns for copies of ``given``; raises Wrong where anything is odd."""
        copies = list(map(copy_of, given))
        try:
            got = function(*copies)
        except Wrong:
            raise
        except Exception as error:  # the reader's, whatever it is: it is told
            raise Wrong(f"{what}: your code stopped{self.where(error)}") from error
        names = _names(function, len(given))
        for name, now, before in zip(names, copies, given, strict=True):
            if not is_unchanged(now, before):
                look = "The caller still needs it: write x = x + y rather than x += y."
                raise Wrong(f"{what} changes its argument {name}", look)
        if got is None:
            raise Wrong(f"{what} gives back nothing", "Does its last line say return?")
        return got

    def where(self, error: BaseException) -> str:
        """`` in line 7 (x = y), with KeyError: …``, the line being the reader's, if one is."""
        frames = traceback.extract_tb(error.__traceback__)
        own = [f for f in frames if Path(f.filename) == self.path]
        line = f" in line {own[-1].lineno}, {own[-1].line}" if own else ""
        said = "".join(traceback.format_exception_only(error)).strip().splitlines()
        return f"{line}\n{INDENT}{said[0]}" if said else line


@contextlib.contextmanager
def look_behind(*pieces: str, look: str) -> Iterator[None]:
    """Adds ``look`` to a Wrong that holds one of ``pieces``, of errors that say little."""
    try:
        yield
    except Wrong as wrong:
        if any(piece in str(wrong) for piece in pieces):
            raise Wrong(str(wrong), f"Look at this: {look}") from wrong
        raise


def from_outside(unclear: str) -> str:
    """What is said where the reader's weights cannot be put into the package's."""
    return (
        "right in all that shows from outside; your weights were not put into the book's, for I "
        f"cannot tell {unclear}"
    )


def is_gap(thing: Any) -> bool:
    """Whether only dots are there: a function, or a class, without a body of its own."""
    if isinstance(thing, type) and issubclass(thing, nn.Module):
        forward = thing.forward
        return forward is nn.Module.forward or is_empty(forward)
    return isinstance(thing, FunctionType) and is_empty(thing)


def check_takes(name: str, function: Callable, takes: tuple[str, ...]) -> None:
    """Raises Wrong where ``function`` cannot be called with so many arguments."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # of what is not written in Python
    try:
        signature.bind(*takes)
    except TypeError:
        wanted = f"{name}({', '.join(takes)})"
        raise Wrong(
            f"the exam calls {wanted}, but yours is {name}{signature}",
            "The names of the arguments are yours, their number and order are the table's.",
        ) from None


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
    said = io.StringIO()
    check = YourTurn(name, right, inputs, mistakes=mistakes)
    with contextlib.redirect_stdout(said):
        check(attempt)
    first, *lines = said.getvalue().splitlines()
    if first.startswith("✓"):
        return first.partition(": ")[2]
    if first.startswith("○"):
        raise NotThereYet(f"{name} holds only dots so far")
    lines = [line.replace("    hint: ", "    Look at this: ") for line in lines]
    raise Wrong("\n".join(["another answer than the book's, in the smallest case", *lines]))


def shown_as(value: Any) -> str:
    """A value as it can be read at a glance."""
    if not isinstance(value, Tensor):
        return str(value)
    value = value.detach()
    if value.is_floating_point():
        value = value.double().round(decimals=2) + 0.0  # without a zero below zero
    return str(value.tolist()) if value.numel() <= 24 else f"of shape {tuple(value.shape)}"


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


def tensor_of(what: str, got: Any, shape: tuple[int, ...], **example: Any) -> Tensor:
    """``got``, if it is a tensor of numbers of this shape. Raises Wrong otherwise."""
    if not isinstance(got, Tensor):
        raise Wrong(f"{what} gives a {type(got).__name__}, and a tensor is wanted")
    if tuple(got.shape) != shape:
        wanted = f"{what} has shape {tuple(got.shape)}, and {shape} is wanted"
        raise Wrong(wanted, **example)
    got = got.detach()
    if got.isnan().any():
        look = "Does a mask leave some query nothing at all? Softmax of nothing but -inf is nan."
        raise Wrong(f"{what} holds nan, which is no number", f"{look} (section 4.5)")
    return got


def _names(function: Callable, n: int) -> list[str]:
    """The names of the first ``n`` arguments, as the reader has called them."""
    function = function.forward if isinstance(function, nn.Module) else function
    try:
        names = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        names = []
    return [*names[:n], *(f"number {i + 1}" for i in range(len(names), n))]
