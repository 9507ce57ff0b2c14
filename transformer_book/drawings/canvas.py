"""A drawing: 350 units wide, which a phone shows as pixels and a wide screen half again as large.

Calculations run down the page, stacks of layers grow upwards, time goes to the right, a token is a
row. A drawing's text is 12 units or more, which is 9 pt on a phone 390 px wide.
"""

import math
from collections.abc import Sequence
from html import escape
from itertools import product

from torch import Tensor

from transformer_book.drawings.colours import FAINT, INK, PAPER, QUIET, ROLES, Role, at_night
from transformer_book.drawings.matrix import Place, shares_of, shown
from transformer_book.drawings.svg import (
    Number,
    Point,
    arrow_head,
    element,
    line_of_text,
    number,
    rounded_path,
)

WIDTH, ENLARGED, SMALLEST = 350, 1.5, 12
WIDE = 525  # px: WIDTH, enlarged
SANS = "Helvetica Neue,Arial,Liberation Sans,sans-serif"  # of the same widths everywhere


class Drawing:
    """Put things on it and leave it as a cell's last line; ``alt`` is for those who hear it.

    Lengths are units, x to the right and y down. Raises ValueError for a ``height`` that is not
    positive and for an ``alt`` too short to say what is to be seen.
    """

    def __init__(self, height: Number, alt: str):
        if not height > 0:
            raise ValueError(f"height must be positive, got {height}")
        if len(alt) < 40:
            raise ValueError(f"alt must say what is to be seen, got {alt!r}")
        self.height, self.alt = height, alt
        self.parts: list[str] = []

    def text(
        self, x: Number, y: Number, words: str, *, size: Number = SMALLEST, anchor: str = "middle",
        bold: bool = False, quiet: bool = False, role: str | None = None,
    ) -> None:  # fmt: skip
        """Lines of words around the height ``y``; what stands between dollars is a formula.

        Raises ValueError for a ``size`` below 12, which a phone would show too small to read.
        """
        if size < SMALLEST:
            raise ValueError(f"size must be at least {SMALLEST}, got {size}")
        fill = role_named(role).line if role else QUIET if quiet else None
        style = {"font_size": None if size == SMALLEST else size, "fill": fill}
        style |= {"font_weight": "700" if bold else None}
        style |= {"text_anchor": None if anchor == "middle" else anchor}
        lines = words.split("\n")
        for i, line in enumerate(lines):
            down = (i - (len(lines) - 1) / 2) * 1.35 + 0.35
            if line:
                place = {"x": x, "y": y + down * size}
                self.parts.append(element("text", line_of_text(line), **place, **style))

    def box(
        self, x: Number, y: Number, w: Number, h: Number, words: str = "", role: str = "plain", *,
        strength: Number = 0.22, lit: bool = True, dashed: bool = False, bold: bool = False,
        radius: Number = 5,
    ) -> Place:  # fmt: skip
        """A rounded box with words; grey if not ``lit``; of ``strength`` 0 one sees through it."""
        paint = role_named(role) if lit else Role(PAPER, FAINT, "", "")
        where = {"x": x, "y": y, "width": w, "height": h, "rx": min(radius, h / 3)}
        if strength:
            self._add("rect", fill=PAPER, **where)
        style = {"fill": paint.surface, "fill_opacity": strength, "stroke": paint.line}
        dash = "4 4" if dashed else None
        self._add("rect", **where, **style, stroke_width=1.3, stroke_dasharray=dash)
        self.text(x + w / 2, y + h / 2, words, quiet=not lit, bold=bold)
        return Place(x, y, w, h)

    def circle(self, x: Number, y: Number, words: str, role: str = "plain", *, radius: Number = 11):
        """An operation on what flows through it: +, ×, σ."""
        paint = role_named(role)
        for fill, opacity in ((PAPER, None), (paint.surface, 0.3)):
            style = {"fill": fill, "fill_opacity": opacity, "stroke": paint.line}
            self._add("circle", cx=x, cy=y, r=radius, **style, stroke_width=1.3)
        self.text(x, y, words, size=14)
        return Place(x - radius, y - radius, 2 * radius, 2 * radius)

    def cells(
        self, x: Number, y: Number, numbers, role: str, name: str = "", *, size: Point = (20, 18),
        rows: Sequence[str] = (), columns: Sequence[str] = (), follow: int | None = None,
        follow_column: int | None = None, digits: int | None = 0, top: Number = 0, mask=None,
        lit: bool = True,
    ) -> Place:  # fmt: skip
        """A matrix: the larger a number, the fuller its cell is coloured; ``top`` is the largest.

        ``size`` is one cell's. ``follow`` is the row that is told about, or ``follow_column`` the
        column: the others are faint then, as is a matrix that is not ``lit``. ``digits`` None
        leaves the numbers out; None among them is an empty cell; where ``mask`` is False a cell
        is struck out. Raises ValueError for a number that might be rounded either way.
        """
        numbers = numbers.tolist() if isinstance(numbers, Tensor) else numbers
        place, shares = Place.of_cells(x, y, numbers, size), shares_of(numbers, digits, top)
        others_faint = not lit or follow is not None or follow_column is not None
        for i, j in product(range(place.n_rows), range(place.n_columns)):
            told, value, cell = i == follow or j == follow_column, numbers[i][j], place.cell(i, j)
            if mask is not None and not mask[i][j]:
                self._rect_in(cell, fill=FAINT, fill_opacity=0.4)
                start, end = (cell.x + 5, cell.y + cell.h - 4), (cell.x + cell.w - 5, cell.y + 4)
                self.arrow(start, end, head=False)
            elif value is None:
                self._rect_in(cell, fill="none", stroke=FAINT, stroke_dasharray="2 3")
            else:
                faint = others_faint and not told
                plain, paint = role == "plain", role_named(role)
                low, high = (0.12, 0.72) if told else (0.06, 0.28) if faint else (0.1, 0.5)
                opacity = None if plain else low + (high - low) * shares[i][j]
                stroke = FAINT if plain else None
                self._rect_in(cell, fill=paint.surface, stroke=stroke, fill_opacity=opacity)
                words = "" if digits is None else shown(value, digits)
                middle = cell.x + cell.w / 2, cell.y + cell.h / 2
                self.text(*middle, words, bold=told, quiet=faint)
        for i, word in enumerate(rows):
            bold, quiet = i == follow, i != follow and others_faint
            self.text(x - 6, y + (i + 0.5) * size[1], word, anchor="end", bold=bold, quiet=quiet)
        for j, word in enumerate(columns):
            told = j == follow_column
            self.text(x + (j + 0.5) * size[0], y - 8, word, bold=told, quiet=not told)
        self.text(x + place.w / 2, y - (26 if columns else 12), name, size=15)
        if follow is not None:
            self.ring(place.row(follow))
        elif follow_column is not None:
            self.ring(place.column(follow_column))
        return place

    def _rect_in(self, cell: Place, **style: str | Number | None) -> None:
        where = {"x": cell.x + 1, "y": cell.y + 1, "width": cell.w - 2, "height": cell.h - 2}
        self._add("rect", **where, rx=2.5, **style)

    def ring(self, place: Place) -> None:
        """An outline around what is talked about."""
        where = {"x": place.x - 1, "y": place.y - 1, "width": place.w + 2, "height": place.h + 2}
        self._add("rect", **where, rx=4, fill="none", stroke=INK, stroke_width=1.6)

    def arrow(
        self, *points: Point, role: str = "plain", curve: str = "", head: bool = True,
        dashed: bool = False, width: Number = 1.5, lit: bool = True,
    ) -> None:  # fmt: skip
        """A line with round corners, or a curve that leaves upright, "|", or level, "-"."""
        (x, y), (u, v), before = points[0], points[-1], points[-2]
        path = rounded_path(points)
        if curve:
            after, before = ((x, (y + v) / 2), (u, (y + v) / 2))
            if curve == "-":
                after, before = ((x + u) / 2, y), ((x + u) / 2, v)
            path = f"M{number(x, y)}C{number(*after, *before, u, v)}"
        line = role_named(role).line if lit else FAINT
        style = {"fill": "none", "stroke": line, "stroke_width": width}
        self._add("path", d=path, **style, stroke_dasharray="1 4" if dashed else None)
        if head:
            self._add("path", d=arrow_head((u, v), before, 4 + 1.3 * width), **style)

    def shape(self, *points: Point, role: str = "word", strength: Number = 0.12) -> None:
        """A filled polygon: a funnel, or a band behind other things."""
        path = "M" + "L".join(number(*point) for point in points) + "Z"
        self._add("path", d=path, fill=role_named(role).surface, fill_opacity=strength)

    def brace(self, place: Place, words: str, *, gap: Number = 3) -> None:
        """A bracket under a place, and words."""
        y = place.y + place.h + gap
        path = f"M{number(place.x + 1, y)}v4h{number(place.w - 2)}v-4"
        self._add("path", d=path, fill="none", stroke=QUIET)
        self.text(place.x + place.w / 2, y + 14, words, quiet=True)

    def dial(self, x: Number, y: Number, radius: Number, *hands: tuple[Number, str]) -> None:
        """A clock; a hand is an angle, clockwise from the top, and a role. Two enclose an angle."""
        self._add("circle", cx=x, cy=y, r=radius, fill=PAPER, stroke=FAINT)
        tips = [(math.sin(angle), -math.cos(angle)) for angle, _ in hands]
        if len(hands) == 2:
            one, other = (number(x + radius * a / 2, y + radius * b / 2) for a, b in tips)
            way = int(math.sin(hands[1][0] - hands[0][0]) > 0)
            arc = f"A{number(radius / 2, radius / 2)} 0 0 {way} {other}"
            sector = f"M{number(x, y)}L{one}{arc}Z"
            self._add("path", d=sector, fill=ROLES["word"].surface, fill_opacity=0.3)
        for (a, b), (_, role) in zip(tips, hands, strict=True):
            self.arrow((x, y), (x + (radius - 1) * a, y + (radius - 1) * b), role=role, width=2)

    def _add(self, tag: str, /, **attributes: str | Number | None) -> None:
        self.parts.append(element(tag, **attributes))

    def __repr__(self) -> str:
        return self.alt

    def _repr_svg_(self) -> str:
        return "\n".join([*_opening(self.height, self.alt), *self.parts, "</svg>"])


def role_named(name: str) -> Role:
    """Raises ValueError for a role that the palette does not have."""
    if name not in ROLES:
        raise ValueError(f"role must be one of {', '.join(ROLES)}, got {name!r}")
    return ROLES[name]


def _opening(height: Number, alt: str) -> list[str]:
    """The element, the colours of the night, the paper. Day stands in the attributes, for viewers
    that drop style sheets."""
    rules = [".drawing{fill:#f2f2f2}"]
    for (light, dark), name in product(at_night().items(), ("fill", "stroke")):
        rules.append(f'.drawing [{name}="{light}"]{{{name}:{dark}}}')
    size = f"width='{number(ENLARGED * WIDTH)}' height='{number(ENLARGED * height)}'"
    return [
        "<svg xmlns='http://www.w3.org/2000/svg' class='drawing'"
        f" viewBox='0 0 {WIDTH} {number(height)}' {size} style='max-width:100%;height:auto'"
        f" role='img' aria-label='{escape(alt)}' font-family='{SANS}'"
        f" font-size='{SMALLEST}' text-anchor='middle' fill='{INK}'"
        " stroke-linecap='round' stroke-linejoin='round'>",
        f"<style>@media(prefers-color-scheme:dark){{{''.join(rules)}}}</style>",
        f"<rect width='{WIDTH}' height='{number(height)}' fill='{PAPER}'/>",
    ]
