"""Chapter 7: the checks of its turns and exercises, with the mistakes that people make."""

import math

import torch
from torch import nn

from transformer_book.turns import drawn
from transformer_book.your_turn import Question, YourTurn


def _right_norm(x, gamma, beta, eps):
    return nn.functional.layer_norm(x, x.shape[-1:], gamma, beta, eps)


def _wrong_norm(dim=-1, correction=0, inside=True):
    def norm(x, gamma, beta, eps):
        var, mean = torch.var_mean(x, dim, correction=correction, keepdim=True)
        root = (var + eps).sqrt() if inside else var.sqrt() + eps
        return gamma * (x - mean) / root + beta

    return norm


def _norm_input(T, d_model, eps):
    gamma, beta, x = drawn(T, (d_model,), (d_model,), (T, d_model))
    return 3 * x + 1, gamma, beta, eps


check_norm = YourTurn(
    "Your turn 7.1",
    _right_norm,
    [_norm_input(2, 3, 1e-5), _norm_input(3, 5, 0.5), _norm_input(6, 4, 1e-5)],
    mistakes={
        "the variance divides by d, not by d - 1": _wrong_norm(correction=1),
        "ε is inside of the root": _wrong_norm(inside=False),
        "each word has its own mean and variance: dim=-1": _wrong_norm(dim=0),
        "β is added last, after γ": lambda x, g, b, eps: g * _right_norm(x, g / g, b, eps),
    },
)


def _right_ffn(x, W_1, b_1, W_2, b_2):
    return nn.functional.linear(nn.functional.linear(x, W_1.T, b_1).relu(), W_2.T, b_2)


def _ffn_input(seed, T, d_model, d_ff):
    return drawn(seed, (T, d_model), (d_model, d_ff), (d_ff,), (d_ff, d_model), (d_model,))


check_ffn = YourTurn(
    "Your turn 7.2",
    _right_ffn,
    [_ffn_input(2, 1, 2, 3), _ffn_input(3, 4, 3, 5), _ffn_input(4, 6, 4, 9)],
    mistakes={
        "without max(0, …) two matrices are one": lambda x, W, b, V, c: (x @ W + b) @ V + c,
        "ReLU is between the matrices, not at the end": lambda x, W, b, V, c: (
            (x @ W + b) @ V + c
        ).relu(),
        "b_1 belongs inside of the ReLU": lambda x, W, b, V, c: ((x @ W).relu() + b) @ V + c,
    },
)

check_7_1 = Question("Exercise 7.1", math.sqrt(3 / 4), mistakes={3 / 4: "take the root"})
check_7_2 = Question("Exercise 7.2", "no")


check_7_3 = YourTurn(
    "Exercise 7.3",
    lambda x, y, alpha: x + alpha * y,
    [(*drawn(n, (n, n + 1), (n, n + 1)), alpha) for n, alpha in ((1, 0.0), (2, -2.0), (3, 0.5))],
    mistakes={"only the sublayer's output is scaled, not x": lambda x, y, a: a * (x + y)},
)
check_7_4 = Question(
    "Exercise 7.4",
    2048 * 2 / 3,
    mistakes={2048: "three matrices of this width have half as many parameters again"},
)


def _best_expert(x, router, W_1, W_2):
    gates = (x @ router).softmax(dim=-1)  # (T, experts)
    all_of_them = (x @ W_1).relu() @ W_2  # (experts, T, d_model)
    chosen = gates.argmax(dim=-1)
    return gates.amax(dim=-1)[:, None] * all_of_them[chosen, torch.arange(len(x))]


def _all_experts(x, router, W_1, W_2):
    weights = (x @ router).softmax(dim=-1)
    return torch.einsum("te,etd->td", weights, (x @ W_1).relu() @ W_2)


check_7_5 = YourTurn(
    "Exercise 7.5",
    _best_expert,
    [
        drawn(0, (T, d_model), (d_model, n), (n, d_model, d_ff), (n, d_ff, d_model))
        for T, d_model, n, d_ff in ((2, 3, 4, 5), (7, 5, 3, 4))
    ],
    mistakes={"only the best expert speaks; in yours all do": _all_experts},
)
check_7_6 = Question(
    "Exercise 7.6", 0.1, mistakes={10: "the output does not change; so how steep is it?"}
)
