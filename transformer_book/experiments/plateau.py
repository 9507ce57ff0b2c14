"""Whether a measure still moves when training ends: the rule that a claim about the end needs."""

import math
from collections.abc import Mapping, Sequence
from statistics import mean, stdev
from typing import Literal

SHARE = 0.02  # of the scale: a change of less than that is flat
LAST = 2 / 3  # the last third of the steps is what has to be flat

Plateau = Literal["flat", "moving", "unknown"]


def plateau(curves: Sequence[Mapping[int, float | None]], *, scale: float | None = None) -> Plateau:
    """Whether the seeds' ``curves``, from a number of steps to a measure, end flat.

    Over the last third of the steps, each seed's measure changes by some amount. The arm is flat
    if the mean of these changes and one standard error of it, together, are less than 2 % of the
    ``scale``: a plateau that the seeds disagree about is none. Getting worse is moving, too. The
    scale is 1 for a share and what guessing costs for a loss; without one, it is the range of the
    mean curve.

    "unknown" with fewer than two seeds, where the curves have no trained point at or before two
    thirds of the steps, and where a measure is no number.
    """
    steps = sorted(set.intersection(*(set(curve) for curve in curves))) if curves else []
    before = [step for step in steps if 0 < step <= LAST * steps[-1]]
    if len(curves) < 2 or not before:
        return "unknown"
    numbers = [[x for x in (curve[step] for step in steps) if x is not None] for curve in curves]
    rows = [row for row in numbers if len(row) == len(steps) and all(map(math.isfinite, row))]
    if len(rows) < len(curves):
        return "unknown"
    if scale is None:
        means = [mean(column) for column in zip(*rows, strict=True)]
        scale = max(means) - min(means)
    at = steps.index(before[-1])
    changes = [row[-1] - row[at] for row in rows]
    doubt = stdev(changes) / math.sqrt(len(changes))
    return "flat" if abs(mean(changes)) + doubt <= SHARE * scale else "moving"
