"""Chapter 17: what a server of many readers reaches, by a clock of measured calls."""

import json
from functools import cache
from typing import Any

from transformer_book.experiments import STORED, Cells, chapter

PATH = STORED / "served.json"


def of_the_server() -> Cells:
    """The page's own server: what is measured is what the reader sees."""
    return chapter(17, "imports*", definitions=("server-*",))


@cache
def served() -> dict[str, Any]:
    """What ``python -m transformer_book.experiments.chapter_17.measure`` has stored."""
    stored: dict[str, Any] = json.loads(PATH.read_text(encoding="utf-8"))
    return stored
