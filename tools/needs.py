"""What a chapter needs that a machine may not have: the data of chapter 11."""

import os
from functools import cache
from pathlib import Path


def lacking(chapter: Path) -> str | None:
    """Why a chapter cannot run here, in a line; fetches what it needs into the user's cache.

    A folder that the user has named is taken as it is: if it is wrong, the chapter fails.
    """
    if not chapter.match("11_*.ipynb") or os.environ.get("MULTI30K"):
        return None
    return _no_data()


@cache  # a process asks the server once
def _no_data() -> str | None:
    from transformer.data.multi30k import DataMissing, multi30k  # for chapter 11 alone

    try:
        multi30k(timeout=10.0, progress=False)
    except DataMissing as error:
        return str(error)
    return None
