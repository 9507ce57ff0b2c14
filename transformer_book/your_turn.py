"""Checks of what the reader writes: nothing yet, wrong and how, or right; "run all" goes on."""

import dis
import inspect
import math
import traceback
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from transformer_book.answers import (
    LargestTensor,
    cannot_stand_in,
    copy_of,
    disagreement,
    is_unchanged,
    same_answer,
)

INDENT = "    "


class YourTurn:
    """Holds a function that the reader writes against one that is ``right``, on ``inputs``.

    Each input is a tuple of arguments. Calling the check with a function prints ○ if nothing is
    written yet, ✓ if all outputs agree (``answers.disagreement``), and else
    ✗ with the smallest input that shows the difference. A function that changes its arguments is
    wrong, unless ``in_place`` says that it may; and so is one that makes a tensor of more numbers
    than ``most_numbers`` says of these arguments, where the task is to do without. Nothing that
    the function does stops the notebook. ``mistakes`` are functions that are wrong in a known way,
    by what to say of them.

    Raises ValueError without inputs, and for a mistake that no input tells from ``right``.
    """

    def __init__(
        self,
        label: str,
        right: Callable,
        inputs: list[tuple],
        *,
        mistakes: Mapping[str, Callable] | None = None,
        tolerance: float = 1e-4,
        in_place: bool = False,
        most_numbers: Callable[..., float] = lambda *given: math.inf,
    ):
        if not inputs:
            raise ValueError("inputs must hold at least one tuple of arguments, got none")
        self.label, self.right, self.tolerance = label, right, tolerance
        self.in_place, self.most_numbers = in_place, most_numbers
        self.inputs = sorted(inputs, key=_size)
        self.mistakes = dict(mistakes or {})
        for said, wrong in self.mistakes.items():
            if not any(self._difference(wrong, given) for given in self.inputs):
                raise ValueError(f"mistakes must differ from right somewhere, got {said!r}")

    def __call__(self, attempt: Callable) -> None:
        print(*self.report(attempt), sep="\n")

    def report(self, attempt: Callable) -> list[str]:
        """The lines that a call prints."""
        if self._is_unwritten(attempt):
            line = "not written yet. Put your lines where the dots are; run it again."
            return [f"○ {self.label}: {line}"]
        if not (first := self._first_difference(attempt)):
            return [f"✓ {self.label}: right on {len(self.inputs)} inputs"]
        arguments, difference = first
        names = _names(attempt, len(arguments))
        return [
            f"✗ {self.label}: not right yet. The smallest input that shows it:",
            *map(_line, names, arguments),
            _line("expected", difference.expected),
            *difference.lines(),
            *self._known_mistakes(attempt),
        ]

    def use(self, yours: Callable, solution: Callable, *, trained: bool = True) -> Callable:
        """What later cells run with: ``yours`` if it is right, else ``solution``; prints which.

        What is right has to be in the solution's type and, where a model is ``trained`` with it,
        let gradients through. A cell that is run again without what the reader writes is given the
        solution for ``yours``, by that name.
        """
        name = getattr(yours, "__name__", "function")
        if yours is solution or self._is_unwritten(yours):
            why = "nothing is written yet"
        elif self._first_difference(yours):
            why = "yours is not right yet"
        else:
            found = (cannot_stand_in(yours, solution, x, trained=trained) for x in self.inputs)
            why = next(filter(None, found), "")
        whose = f"the solution's {name}, because {why}" if why else f"your {name}"
        print(f"→ From here on this page runs with {whose}.")
        return solution if why else yours

    def _is_unwritten(self, attempt: Callable) -> bool:
        if is_empty(attempt):
            return True
        found = self._first_difference(attempt) if _has_dots(attempt) else None
        return found is not None and not found[1].returned_something

    def _first_difference(self, attempt: Callable) -> "tuple[tuple, _Difference] | None":
        """The smallest input that shows that ``attempt`` is wrong, and how; None if none does."""
        for given in self.inputs:
            if difference := self._difference(attempt, given):
                return given, difference
        return None

    def _difference(self, attempt: Callable, given: tuple) -> "_Difference | None":
        """How ``attempt`` differs from what is right on copies of one input; None if it agrees."""
        expected = self.right(*map(copy_of, given))
        arguments = list(map(copy_of, given))
        try:
            with LargestTensor() as largest:
                got = attempt(*arguments)
        except Exception as error:  # the reader's, whatever it is: it is printed, not hidden
            return _Difference(expected, error=_where_it_stopped(error, attempt))
        why = disagreement(got, expected, self.tolerance)
        why = why or self._wrong_way(attempt, arguments, given, largest.n_numbers)
        return _Difference(expected, got, why) if why else None

    def _wrong_way(self, attempt: Callable, now: list, given: tuple, n_numbers: int) -> str:
        """What is wrong with the way to an output that is right; "" if nothing is."""
        names = zip(_names(attempt, len(given)), now, given, strict=True)
        changed = [name for name, value, was in names if not is_unchanged(value, was)]
        if changed and not self.in_place:
            return f"right, but it changes {changed[0]} itself: work on a copy"
        most = self.most_numbers(*given)
        if n_numbers > most:
            return f"right, but it makes a tensor of {n_numbers} numbers: {most} are enough"
        return ""

    def _known_mistakes(self, attempt: Callable) -> Iterator[str]:
        for hint, wrong in self.mistakes.items():
            check = YourTurn(
                self.label, wrong, self.inputs, tolerance=self.tolerance, in_place=True
            )
            if all(check._difference(attempt, given) is None for given in self.inputs):
                yield f"{INDENT}hint: {hint}"


class Question:
    """A question with one answer, a number or a word.

    Calling the check with the reader's answer prints ○ for None or dots, ✓ for an answer that
    says the same as ``right`` (``answers.same_answer``), and else ✗, with
    what ``mistakes`` says of that answer; the right one is not told. A whole number is a count and
    has to be exact; another may differ by one per cent, or by the share ``within``.
    """

    def __init__(
        self,
        label: str,
        right: Any,
        *,
        mistakes: Mapping | None = None,
        within: float | None = None,
    ):
        self.label, self.right = label, right
        self.within = within if within is not None else 0.01 * isinstance(right, float)
        self.mistakes = dict(mistakes or {})
        for wrong in self.mistakes:
            if same_answer(wrong, right, self.within):
                raise ValueError(f"mistakes must differ from the right answer, got {wrong!r}")

    def __call__(self, answer: Any) -> None:
        if answer is None or answer is ...:
            print(f"○ {self.label}: no answer yet. Put yours where the dots are; run it again.")
        elif same_answer(answer, self.right, self.within):
            print(f"✓ {self.label}: right, {answer}")
        else:
            print(f"✗ {self.label}: not {answer}")
            for wrong, hint in self.mistakes.items():
                if same_answer(answer, wrong, self.within):
                    print(f"{INDENT}hint: {hint}")


class _Difference:
    """What was expected, what came, and why the two do not agree."""

    def __init__(self, expected: Any, got: Any = None, why: str = "", error: str = ""):
        self.expected, self.got, self.why, self.error = expected, got, why, error
        self.returned_something = not error and got is not None and got is not ...

    def lines(self) -> list[str]:
        if self.error:
            return [f"{INDENT}your code stopped: {self.error}"]
        return [_line("you gave", self.got), f"{INDENT}{self.why}"]


def is_empty(function: Callable) -> bool:
    """Whether its body is only a docstring and dots."""
    body = getattr(inspect.unwrap(function), "__code__", None)
    if body is None:
        return False
    steps = [s for s in dis.get_instructions(body) if s.opname not in ("RESUME", "NOP")]
    names = [step.opname for step in steps]
    returns = names in (["LOAD_CONST", "RETURN_VALUE"], ["RETURN_CONST"])
    return returns and steps[0].argval in (None, ...)


def _has_dots(function: Callable) -> bool:
    return ... in getattr(getattr(function, "__code__", None), "co_consts", ())


def _where_it_stopped(error: Exception, attempt: Callable) -> str:
    """The error in one line, with the line of the function in which it arose."""
    name = "".join(traceback.format_exception_only(error)).strip().splitlines()[0]
    code = getattr(attempt, "__code__", None)
    lines = [n for f, n in traceback.walk_tb(error.__traceback__) if f.f_code is code]
    if code is None or not lines:
        return name
    return f"{name} (line {lines[-1] - code.co_firstlineno + 1} of {code.co_name})"


def _size(given: tuple) -> int:
    return sum(v.numel() if isinstance(v, Tensor) else 1 for v in given)


def _names(function: Callable, n: int) -> list[str]:
    """The names of the first ``n`` arguments, as far as the function tells them."""
    code = getattr(inspect.unwrap(function), "__code__", None)  # a builtin has none
    names = list(code.co_varnames[: min(n, code.co_argcount)]) if code else []
    return names + [f"argument {i + 1}" for i in range(len(names), n)]


def _line(name: str, value: Any) -> str:
    shape = f"   shape {tuple(value.shape)}" if isinstance(value, Tensor) else ""
    return f"{INDENT}{name}: {_short(value)}{shape}"


def _short(value: Any) -> Any:
    """A value as it can be read at a glance; of several things, each."""
    if isinstance(value, tuple | list) and any(isinstance(part, Tensor) for part in value):
        return ", ".join(str(_short(part)) for part in value)
    if not isinstance(value, Tensor):
        return value
    if value.numel() > 24:
        return "…"
    return value.tolist() if value.dtype == torch.bool else _rounded(value.tolist())


def _rounded(numbers: Any) -> Any:
    if isinstance(numbers, list):
        return [_rounded(number) for number in numbers]
    return round(numbers, 2) if isinstance(numbers, float) else numbers
