"""Chapter 13: the checks of its turns and exercises, with the mistakes that people make."""

import math
from functools import partial

import torch
from torch.nn.functional import cross_entropy

from transformer_book.turns import drawn
from transformer_book.your_turn import Question, YourTurn


def _count(T, S, d):
    return 2 * T * d * d + 2 * S * d * d + 2 * T * S * d


check_count = YourTurn(
    "Your turn 13.1",
    _count,
    [(2, 3, 4), (5, 7, 8), (30, 20, 64)],
    mistakes={
        "two of the four projections are of the S words": lambda T, S, d: (
            4 * T * d * d + 2 * T * S * d
        ),
        "W_o is missing": lambda T, S, d: T * d * d + 2 * S * d * d + 2 * T * S * d,
        "the weights are multiplied by the values, too": lambda T, S, d: (
            2 * (T + S) * d * d + T * S * d
        ),
        "the projections are missing": lambda T, S, d: 2 * T * S * d,
        "count multiplications, without the additions": lambda T, S, d: 2 * _count(T, S, d),
    },
)


def _one_pass(scores, values, fix_sum=1, fix_out=1):
    m, total, out = -math.inf, 0.0, torch.zeros(values.size(1))
    for s, v in zip(scores.tolist(), values, strict=True):
        new_m = max(m, s)
        c, p = math.exp(m - new_m), math.exp(s - new_m)
        total, out = total * c**fix_sum + p, out * c**fix_out + p * v
        m = new_m
    return out / total


def _scores_and_values(n, factor):
    scores, values = drawn(0, (n,), (n, 4))
    return factor * scores, values


check_online = YourTurn(
    "Your turn 13.2",
    _one_pass,
    [
        (torch.tensor([1.0, 3.0]), torch.tensor([[1.0, 0.0, 2.0], [0.0, 1.0, 4.0]])),
        _scores_and_values(5, 2),
        _scores_and_values(9, 2000),
    ],
    mistakes={
        "correct the sum, too, when the maximum grows": partial(_one_pass, fix_sum=0),
        "correct the output, too": partial(_one_pass, fix_out=0),
        "correct sum and output when the maximum grows": partial(_one_pass, fix_sum=0, fix_out=0),
        "divide by the sum at the end": lambda s, v: (s - s.max()).exp() @ v,
    },
    most_numbers=lambda s, v: max(len(s) - 1, len(v[0])),  # not all of the weights
)

check_13_1 = Question(
    "Exercise 13.1",
    3072,
    mistakes={
        1024: "the feed-forward network multiplies, too: 8 d² a word",
        6144: "the scores and the average: 2 n² d together",
    },
)
check_13_2 = Question(
    "Exercise 13.2",
    4.0,
    mistakes={
        1.0: "four heads use each number",
        2.0: "two operations each: multiply and add",
    },
)
_CORNER = 989e12 / 3.35e12
check_13_3 = Question(
    "Exercise 13.3",
    _CORNER,
    mistakes={
        _CORNER / 2: "two operations, but two bytes as well",
        _CORNER * 2: "a multiplication and an addition are two operations",
    },
    within=0.005,
)
check_13_4 = Question(
    "Exercise 13.4",
    63,
    mistakes={
        70: "solve 7 / (m + 7) ≤ 0.1",
        73: "p - 1 = 7 is above, and below with m",
    },
)


def _mean_of_means(h, W, labels, size):
    parts = zip(h.split(size), labels.split(size), strict=True)
    return torch.stack([cross_entropy(a @ W, b) for a, b in parts]).mean()


def _long_losses():
    g = torch.Generator().manual_seed(1)
    for n, d, n_words, size in ((3, 2, 4, 2), (7, 3, 5, 3), (50, 4, 20, 16)):
        h, W = torch.randn(n, d, generator=g), torch.randn(d, n_words, generator=g)
        yield h, W, torch.randint(n_words, (n,), generator=g), size


check_13_5 = YourTurn(
    "Exercise 13.5",
    lambda h, W, labels, size: cross_entropy(h @ W, labels),
    list(_long_losses()),
    mistakes={
        "the last piece is smaller: add up sums, divide once": _mean_of_means,
        "divide by the number of rows": lambda h, W, labels, size: cross_entropy(
            h @ W, labels, reduction="sum"
        ),
    },
    most_numbers=lambda h, W, labels, size: max(size * W.size(1), h.numel(), W.numel()),
)
