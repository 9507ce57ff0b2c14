"""The checks of chapter 3's turn and exercises: what is right, and what people write."""

import math

import torch
from torch import nn

from transformer.attention import attention, attention_weights
from transformer_book.your_turn import Question, YourTurn


def _sizes(seed, T, S, d_k, d_v):
    """Random queries, keys and values."""
    g = torch.Generator().manual_seed(seed)
    shapes = (T, d_k), (S, d_k), (S, d_v)
    return tuple(2 * torch.randn(n, m, generator=g) for n, m in shapes)


def _with_softmax(factor, dim=-1):
    """Attention with another factor, or over another axis."""
    return lambda q, k, v: (q @ k.T * factor(q.size(-1))).softmax(dim) @ v


check_attend = YourTurn(
    "Your turn 3.1",
    attention,
    [
        _sizes(*each)
        for each in ((1, 2, 3, 4, 1), (2, 3, 2, 5, 1), (3, 3, 5, 4, 2), (4, 4, 7, 9, 5))
    ],
    mistakes={
        "this is what comes without the division by √d_k": _with_softmax(lambda d_k: 1),
        "the scores are multiplied by √d_k": _with_softmax(lambda d_k: d_k**0.5),
        "the softmax runs over the queries; each row must add up to one": _with_softmax(
            lambda d_k: d_k**-0.5, dim=0
        ),
    },
)

_by_hand = attention_weights(torch.tensor([[1.0, 0]]), torch.tensor([[2.0, 0], [0, 2], [0, 0]]))
check_3_1 = Question(
    "Exercise 3.1",
    100 * _by_hand[0, 0].item(),
    mistakes={79: "divide the score by √2 first", 58: "there are three keys, not four"},
)
check_3_2 = Question(
    "Exercise 3.2",
    math.log(10),
    mistakes={10: "the exponential comes after the score", 0.1: "more copies, more weight"},
)
check_3_3 = Question("Exercise 3.3", "key")


def _by_pairs(q, k, v):
    """Linear attention with all T × S pairs."""
    weights = (nn.functional.elu(q) + 1) @ (nn.functional.elu(k) + 1).T
    return weights / weights.sum(dim=-1, keepdim=True) @ v


def _not_all_pairs(q, k, v):
    return max(36, len(q) * len(k) - 1)


check_3_4 = YourTurn(
    "Exercise 3.4",
    _by_pairs,
    [_sizes(1, 1, 2, 3, 1), _sizes(2, 4, 6, 3, 2), _sizes(3, 9, 8, 2, 2)],
    most_numbers=_not_all_pairs,
)
check_3_5 = Question("Exercise 3.5", math.log(3), mistakes={0: "that takes two projections"})
check_3_6 = Question("Exercise 3.6", "yes")
