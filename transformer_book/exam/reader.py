"""The reader's file, and how the exam calls what is in it."""

import contextlib
import inspect
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from torch import nn

from transformer_book.answers import copy_of, is_unchanged
from transformer_book.exam.report import INDENT, NotThereYet, Wrong
from transformer_book.your_turn import YourTurn, is_empty

ALIKE = 0.8  # of SequenceMatcher's ratio; train_step and translate have 0.78


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
            mine = [n for n, other in vars(self.module).items() if self._is_mine(other)]
            raise NotThereYet(f"{self.path.name} has no {name} yet{_near(name, mine)}")
        if not callable(thing):
            raise Wrong(f"{name} is no function and no class, but {type(thing).__name__}")
        body = getattr(thing, "forward", thing)
        if body is nn.Module.forward:
            methods = [n for n, method in vars(thing).items() if isinstance(method, FunctionType)]
            raise NotThereYet(f"{name} has no forward yet{_near('forward', methods)}")
        if is_empty(body):
            raise NotThereYet(f"{name} holds only dots so far")
        check_takes(name, thing, takes)
        return thing

    def _is_mine(self, thing: object) -> bool:
        return callable(thing) and getattr(thing, "__module__", None) == self.module.__name__

    def call(self, what: str, function: Callable, **arguments: Any) -> Any:
        """What it returns for copies of ``arguments``, in this order, whatever it calls them.

        Raises Wrong where it stops, changes an argument, or returns nothing.
        """
        shown = (str(v) if isinstance(v, int) else name for name, v in arguments.items())
        what += f"({', '.join(shown)})"
        copies = {name: copy_of(argument) for name, argument in arguments.items()}
        try:
            answer = function(*copies.values())
        except Exception as error:  # the reader's, whatever it is: it is told
            raise Wrong(f"{what}: your code stopped{self.where(error)}") from error
        for name, before in arguments.items():
            if not is_unchanged(copies[name], before):
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


def _near(wanted: str, names: Iterable[str]) -> str:
    """`` (it has …)``, with the names that are written much like the one that is wanted."""
    near = []
    for name in names:
        a, b = (text.replace("_", "").lower() for text in (name, wanted))
        begins = len(a) > 3 and (a.startswith(b) or b.startswith(a))
        # an EncoderLayer is no misspelt DecoderLayer
        if begins or (a[:1] == b[:1] and SequenceMatcher(None, a, b).ratio() >= ALIKE):
            near.append(name)
    return f" (it has {', '.join(near)})" if near else ""


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
        inspect.signature(function).bind(*range(n))
    except TypeError:
        return False
    except ValueError:  # it has no signature
        return True
    return True


@contextlib.contextmanager
def hinted(hint: Callable[[str], str]) -> Iterator[None]:
    """Adds to what is Wrong in here the hint that comes of its text, unless that is ""."""
    try:
        yield
    except Wrong as wrong:
        if text := hint(str(wrong)):
            raise Wrong(str(wrong), f"Look at this: {text}") from wrong
        raise


def compared(
    name: str,
    right: Callable,
    attempt: Callable,
    inputs: list[tuple],
    flaws: Mapping[str, Callable],
) -> str:
    """What "Your turn" says of ``attempt``; raises what it does not find right."""
    first, *lines = YourTurn(name, right, inputs, mistakes=flaws).report(attempt)
    if first.startswith("✓"):
        return first.partition(": ")[2]
    if first.startswith("○"):
        raise NotThereYet(f"{name} holds only dots so far")
    lines = [line.replace("    hint: ", "    Look at this: ") for line in lines]
    raise Wrong("\n".join([first.partition(": ")[2], *lines]))
