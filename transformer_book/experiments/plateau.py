"""Whether a measure still moves when training ends: the rule that a claim about the end needs."""

import math
from collections.abc import Mapping, Sequence
from statistics import mean, stdev
from typing import Literal

SHARE = 0.05  # of the range that the measure goes through: less than that is flat
LAST = 2 / 3  # the last third of the steps is what has to be flat

Plateau = Literal["flat", "moving", "unknown"]


def plateau(curves: Sequence[Mapping[int, float | None]]) -> Plateau:
    """Whether the seeds' ``curves``, from a number of steps to a measure, end flat.

    Over the last third of the steps, each seed's measure changes by some amount. The arm is flat
    if the mean of these changes and one standard error of it, together, are less than 5 % of the
    range between the least and the greatest mean of the curve: a plateau that three seeds disagree
    about is none. Getting worse is moving, too.

    "unknown" with fewer than two seeds, where the curves have no point at or before two thirds of
    the steps and another at the end, where that point is the untrained model alone, or where a
    measure is no number.
    """
    steps = sorted(set.intersection(*(set(curve) for curve in curves))) if curves else []
    before = [step for step in steps if 0 < step <= LAST * steps[-1]]
    if len(curves) < 2 or not before:
        return "unknown"
    rows = [[curve[step] for step in steps] for curve in curves]
    if any(x is None or not math.isfinite(x) for row in rows for x in row):
        return "unknown"
    means = [mean(column) for column in zip(*rows, strict=True)]
    at = steps.index(before[-1])
    changes = [row[-1] - row[at] for row in rows]
    doubt = stdev(changes) / math.sqrt(len(changes))
    moved = abs(mean(changes)) + doubt
    return "flat" if moved <= SHARE * (max(means) - min(means)) else "moving"
