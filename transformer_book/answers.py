"""When an answer of the reader's is the right one: in which type it comes does not matter much.

A list, a NumPy array and a tensor of the same numbers say the same; whole numbers that become
fractions, and truth values that become numbers, do not.
"""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

YES_OR_NO = {True: "yes", False: "no"}


class LargestTensor(TorchDispatchMode):
    """Notes how many numbers the largest tensor has that is made while it is on."""

    n_numbers = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        tensors = [leaf for leaf in tree_leaves(made) if isinstance(leaf, Tensor)]
        self.n_numbers = max([self.n_numbers, *(tensor.numel() for tensor in tensors)])
        return made


def copy_of(value: Any) -> Any:
    """A copy of an argument, to the bottom of lists and the like, for a function to work on."""
    match value:
        case Tensor():
            return value.clone()
        case np.ndarray():
            return value.copy()
        case list() | set():
            return type(value)(map(copy_of, value))
        case tuple() if type(value) is tuple:
            return tuple(map(copy_of, value))
        case dict():
            return type(value)((key, copy_of(part)) for key, part in value.items())
    return value


def is_unchanged(now: Any, before: Any) -> bool:
    """Whether an argument is bit for bit what it was."""
    match before:
        case Tensor():
            return now.shape == before.shape and torch.equal(_bits(now), _bits(before))
        case np.ndarray():
            return now.shape == before.shape and now.tobytes() == before.tobytes()
        case list() | tuple():
            return len(now) == len(before) and all(map(is_unchanged, now, before))
        case dict():
            same_keys = list(now) == list(before)
            return same_keys and all(is_unchanged(now[key], before[key]) for key in before)
        case set():
            return now == before
        case str() | int() | float():
            return now is before or now == before  # not a number is no other number
    return True  # a function, a model: what these may do, no copy can tell


def _bits(x: Tensor) -> Tensor:
    """Integers that are equal where numbers are, and where both are NaN."""
    return x.detach().contiguous().view(torch.uint8) if x.dim() else _bits(x[None])


def disagreement(got: Any, expected: Any, tolerance: float) -> str:
    """Why ``got`` is not what is ``expected``, in words; "" if it is.

    Fractions may differ by ``tolerance (1 + 10 |expected|)``; whole numbers, by nothing.
    """
    if got is None:
        return "nothing came back: does the last line say return?"
    if isinstance(expected, Tensor) and expected.dim():
        return _why_tensors_differ(got, expected, tolerance)
    if isinstance(expected, tuple | list) and not _are_words(expected):
        return _why_several_differ(got, expected, tolerance)
    got, expected = as_plain(got), as_plain(expected)
    if isinstance(expected, float):
        if not is_number(got):
            return f"a number is expected, not {type(got).__name__}"
        close = abs(got - expected) <= tolerance * (1 + 10 * abs(expected))
        return "" if close or got == expected else "the number differs"
    if isinstance(expected, tuple | list) and isinstance(got, tuple | list):
        got, expected = list(got), list(expected)
    if isinstance(expected, bool) != isinstance(got, bool):
        return f"the answer is of type {type(expected).__name__}, not {type(got).__name__}"
    return "" if got == expected else "it differs"


def cannot_stand_in(yours: Callable, solution: Callable, given: tuple, *, trained: bool) -> str:
    """Why later cells cannot run with ``yours`` in the place of ``solution``; "" if they can.

    An answer may come as a list, or through NumPy, and be right; but later cells need tensors of
    the solution's type, and a model that is ``trained`` with it gradients that come through.
    """
    argument = _with_gradients if trained else copy_of
    expected = tree_leaves(solution(*map(argument, given)))
    try:
        got = tree_leaves(yours(*map(argument, given)))
    except Exception as error:  # the reader's, whatever it is: it is told, not hidden
        return f"yours stops where gradients are asked for ({type(error).__name__})"
    for mine, theirs in zip(got, expected, strict=False):
        if isinstance(theirs, Tensor) and not isinstance(mine, Tensor):
            return f"yours gives {type(mine).__name__} where a tensor is needed"
        if isinstance(theirs, Tensor) and mine.dtype != theirs.dtype:
            return f"yours gives {mine.dtype} where {theirs.dtype} is needed"
        if isinstance(theirs, Tensor) and theirs.requires_grad and not mine.requires_grad:
            return "no gradient comes through yours"
    return "" if len(got) == len(expected) else "yours gives its parts in another form"


def _with_gradients(value: Any) -> Any:
    """A copy of an argument that asks for gradients, where it is a tensor of fractions."""
    copied = copy_of(value)
    if isinstance(copied, Tensor) and copied.is_floating_point():
        copied.requires_grad_()
    return copied


def _are_words(values: tuple | list) -> bool:
    return all(isinstance(value, str) for value in values)


def _why_several_differ(got: Any, expected: tuple | list, tolerance: float) -> str:
    if isinstance(got, Tensor | np.ndarray) and got.ndim:
        got = list(got)  # the rows of a tensor are several things, too
    if not isinstance(got, tuple | list) or len(got) != len(expected):
        return f"{len(expected)} things are expected, one after the other"
    parts = (disagreement(g, e, tolerance) for g, e in zip(got, expected, strict=True))
    return next((why for why in parts if why), "")


def _why_tensors_differ(got: Any, expected: Tensor, tolerance: float) -> str:
    numbers = as_tensor(got)
    if numbers is None:
        return f"a tensor is expected, not {type(got).__name__}"
    if numbers.shape != expected.shape:
        return f"the shape should be {tuple(expected.shape)}, not {tuple(numbers.shape)}"
    kind = _kind(expected)
    if kind != "fractions" and _kind(numbers) != kind:  # where 1.0 is right, so are 1 and True
        return f"the numbers should be of type {expected.dtype}, not {numbers.dtype}"
    a, b = numbers.detach().double(), expected.detach().double()
    n_wrong = int((~torch.isclose(a, b, rtol=10 * tolerance, atol=tolerance)).sum())
    return f"{n_wrong} of {b.numel()} numbers differ" if n_wrong else ""


def _kind(x: Tensor) -> str:
    if x.dtype == torch.bool:
        return "truth values"
    return "fractions" if x.dtype.is_floating_point else "whole numbers"


def as_tensor(value: Any) -> Tensor | None:
    """A tensor of the same numbers, whatever they are given in; None if there is none."""
    if isinstance(value, Tensor):
        return value.cpu()
    if isinstance(value, list | tuple) and any(isinstance(part, Tensor) for part in value):
        parts = [part for part in map(as_tensor, value) if part is not None]
        alike = len(parts) == len(value) and len({part.shape for part in parts}) == 1
        return torch.stack(parts) if alike else None
    try:
        return torch.as_tensor(np.asarray(value))
    except (TypeError, ValueError):
        return None


def as_plain(value: Any) -> Any:
    """A number of Python's for one of NumPy's or PyTorch's, also from an array of one."""
    if isinstance(value, Tensor | np.ndarray | np.generic):
        size = value.numel() if isinstance(value, Tensor) else value.size
        return value.item() if size == 1 else value.tolist()
    return value


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def same_answer(answer: Any, wanted: Any, within: float) -> bool:
    """Whether ``answer`` says what is ``wanted``: a number, several of them, a word or words.

    A number that is no whole one may differ by the share ``within``. Of words neither capitals,
    the plural, the full stop nor, in a list with commas, the order counts.
    """
    answer, wanted = as_plain(answer), as_plain(wanted)
    if isinstance(wanted, tuple | list):
        if not isinstance(answer, tuple | list) or len(answer) != len(wanted):
            return False
        return all(same_answer(a, w, within) for a, w in zip(answer, wanted, strict=True))
    if is_number(wanted):
        return is_number(answer) and abs(answer - wanted) <= within * abs(wanted)
    if isinstance(wanted, str):
        if isinstance(answer, bool):
            answer = YES_OR_NO[answer]
        return isinstance(answer, str) and _words(answer, wanted) == _words(wanted, wanted)
    if isinstance(wanted, bool) and isinstance(answer, str):
        answer = {"yes": True, "true": True, "no": False, "false": False}.get(answer.lower())
    return type(answer) is type(wanted) and answer == wanted


def _words(text: str, wanted: str) -> list[str]:
    """The words of an answer, as far as they matter; sorted, where a list is wanted."""
    words = re.findall(r"\w+(?:[-.']\w+)*", text.casefold())
    if wanted.casefold() in YES_OR_NO.values():
        words = [{"true": "yes", "false": "no"}.get(word, word) for word in words]
    if "," in wanted:
        words = sorted(word for word in words if word != "and")
    return [re.sub(r"(?<=\w{2})s$", "", word) for word in words if word not in ("a", "the")]
