"""Measured numbers: nbval compares them within a factor, the rest exactly.

They are the numbers of a cell whose metadata say "measured". Two machines do not measure the same,
so each is held against the stored one by :func:`agrees`. A number that agrees is replaced by the
stored one before nbval compares, so the text around it has to be equal, and one that does not agree
stands in nbval's message.
"""

import copy
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from nbformat import NotebookNode
from nbval.plugin import IPyNbCell

from tests.book.plots import changes, is_plot

DIGITS = r" *[-+−]?[0-9]+(?:,[0-9]{3}(?![0-9]))*(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?(?![0-9])"
NUMBER = re.compile(rf"(?<![\w.]){DIGITS}")
WITHIN = 10.0  # a cell whose numbers depend on less says so in its metadata: "within": 1.1
UNITS, UNITS_WHERE_STATED = 5, 1  # of the last digit: rounded numbers so near each other agree


def agrees(stored: str, now: str, within: float = WITHIN, units: int = UNITS) -> bool:
    """Whether two numbers have one sign and differ by no more than the factor ``within``.

    Near zero a factor says nothing: 0.00 and 0.02 are both "about nothing" where two digits are
    shown. So numbers also agree if they differ by no more than ``units`` of the last digit shown,
    of the number that is shown to more digits: 1e-12 is not nothing beside 1e-08.
    """
    a, b = value_of(stored), value_of(now)
    unit = min(unit_of(stored), unit_of(now))
    if abs(a - b) <= (units + 1e-6) * unit:  # a sum of decimals is not exact
        return True
    return a * b > 0 and max(abs(a), abs(b)) <= within * min(abs(a), abs(b))


def value_of(number: str) -> float:
    return float(number.replace(",", "").replace("−", "-"))


def unit_of(number: str) -> float:
    """What one more in the last digit is worth: 0.01 for "0.25", 100 for "1.5e3"."""
    digits, _, power = number.strip().lower().partition("e")
    return 10.0 ** (int(power or 0) - len(digits.partition(".")[2]))


def with_stored_numbers(now: str, stored: str, within: float | None = None) -> str:
    """What a cell shows now, with the stored number in the place of each that agrees with it."""
    factor, units = (WITHIN, UNITS) if within is None else (within, UNITS_WHERE_STATED)
    numbers = iter(NUMBER.findall(stored))

    def choose(found: re.Match) -> str:
        known = next(numbers, None)
        return known if known is not None and agrees(known, found[0], factor, units) else found[0]

    return NUMBER.sub(choose, now)


def with_stored_endings(now: str, stored: str, sign: str) -> str:
    """``now`` with the stored line in the place of each that is equal to it up to ``sign``.

    Such as what a model that is half trained has written: another machine's writes other words.
    """
    known = iter(line for line in stored.splitlines(keepends=True) if sign in line)

    def choose(line: str) -> str:
        before = next(known, "") if sign in line else ""
        return before if before.partition(sign)[0] == line.partition(sign)[0] and before else line

    return "".join(choose(line) for line in now.splitlines(keepends=True))


def texts(outputs: Sequence[NotebookNode]) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Every text of a cell's outputs: of which kind it is, and where it stands."""
    for output in outputs:
        if output.output_type == "stream":
            yield output.name, output, "text"
        data = output.get("data", {})
        yield from ((kind, data, kind) for kind in data if isinstance(data[kind], str))


def compare_within_a_factor(cell: IPyNbCell) -> None:
    """Let nbval compare a cell's outputs after the numbers that agree are made equal.

    Plots are compared here, and for one that differs nbval shows what is another in it.
    """
    compare = cell.compare_outputs
    says = ("measured", "within", "differs_after")
    measured, within, sign = (cell.cell.metadata.get(name) for name in says)

    def compare_outputs(now: list[NotebookNode], stored: list[NotebookNode], **options) -> bool:
        now, stored = copy.deepcopy((now, stored))
        known = defaultdict(list)
        for kind, where, key in texts(stored):
            known[kind].append((where, key))
        for kind, where, key in texts(now):  # the first of a kind belongs to the first
            if known[kind]:
                there, _ = known[kind].pop(0)
                was = there[key]
                if is_plot(was) and is_plot(where[key]):
                    told = changes(was, where[key], measured=bool(measured))
                    there[key], where[key] = "the stored plot", "\n".join(told) or "the stored plot"
                elif measured:
                    where[key] = with_stored_numbers(where[key], was, within)
                if sign:
                    where[key] = with_stored_endings(where[key], was, sign)
        return compare(now, stored, **options)

    cell.compare_outputs = compare_outputs
