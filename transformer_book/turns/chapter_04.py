"""The checks of chapter 4's turns and exercises: what is right, and known mistakes."""

import math

import torch
from torch import nn

from transformer.attention import attention, attention_weights
from transformer.masks import causal_mask, padding_mask
from transformer_book.turns import drawn
from transformer_book.your_turn import Question, YourTurn


def _three(T, S, d_k, d_v):
    """Queries, keys and values, and a mask by which each query loses one key."""
    mask = torch.arange(S) != torch.arange(T)[:, None] % S
    return *drawn(T, (T, d_k), (S, d_k), (S, d_v)), mask


def _far_below_zero(q, k, v, mask):
    return -1000 * q.abs(), k.abs(), v, mask


def _zero_scores(q, k, v, mask):
    return (q @ k.mT / math.sqrt(q.size(-1)) * mask).softmax(dim=-1) @ v


check_masked = YourTurn(
    "Your turn 4.1",
    attention,
    [
        *(_three(*sizes) for sizes in ((2, 3, 4, 1), (3, 4, 2, 6), (6, 7, 9, 8))),
        _far_below_zero(*_three(5, 4, 3, 2)),
    ],
    mistakes={
        "after the softmax is too late": lambda q, k, v, m: attention_weights(q, k) * m @ v,
        "a score of 0 is a score like any other: exp(0) = 1": _zero_scores,
        "-inf belongs where the mask is False": lambda q, k, v, m: attention(q, k, v, ~m),
        "the scores are not divided by √d_k": lambda q, *kvm: attention(q * len(q[0]) ** 0.5, *kvm),
    },
)


def _parts(tokens):
    return padding_mask(tokens)[:, 0], causal_mask(tokens.size(1))


def _both(tokens):
    return torch.logical_and(*_parts(tokens))


_ASKS = "padding must not be looked at; in yours it must not ask: keys come last"
check_masks = YourTurn(
    "Your turn 4.2",
    _both,
    [
        (torch.tensor(ids),)
        for ids in ([[7, 2]], [[5, 0, 0]], [[1, 7, 9, 2], [1, 8, 0, 0]], [[3, 0, 0, 0, 0]])
    ],
    mistakes={
        "one of the two is enough in yours": lambda t: _parts(t)[0] | _parts(t)[1],
        "yours looks at the future, not at the past": lambda t: _parts(t)[0] & _parts(t)[1].T,
        _ASKS: lambda t: _parts(t)[0].mT & _parts(t)[1],
        "a position may attend to itself": lambda t: _parts(t)[0] & _parts(t)[1].tril(-1),
        "off by one: row t sees the next word": lambda t: _parts(t)[0] & ~_parts(t)[1].tril(-2).T,
        "True means may attend; yours is the opposite": lambda t: ~_both(t),
    },
)

check_4_1 = Question(
    "Exercise 4.1",
    32,
    mistakes={8: "right for components of variance 1", 128: "take the root of 16, too"},
)
check_4_2 = Question("Exercise 4.2", 16, mistakes={256: "that is d_k; what is the divisor?"})


def _three_masks(sentence, n_prefix, width):
    T = len(sentence)
    window = causal_mask(T).triu(1 - width)
    prefix = causal_mask(T) | (torch.arange(T) < n_prefix)
    return window, prefix, causal_mask(T) & (sentence[:, None] == sentence)


check_4_3 = YourTurn(
    "Exercise 4.3",
    _three_masks,
    [(torch.tensor([0, 0, 1]), 2, 2), (torch.tensor([0, 0, 0, 1, 1, 2]), 3, 4)],
)
check_4_4 = Question("Exercise 4.4", "masked_fill")


def _cosines(q, k, g):
    return g * nn.functional.cosine_similarity(q[:, None], k, dim=-1)


_q, _k, *_ = _three(2, 3, 4, 5)
check_4_5 = YourTurn(
    "Exercise 4.5",
    _cosines,
    [(_q, _k, 2.0), (9 * _q, _k, 5.0)],
    mistakes={
        "a dot product is not bounded: first make each vector of length 1": (
            lambda q, k, g: g * q @ k.mT
        )
    },
)


def _relu_over_n(e, mask):
    return e.masked_fill(~mask, 0).relu() / mask.sum(dim=-1, keepdim=True).clamp(min=1)


_e = torch.tensor([[1.0, -2.0, 3.0], [2.0, 1.0, -1.0], [4.0, 5.0, 6.0]])
_hidden = torch.tensor([[True, True, True], [False, False, False], [True, False, False]])
check_4_6 = YourTurn(
    "Exercise 4.6",
    _relu_over_n,
    [(_e[:1], _e[:1] < 2), (_e, _hidden)],
    mistakes={"hidden keys count in your n": lambda e, m: e.relu() * m / e.size(-1)},
)
