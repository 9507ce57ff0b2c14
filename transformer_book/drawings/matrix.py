"""Where a matrix's cells stand, and how full each is coloured."""

from dataclasses import dataclass, field

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


@dataclass
class Matrix:
    """Numbers with their place; the row or column that is told about stands out."""

    numbers: list[list[Number | None]]
    place: Place
    follow: int | None
    follow_column: int | None
    digits: int | None
    top: Number
    lit: bool
    faint: bool = field(init=False)  # all that is not told about

    def __post_init__(self):
        held = [rounded(v, self._places) for row in self.numbers for v in row if v is not None]
        self.top = self.top or max([1e-9, *map(abs, held)])
        self.faint = not self.lit or self.follow is not None or self.follow_column is not None

    @property
    def _places(self) -> int:
        return 2 if self.digits is None else self.digits

    def is_told(self, i: int, j: int) -> bool:
        return i == self.follow or j == self.follow_column

    def opacity(self, i: int, j: int) -> float:
        low, high = (0.06, 0.28) if self.faint else (0.1, 0.5)
        if self.is_told(i, j):
            low, high = 0.12, 0.72
        value = self.numbers[i][j]
        full = 0.0 if value is None else abs(rounded(value, self._places)) / self.top
        return low + (high - low) * min(1.0, full)


def rounded(value: Number, digits: int) -> float:
    """Raises ValueError where the last bits of ``value`` decide, for machines differ in them."""
    last = abs(value) * 10**digits
    if abs(last % 1 - 0.5) < TIE:
        raise ValueError(f"numbers must round one way at {digits} digits, got {value}")
    return round(value, digits) + 0.0  # no -0


def shown(value: Number, digits: int) -> str:
    """A number as drawings write it, with a true minus."""
    return f"{rounded(value, digits):.{digits}f}".replace("-", "−")
