"""The checks of chapter 6's turns and exercises: what is right, and the mistakes people make."""

import torch

from transformer.positional import sinusoidal_encoding
from transformer_book.turns import drawn
from transformer_book.your_turn import Question, YourTurn


def _clocks(n, d, power=2, first=0):
    places = torch.arange(first, first + n)[:, None]
    angles = places / 10_000 ** (power * torch.arange(d // 2) / d)  # (n, d / 2)
    return angles.sin(), angles.cos()


def _woven(sines, cosines):  # a sine, a cosine, a sine, …
    return torch.stack([sines, cosines], dim=-1).flatten(1)


check_sinusoids = YourTurn(
    "Your turn 6.1",
    sinusoidal_encoding,
    [(2, 4), (5, 8), (30, 6), (100, 64)],
    mistakes={
        "the second number of each pair is a cosine": lambda n, d: _woven(*2 * _clocks(n, d)[:1]),
        "the cosine comes second": lambda n, d: _woven(*_clocks(n, d)[::-1]),
        "the first position is 0": lambda n, d: _woven(*_clocks(n, d, first=1)),
        "i counts pairs: in columns 2i and 2i+1 it is the same i": lambda n, d: _woven(
            *_clocks(n, d, power=4)
        ),
        "sine and cosine take turns; yours has all sines first": lambda n, d: torch.cat(
            _clocks(n, d), dim=1
        ),
    },
)


def _by_halves(x, power=2.0, sense=1):  # pairs column 0 with d / 2, 1 with d / 2 + 1, …
    T, d = x.shape
    angle = torch.arange(T)[:, None] / 10_000 ** (power * torch.arange(d // 2) / d)
    (a, b), c, s = x.chunk(2, dim=1), angle.cos(), sense * angle.sin()
    return torch.cat([a * c - b * s, b * c + a * s], dim=1)


def _paired(x, **options):  # the same for neighbouring columns
    order = [*range(0, x.size(1), 2), *range(1, x.size(1), 2)]
    return _by_halves(x[:, order], **options)[:, torch.tensor(order).argsort()]


check_rotary = YourTurn(
    "Your turn 6.2",
    _paired,
    [drawn(0, shape) for shape in ((2, 4), (3, 6), (7, 10), (64, 4))],
    mistakes={
        "yours turns the other way round": lambda x: _paired(x, sense=-1),
        "each pair has its own speed; yours all have the first's": lambda x: _paired(x, power=0.0),
        "pairs are neighbours: columns 0 and 1, 2 and 3": _by_halves,
        "adding is not turning": lambda x: x + sinusoidal_encoding(*x.shape),
    },
)

check_6_1 = Question(
    "Exercise 6.1", 77, mistakes={76: "clocks are counted from 0", 154: "a clock is two numbers"}
)


def _back_by(table, k):
    angle = k / 10_000 ** (torch.arange(0, table.size(1), 2) / table.size(1))
    s, c = table[:, 0::2], table[:, 1::2]
    return _woven(angle.cos() * s - angle.sin() * c, angle.sin() * s + angle.cos() * c)


check_6_2 = YourTurn(
    "Exercise 6.2",
    _back_by,
    [(sinusoidal_encoding(n, d), k) for n, d, k in ((2, 4, 1), (4, 6, 3), (20, 8, 5))],
    mistakes={
        "yours looks k places ahead": lambda table, k: _back_by(table, -k),
        "the first rows of `table` have no row before them": lambda table, k: table.roll(k, 0),
    },
)


def _distances(T, slopes):
    place = torch.arange(T)
    return -slopes[:, None, None] * (place[:, None] - place)


check_6_3 = YourTurn(
    "Exercise 6.3",
    _distances,
    [(2, torch.tensor([0.5])), (4, torch.tensor([0.5, 0.25, 0.125]))],
    mistakes={"yours rewards distance: the sign": lambda T, slopes: -_distances(T, slopes)},
)
check_6_4 = Question("Exercise 6.4", "sinusoidal")
check_6_5 = Question("Exercise 6.5", "positions")
check_6_6 = Question("Exercise 6.6", 12, mistakes={3: "positions 12 places apart differ by 3 now"})
