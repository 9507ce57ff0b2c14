"""A table of what a cell has found: HTML on a page, lines in a terminal."""

from collections.abc import Iterable, Sequence
from html import escape

from IPython.display import display

NEVER_PARTED = "\u2060–\u2060"  # a range stays on one line of a narrow screen


def table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Display ``rows`` below ``headings``; numbers are given as they are to be read.

    Raises ValueError for a row of another length than the headings.
    """
    lines = [[str(value) for value in row] for row in rows]
    for line in lines:
        if len(line) != len(headings):
            raise ValueError(f"rows must have {len(headings)} values each, got {line}")
    plain = "\n".join("  ".join(line) for line in (headings, *lines))
    parts = [_row("th", headings), *(_row("td", line) for line in lines)]
    html = "<table>\n" + "\n".join(parts) + "\n</table>"
    display({"text/html": html, "text/plain": plain}, raw=True)


def _row(kind: str, texts: Sequence[str]) -> str:
    """Markdown's own tables are not drawn on the site; what has no text heads nothing."""
    cells = [(kind if text else "td", escape(text).replace("–", NEVER_PARTED)) for text in texts]
    return f"<tr>{''.join(f'<{tag}>{text}</{tag}>' for tag, text in cells)}</tr>"
