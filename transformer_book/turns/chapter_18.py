"""Chapter 18: the checks of its turns and exercises, with the mistakes that people make."""

from functools import partial
from math import comb

import torch
from torch import nn

from transformer_book.turns import drawn
from transformer_book.your_turn import YourTurn


def _advantages(rewards):
    return rewards - rewards.mean(dim=1, keepdim=True)


_groups = [torch.tensor(rows) for rows in ([[1.0, 0.0], [1.0, 1.0]], [[0.0, 0.0, 1.0, 0.0]])]
_groups.append((torch.rand(5, 8, generator=torch.Generator().manual_seed(0)) < 0.4).float())
check_advantages = YourTurn(
    "Your turn 18.1",
    _advantages,
    [(rewards,) for rewards in _groups],
    mistakes={
        "the mean is that of the question's own group, not of all texts": lambda r: r - r.mean(),
        "a group is a row: the mean goes along it": lambda r: r - r.mean(dim=0, keepdim=True),
        "the best texts need a positive advantage": lambda r: -_advantages(r),
    },
)


def _voted(right, wrong, tie=0.5, none=0.0):
    n_right, n_wrong = right.sum(dim=1), wrong.sum(dim=1)
    won = (n_right > n_wrong).float()
    won[(n_right == n_wrong) & (n_right > 0)] = tie
    won[(n_right == n_wrong) & (n_right == 0)] = none
    return won


def _share(right, wrong):
    return right.sum(dim=1) / (right | wrong).sum(dim=1).clamp_min(1)


def _of_all(right, wrong):
    n_right, n = right.sum(dim=1), right.size(1)
    return (2 * n_right > n).float() + (2 * n_right == n).float() / 2


def _answers(rows):  # "r" right, "w" wrong, "-" missing
    return tuple(torch.tensor([[x == kind for x in row] for row in rows]) for kind in "rw")


check_voted = YourTurn(
    "Your turn 18.2",
    _voted,
    [
        _answers(["rrw"]),
        _answers(["rw"]),
        _answers(["rw", "--"]),
        _answers(["r---", "rrww", "wwwr", "rr-w", "----"]),
    ],
    mistakes={
        "of a tie a half counts: toss a coin": partial(_voted, tie=0.0),
        "a tie is no majority: only a half counts": partial(_voted, tie=1.0),
        "where nobody has answered, nothing is right": partial(_voted, none=0.5),
        "count the winner, not the share of those that are right": _share,
        "missing answers don't vote: compare right with wrong": _of_all,
    },
)


def _dpo(good, bad, good_before, bad_before, beta, sign=1, f=nn.functional.logsigmoid):
    return -f(sign * beta * ((good - good_before) - (bad - bad_before))).mean()


def _drawn_dpo(n, seed):
    g = torch.Generator().manual_seed(seed)
    return *(-3 * torch.rand(n, generator=g) for _ in range(4)), 0.5 + seed


check_18_1 = YourTurn(
    "Exercise 18.1",
    _dpo,
    [_drawn_dpo(2, 0), _drawn_dpo(4, 1)],
    mistakes={
        "the chosen answer should become likelier": partial(_dpo, sign=-1),
        "the logarithm is missing": partial(_dpo, f=torch.sigmoid),
        "compare with the model before": lambda g, b, p, q, c: _dpo(g, b, 0 * p, 0 * q, c),
    },
)


def _vote(p, k, tie=0.5, least=0):
    def chance(n):
        return comb(k, n) * p**n * (1 - p) ** (k - n)

    more = sum(chance(n) for n in range(least or k // 2 + 1, k + 1))
    return more if k % 2 or least else more + tie * chance(k // 2)


check_18_2 = YourTurn(
    "Exercise 18.2",
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


_pairs = [
    (torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 2.0]]), 2.0),
    *((*(3 * x for x in drawn(n, (n, 5), (n, 5))), tau)
      for n, tau in ((2, 4.0), (3, 0.5), (4, 1.0))),
]  # fmt: skip
check_18_3 = YourTurn(
    "Exercise 18.3",
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


def _pass_at(k, n, c):
    return 1 - comb(n - c, k) / comb(n, k)


check_18_4 = YourTurn(
    "Exercise 18.4",
    _pass_at,
    [(1, 4, 1), (2, 4, 1), (2, 4, 2), (8, 32, 3), (5, 6, 3), (3, 8, 0)],
    mistakes={
        "none is drawn twice: this puts each back": lambda k, n, c: 1 - (1 - c / n) ** k,
        "that none is right": lambda k, n, c: comb(n - c, k) / comb(n, k),
        "that all of them are right": lambda k, n, c: comb(c, k) / comb(n, k),
    },
)
