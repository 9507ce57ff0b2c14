"""The file that an experiment's runs are stored in: its schema, read and written here alone.

A JSON object of five entries::

    {"schema": 1, "experiment": "recall",
     "arms": {"divided": {"chapter": 4}},                      what is known of an arm
     "made": [{"python": …, "torch": …, "device": …, "date": …, "commit": …}],
     "runs": [
      {"arm": "divided", "sweep": false, "lr": 0.002, "seed": 0, "n_parameters": 34368,
       "n_steps": 2000, "curve": {"0": {"right": 0.13}, …, "2000": {"right": 1.0}},
       "seconds": 3.1, "made": 0}]}                            made: the index above

What is not known is null. A measure is a number, null where it was none: a loss that has grown
beyond all numbers.
"""

import dataclasses
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformer.files import replace_file

STORED = Path(__file__).parent / "stored"
SCHEMA = 1
Made = dict[str, str | int | None]  # where and when; None: not known
Measures = dict[str, float | None]


@dataclass(frozen=True)
class Run:
    """One training: ``curve`` holds for numbers of steps what was measured after so many.

    A run of the ``sweep`` chooses the learning rate and is judged on other data than the rest.
    ``seed`` is None for the mean of several seeds, of which nothing else is kept. ``seconds`` are
    the CPU's, of training alone where the recipe says so.
    """

    arm: str
    sweep: bool
    lr: float
    seed: int | None
    n_parameters: int
    n_steps: int
    curve: dict[int, Measures]
    seconds: float | None
    made: Made

    def measured(self, measure: str, at: int | None = None) -> float:
        """After ``at`` steps, by default the last.

        Raises ValueError for what was not measured then, and for a measure that is no number.
        """
        point = self.curve.get(self.n_steps if at is None else at, {})
        value = point.get(measure)
        if value is None:
            known = ", ".join(name for name, x in point.items() if x is not None)
            steps = ", ".join(map(str, self.curve))
            raise ValueError(
                f"measure must be one of {known or 'none'}, after one of {steps} steps, "
                f"got {measure!r} after {self.n_steps if at is None else at}"
            )
        return value


@dataclass(frozen=True)
class Stored:
    """What a file holds: the facts of each arm, and the runs."""

    arms: dict[str, dict[str, Any]]
    runs: tuple[Run, ...]


def read(path: Path) -> Stored:
    """What is stored; nothing where there is no file.

    Raises ValueError, which names the file, for another schema and for a run that is not whole.
    """
    if not path.exists():
        return Stored({}, ())
    whole = json.loads(path.read_text(encoding="utf-8"))
    if whole.get("schema") != SCHEMA:
        raise ValueError(f"path must be of schema {SCHEMA}, got {whole.get('schema')} in {path}")
    return Stored(whole["arms"], tuple(_run(row, whole["made"], path) for row in whole["runs"]))


def write(path: Path, stored: Stored) -> None:
    """Writes in the place of what was there: a reader meets the old file or the new one.

    Arms stand in the order of ``stored.arms``, and their runs in the order they have.
    """
    made: list[Made] = []
    lines = []
    order = list(stored.arms)
    for run in sorted(stored.runs, key=lambda run: order.index(run.arm)):
        if run.made not in made:
            made.append(run.made)
        row = dataclasses.asdict(run) | {"made": made.index(run.made)}
        row["curve"] = {str(step): _numbers(found) for step, found in run.curve.items()}
        lines.append(" " + json.dumps(row, ensure_ascii=False, allow_nan=False))
    head = {"schema": SCHEMA, "experiment": path.stem, "arms": stored.arms, "made": made}
    entries = [
        f'"{key}": {json.dumps(x, ensure_ascii=False, allow_nan=False)}' for key, x in head.items()
    ]
    entries.append('"runs": [\n' + ",\n".join(lines) + "\n]")
    replace_file(path, "{" + ",\n".join(entries) + "}\n")


def _numbers(measures: Measures) -> Measures:
    """Returns the measures with None for what no JSON can hold."""
    return {k: x if x is not None and math.isfinite(x) else None for k, x in measures.items()}


def _run(row: dict[str, Any], made: Sequence[Made], path: Path) -> Run:
    expected = {field.name for field in dataclasses.fields(Run)}
    if set(row) != expected:
        differ = sorted(expected ^ set(row))
        raise ValueError(f"path must hold whole runs, got one that differs in {differ} in {path}")
    curve = {int(step): measures for step, measures in row["curve"].items()}
    return Run(**{**row, "curve": curve, "made": made[row["made"]]})
