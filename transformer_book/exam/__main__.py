"""``python -m transformer_book.exam mine.py``: says of each part of the file whether it is right.

The file is run as Python code, in a process of its own with a time limit.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from transformer_book.exam.parts import PARTS
from transformer_book.exam.runner import PATIENCE, examine, parts_named


def main(arguments: Sequence[str] | None = None) -> int:
    """0 if every part is right, 1 if one is wrong or not there, 2 for what cannot be examined."""
    parser = argparse.ArgumentParser(
        prog="python -m transformer_book.exam", description=__doc__.partition(": ")[2]
    )
    parser.add_argument("file", type=Path, metavar="mine.py", help="what you have written")
    parser.add_argument(
        "--only",
        default="",
        metavar="NAME",
        help="the parts whose names begin so, such as Transformer",
    )
    parser.add_argument(
        "--no-training", action="store_true", help="leave out the last part, which trains"
    )
    parser.add_argument(
        "--patience", type=float, default=PATIENCE, metavar="S",
        help=f"seconds that a part may take; default: {PATIENCE:g}",
    )  # fmt: skip
    options = parser.parse_args(arguments)
    try:
        names = parts_named(options.only)
    except ValueError as error:
        parser.error(f"--{error}")
    if options.patience <= 0:
        parser.error(f"--patience must be above 0, got {options.patience:g}")
    if not options.file.is_file():
        parser.error(f"{options.file}: there is no such file")
    if options.no_training:
        names = [name for name in names if not PARTS[name].trains]
    results = examine(options.file, names, patience=options.patience)
    return 2 if not results else int(any(result.mark != "✓" for result in results))


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
