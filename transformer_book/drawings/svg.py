"""SVG as text, the same characters every time: numbers, elements, formulas, paths."""

import math
import re
from collections.abc import Sequence
from html import escape

SERIF = "Times New Roman,Times,Liberation Serif,serif"
SHIFTS = {"": (0.0, 1.0), "_": (0.25, 0.85), "^": (-0.4, 0.85)}  # down, and size; in em
Number = float | int
Point = tuple[Number, Number]


def number(*values: Number) -> str:
    """A number in few characters: one place after the point, two below one, and no minus zero."""
    rounded = [round(value, 2 if abs(value) < 1 else 1) + 0.0 for value in values]
    return " ".join(f"{value:.2f}".rstrip("0").rstrip(".") for value in rounded)


def element(tag: str, content: str = "", /, **attributes: str | Number | None) -> str:
    """``font_size=12`` is written font-size='12'; what is None is left out."""
    given = ((name.replace("_", "-"), v) for name, v in attributes.items() if v is not None)
    written = "".join(f" {n}='{v if isinstance(v, str) else number(v)}'" for n, v in given)
    return f"<{tag}{written}>{content}</{tag}>" if content else f"<{tag}{written}/>"


def line_of_text(words: str) -> str:
    """Words, with formulas between dollars: letters in italics, _ and ^ as in TeX."""
    parts, height = [], 0.0
    for i, part in enumerate(words.split("$")):
        for mark, token in _tokens(part) if i % 2 else [("", part)]:
            down, size = SHIFTS[mark]
            italic = i % 2 == 1 and token.isalpha()
            style = {
                "dy": f"{number((down - height) / size)}em" if down != height else None,
                "font_family": SERIF if i % 2 else None,
                "font_style": "italic" if italic else None,
                "font_size": f"{number(size)}em" if mark else None,
            }
            if not token:
                continue
            plain = all(value is None for value in style.values())
            parts.append(escape(token) if plain else element("tspan", escape(token), **style))
            height = down
    return "".join(parts)


def _tokens(formula: str) -> list[tuple[str, str]]:
    """Each mark, "_" or "^" or none, with what it raises or lowers."""
    found = re.findall(r"([_^]?)(\{[^}]*\}|[^\W\d_]+|.)", formula)
    return [(mark, token.strip("{}")) for mark, token in found]


def rounded_path(points: Sequence[Point], radius: Number = 7) -> str:
    """A line through ``points`` whose corners are round."""
    path = f"M{number(*points[0])}"
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        start, end = (_towards(corner, other, radius) for other in (before, after))
        path += f"L{number(*start)}Q{number(*corner)} {number(*end)}"
    return path + f"L{number(*points[-1])}"


def _towards(start: Point, end: Point, length: Number) -> Point:
    """The point so far from ``start`` towards ``end``, and no further than half of the way."""
    share = min(length / max(math.dist(start, end), 1e-9), 0.5)
    return start[0] + (end[0] - start[0]) * share, start[1] + (end[1] - start[1]) * share


def arrow_head(tip: Point, before: Point, length: Number) -> str:
    """Two strokes that meet at ``tip``, for a line that comes from ``before``."""
    angle = math.atan2(tip[1] - before[1], tip[0] - before[0])
    one, other = (
        (tip[0] - length * math.cos(angle + side), tip[1] - length * math.sin(angle + side))
        for side in (0.5, -0.5)
    )
    return f"M{number(*one)}L{number(*tip)}L{number(*other)}"
