"""The checks of chapter 1's turns and exercises: what is right, and the mistakes people make."""

from collections.abc import Iterator

import torch
from torch import Tensor

from transformer.data.tokens import EOS_ID, PAD_ID
from transformer_book.turns import drawn
from transformer_book.your_turn import Question, YourTurn


def _states(
    x: Tensor, W_x: Tensor, W_h: Tensor, b: Tensor, *, carry: bool = True, shift: int = 0
) -> Tensor:
    h = torch.zeros(len(b))
    states = [h]
    for x_t in x:
        h = (W_x @ x_t + (W_h @ h if carry else 0) + b).tanh()
        states.append(h)
    return torch.stack(states[1 - shift : len(states) - shift])


check_rnn = YourTurn(
    "Your turn 1.1",
    _states,
    [
        drawn(seed, (S, d), (n, d), (n, n), (n,))
        for seed, (S, d, n) in enumerate(((2, 3, 1), (3, 4, 2), (6, 5, 4)))
    ],
    mistakes={
        "the old state has no part in it": lambda *p: _states(*p, carry=False),
        "W_h is transposed": lambda x, W_x, W_h, b: _states(x, W_x, W_h.T, b),
        "these are the states before each word": lambda *p: _states(*p, shift=1),
        "this is the last state, and all are wanted": lambda *p: _states(*p)[-1],
    },
)


def _targets() -> Iterator[tuple[Tensor]]:
    g = torch.Generator().manual_seed(0)
    for shape in ((2, 4), (3, 5), (4, 7)):
        yield (torch.randint(4, 20, shape, generator=g),)
    yield (torch.tensor([[1, 5, 7, 9, 2], [1, 8, 2, 0, 0]]),)  # with padding


check_shift = YourTurn(
    "Your turn 1.2",
    lambda tgt: (tgt[:, :-1], tgt[:, 1:]),
    list(_targets()),
    mistakes={
        "both are the same: the decoder would only copy": lambda y: (y[:, 1:], y[:, 1:]),
        "this shifts the other way": lambda y: (y[:, 1:], y[:, :-1]),
        "this cuts off sentences; cut off columns": lambda y: (y[:-1], y[1:]),
    },
)

check_1_1 = Question("Exercise 1.1", 4, mistakes={3: "the proposal g is a sum, too"})
check_1_2 = Question("Exercise 1.2, ordinary", 50, mistakes={49: "98 words back is not 99"})
check_1_2_dilated = Question("Exercise 1.2, dilated", 5, mistakes={4: "that sees 81 words"})


def _backwards(src: Tensor) -> Tensor:
    rows = [torch.cat([row[row != PAD_ID].flip(0), row[row == PAD_ID]]) for row in src]
    return torch.stack(rows)


def _padded(*lengths: int) -> Tensor:
    rows = [[*range(4, 4 + n), EOS_ID] for n in lengths]
    return torch.tensor([row + [PAD_ID] * (max(lengths) + 1 - len(row)) for row in rows])


check_1_3 = YourTurn(
    "Exercise 1.3",
    _backwards,
    [(_padded(2, 3),), (_padded(4, 2, 5),)],
    mistakes={"the padding must stay at the end": lambda src: src.flip(1)},
)


def _clipped(gradient: Tensor, limit: float) -> Tensor:
    return gradient * min(1.0, limit / gradient.norm().item())


check_1_4 = YourTurn(
    "Exercise 1.4",
    _clipped,
    [
        (torch.tensor([3.0, 4.0]), 2.0),
        (torch.tensor([0.3, 0.4, 0.1]), 1.0),
        (torch.tensor([0.6, 0.8, 0.0, 0.0]), 0.1),
    ],
    mistakes={
        "this turns the gradient: scale it as a whole": lambda v, limit: v.clamp(-limit, limit),
        "a short gradient stays as it is": lambda v, limit: v * limit / v.norm(),
    },
)


def _one_by_one(a: Tensor, b: Tensor) -> Tensor:
    h, states = torch.zeros_like(b[0]), []
    for a_t, b_t in zip(a, b, strict=True):
        h = a_t * h + b_t
        states.append(h)
    return torch.stack(states)


def _steps() -> Iterator[tuple[Tensor, Tensor]]:
    yield torch.tensor([[2.0], [0.0], [-3.0]]), torch.ones(3, 1)  # 0 forgets all
    g = torch.Generator().manual_seed(0)
    for n in (2, 5, 16):
        a, b = torch.rand(2, n, 3, generator=g) - 0.3
        yield a, b


check_1_5 = YourTurn(
    "Exercise 1.5",
    _one_by_one,
    list(_steps()),
    mistakes={"b_t is not multiplied by a_t": lambda a, b: _one_by_one(a, a * b)},
)
