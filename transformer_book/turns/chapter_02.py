"""What the reader of chapter 2 writes: a look back, and the answers to five exercises."""

from collections.abc import Callable

import torch
from torch import Tensor

from transformer_book.turns import drawn
from transformer_book.your_turn import Question, YourTurn

# Your turn 2.1


def two_line_look_back(s: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
    weights = (h @ s).softmax(dim=0)
    return weights, weights @ h


def with_weights(weigh: Callable[[Tensor], Tensor]) -> Callable:
    """A look back with other weights, made from the scores."""
    return lambda s, h: (weigh(h @ s), weigh(h @ s) @ h)


check_look_back = YourTurn(
    "Your turn 2.1",
    two_line_look_back,
    [drawn(1, (2,), (3, 2)), drawn(2, (3,), (4, 3)), drawn(3, (5,), (7, 5))],
    mistakes={
        "the exponentials are not divided by their sum": with_weights(torch.exp),
        "take the exponential of each score first": with_weights(lambda e: e / e.sum()),
        "these are the scores: step 2 is missing": with_weights(lambda e: e),
        "all weights are equal": with_weights(lambda e: torch.ones_like(e) / len(e)),
    },
)


# The exercises


def by_autograd(e: Tensor, h: Tensor) -> Tensor:
    return torch.autograd.functional.jacobian(lambda e: e.softmax(0) @ h, e).T.contiguous()


check_2_1 = Question(
    "Exercise 2.1",
    3,
    mistakes={
        1: "a_1 is made before y_1 is read.",
        2: "y_1 goes into s_2. Which state asks for a_2?",
    },
)
check_2_2 = Question(
    "Exercise 2.2",
    (600, 30),
    mistakes={
        (600, 600): "does U h_j depend on the word that is written?",
        (50, 30): "each of the 20 words scores each of the 30.",
    },
)
check_2_3 = YourTurn(
    "Exercise 2.3",
    lambda s, h, W: h @ W.T @ s,
    [drawn(d - 1, (d,), (S, d), (d, d)) for S, d in ((3, 2), (5, 3), (7, 4))],
    mistakes={
        "W stands on the other side: this is W s · h_j": lambda s, h, W: h @ W @ s,
        "this is the dot product, without W": lambda s, h, W: h @ s,
    },
)
check_2_4 = Question(
    "Exercise 2.4",
    "s",
    mistakes={
        "v": "does v weigh all words alike?",
        "U": "U h_j is another one for each source word.",
        "h_j": "h_j is another one for each source word.",
    },
)
check_2_5 = YourTurn(
    "Exercise 2.5",
    by_autograd,
    [drawn(1, (3,), (3, 2)), drawn(2, (4,), (4, 3)), drawn(3, (7,), (7, 5))],
    mistakes={
        "c depends on all weights, and they all change with e_j": (
            lambda e, h: e.softmax(0)[:, None] * h
        ),
    },
)
