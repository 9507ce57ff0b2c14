"""Chapter 17, its last two sections: the checks of their exercises, and what people get wrong."""

from functools import partial
from math import comb

import torch

from transformer_book.your_turn import YourTurn


def _vote(p, k, tie=0.5, least=0):
    def chance(n):
        return comb(k, n) * p**n * (1 - p) ** (k - n)

    more = sum(chance(n) for n in range(least or k // 2 + 1, k + 1))
    return more if k % 2 or least else more + tie * chance(k // 2)


check_176 = YourTurn(
    "Exercise 17.6",
    _vote,
    [(0.6, 3), (0.6, 1), (0.6, 2), (0.25, 5), (0.59, 32), (0.45, 101)],
    mistakes={
        "with an even k there are ties, and a half of them is right": partial(_vote, tie=0.0),
        "a tie is no majority: only a half of them is right": partial(_vote, tie=1.0),
        "this is the chance that one of them is right": partial(_vote, least=1),
        "there are several orders in which n of k are right": lambda p, k: sum(
            p**n * (1 - p) ** (k - n) for n in range(k // 2 + 1, k + 1)
        ),
    },
)


def _gradient(z, v, tau, factor=1.0, rows=True, teacher=True):
    other = v / tau if teacher else v
    difference = (z / tau).softmax(dim=-1) - other.softmax(dim=-1)
    return factor * tau * difference / (len(z) if rows else 1)


_g = torch.Generator().manual_seed(0)
_pairs = [
    (torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 2.0]]), 2.0),
    *((3 * torch.randn(n, 5, generator=_g), 3 * torch.randn(n, 5, generator=_g), tau)
      for n, tau in ((2, 4.0), (3, 0.5), (4, 1.0))),
]  # fmt: skip
check_177 = YourTurn(
    "Exercise 17.7",
    _gradient,
    _pairs,
    mistakes={
        "the loss is a mean over the rows": partial(_gradient, rows=False),
        "it goes down where the pupil says too much: pupil less teacher": partial(
            _gradient, factor=-1.0
        ),
        "the teacher's logits are divided by tau, too": partial(_gradient, teacher=False),
        "of tau squared one tau is left: z / tau passes on a tau-th": lambda z, v, tau: (
            tau * _gradient(z, v, tau)
        ),
    },
)
