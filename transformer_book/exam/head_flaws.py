"""What people get wrong in multi-head attention, done on purpose, with what to say of it."""

import math
from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from transformer_book.exam.layouts import Linear

D_MODEL, N_HEADS = 8, 2  # of the heads that are asked most questions
FLAWS: dict[str, dict[str, Any]] = {
    "the scores are not divided by √d_k (section 4.1)": {"divisor": 1.0},
    "divide by √d_k, where d_k is the width of one head, d_model / n_heads (section 5.2)": {
        "divisor": D_MODEL**0.5
    },
    "divide by √d_k, not by d_k itself (section 4.1)": {"divisor": D_MODEL / N_HEADS},
    "the softmax runs over the queries; it should run over the keys (section 3.7)": {"dim": -2},
    "this is one head as wide as the model; are the rows cut into heads? (section 5.2)": {
        "divisor": D_MODEL**0.5, "n_heads": 1
    },
    "the rows are cut by a view straight to (B, n_heads, T, d_k), which mixes up places; cut with "
    "view(B, T, n_heads, d_k), then transpose(1, 2) (section 5.4)": {"cut": False},
    "the heads are put back without their transpose; transpose(1, 2) comes before the reshape "
    "(section 5.4)": {"merge": False},
    "W_o is not used; it mixes what the heads say (section 5.2)": {"last": False},
}  # fmt: skip


def flawed_heads(
    x: Tensor,
    memory: Tensor,
    found: Sequence[Linear],
    *,
    n_heads: int = N_HEADS,
    divisor: float | None = None,
    dim: int = -1,
    cut: bool = True,
    merge: bool = True,
    last: bool = True,
) -> Tensor:
    """Multi-head attention, with what one may get wrong as arguments."""
    W_q, W_k, W_v, W_o = found

    def heads_of(rows: Tensor, linear: Linear) -> Tensor:
        made = nn.functional.linear(rows, linear.weight, linear.bias)
        if not cut:
            return made.reshape(len(made), n_heads, made.size(1), -1)
        return made.unflatten(-1, (n_heads, -1)).transpose(1, 2)

    q, k, v = heads_of(x, W_q), heads_of(memory, W_k), heads_of(memory, W_v)
    scores = q @ k.mT / (math.sqrt(q.size(-1)) if divisor is None else divisor)
    answers = scores.softmax(dim) @ v
    rows = answers.transpose(1, 2).flatten(2) if merge else answers.reshape(x.shape)
    return nn.functional.linear(rows, W_o.weight, W_o.bias) if last else rows
