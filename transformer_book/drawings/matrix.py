"""Where a matrix's cells stand, and how full each is coloured."""

from dataclasses import dataclass

from transformer_book.drawings.svg import Number, Point

TIE = 1e-4  # of the last place shown: machines differ by less


@dataclass(frozen=True)
class Place:
    """A rectangle of a drawing; a matrix has rows and columns, which are places too."""

    x: Number
    y: Number
    w: Number
    h: Number
    n_rows: int = 1
    n_columns: int = 1

    @classmethod
    def of_cells(cls, x: Number, y: Number, numbers, size: Point) -> "Place":
        n, m = len(numbers), len(numbers[0])
        return cls(x, y, m * size[0], n * size[1], n, m)

    def row(self, i: int) -> "Place":
        h = self.h / self.n_rows
        return Place(self.x, self.y + i * h, self.w, h, 1, self.n_columns)

    def column(self, j: int) -> "Place":
        w = self.w / self.n_columns
        return Place(self.x + j * w, self.y, w, self.h, self.n_rows, 1)

    def cell(self, i: int, j: int) -> "Place":
        return self.row(i).column(j)

    def side(self, name: str, gap: Number = 4) -> Point:
        """The middle of its "left", "right", "top" or "bottom", ``gap`` units outside."""
        x, y = self.x + self.w / 2, self.y + self.h / 2
        ends = {
            "left": (self.x - gap, y),
            "right": (self.x + self.w + gap, y),
            "top": (x, self.y - gap),
            "bottom": (x, self.y + self.h + gap),
        }
        if name not in ends:
            raise ValueError(f"name must be one of {', '.join(ends)}, got {name!r}")
        return ends[name]


def shares_of(
    numbers: list[list[Number | None]], digits: int | None, top: Number
) -> list[list[float]]:
    """How large each number is beside ``top``, or beside the largest: 0 to 1, and 0 for None."""
    places = 2 if digits is None else digits
    held = [[abs(rounded(value or 0, places)) for value in row] for row in numbers]
    top = top or max(1e-9, *map(max, held))
    return [[min(1.0, value / top) for value in row] for row in held]


def rounded(value: Number, digits: int) -> float:
    """Raises ValueError where the last bits of ``value`` decide, for machines differ in them."""
    last = abs(value) * 10**digits
    if abs(last % 1 - 0.5) < TIE:
        raise ValueError(f"numbers must round one way at {digits} digits, got {value}")
    return round(value, digits) + 0.0  # no -0


def shown(value: Number, digits: int) -> str:
    """A number as drawings write it, with a true minus."""
    return f"{rounded(value, digits):.{digits}f}".replace("-", "−")
