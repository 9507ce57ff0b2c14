"""A notebook's cells by their ids, and running some of them outside of its page."""

import contextlib
import io
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CHAPTERS = Path(__file__).resolve().parents[1] / "chapters"


@dataclass(frozen=True)
class Cell:
    """``source`` in one piece, ``outputs`` as nbformat has them."""

    source: str
    is_code: bool
    outputs: list[dict[str, Any]]

    @property
    def printed(self) -> str:
        """What it has printed, as it is stored."""
        streams = (made for made in self.outputs if made["output_type"] == "stream")
        return "".join("".join(made["text"]) for made in streams)


def chapter_path(number: int) -> Path:
    """The book's chapter of this number. Raises ValueError where there is none."""
    paths = sorted(CHAPTERS.glob(f"{number:02}_*.ipynb"))
    if len(paths) != 1:
        raise ValueError(f"number must be that of a notebook in {CHAPTERS}, got {number}")
    return paths[0]


def cells_of(path: Path) -> dict[str, Cell]:
    """All cells of the notebook ``path``, in its order."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return {
        cell["id"]: Cell(
            "".join(cell["source"]), cell["cell_type"] == "code", cell.get("outputs", [])
        )
        for cell in cells
    }


def run(sources: Iterable[tuple[str, str]], names: dict[str, Any] | None = None) -> dict[str, Any]:
    """Runs Python in one namespace, ``names``, and returns it; what it prints is dropped.

    ``sources`` are pairs: where a piece comes from, as a traceback says it, and the piece.
    """
    names = {} if names is None else names
    for origin, source in sources:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(source, origin, "exec"), names)
    return names


def run_cells(
    path: Path, ids: Iterable[str], names: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Runs cells of the notebook ``path``, in the order of ``ids``, as :func:`run` does."""
    cells = cells_of(path)
    return run(((f"{path.name}, {name}", cells[name].source) for name in ids), names)
