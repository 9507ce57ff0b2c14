"""Chapter 5: what its turns and exercises ask, and the mistakes that people make."""

import torch

from transformer.attention import attention
from transformer.multihead import MultiHeadAttention
from transformer_book.turns import drawn
from transformer_book.your_turn import Question, YourTurn


def _multi_head(x, y, W_q, W_k, W_v, W_o, n_heads):
    layer = MultiHeadAttention(len(W_q), n_heads, bias=False).requires_grad_(False)
    linears = layer.W_q, layer.W_k, layer.W_v, layer.W_o
    for linear, W in zip(linears, (W_q, W_k, W_v, W_o), strict=True):
        linear.weight.copy_(W.T)
    return layer(x[None], y[None], y[None])[0]


def _by_view(x, y, W_q, W_k, W_v, W_o, n_heads):
    q, k, v = (z.view(n_heads, len(z), -1) for z in (x @ W_q, y @ W_k, y @ W_v))
    return attention(q, k, v).transpose(0, 1).flatten(1) @ W_o


def _as_wide(x, y, W_q, W_k, W_v, W_o, n_heads):  # √d_model in the place of √d_k
    return _multi_head(x, y, W_q / n_heads**0.5, W_k, W_v, W_o, n_heads)


def _one_wide_head(x, y, W_q, W_k, W_v, W_o, n_heads):
    return attention(x @ W_q, y @ W_k, y @ W_v) @ W_o


def _without_w_o(x, y, W_q, W_k, W_v, W_o, n_heads):
    return _multi_head(x, y, W_q, W_k, W_v, torch.eye(len(W_o)), n_heads)


def _of_x_alone(x, y, W_q, W_k, W_v, W_o, n_heads):
    return _multi_head(x, x, W_q, W_k, W_v, W_o, n_heads)


def _words_and_matrices(T: int, S: int, d_model: int, n_heads: int) -> tuple:
    return *drawn(T, (T, d_model), (S, d_model), *4 * [(d_model, d_model)]), n_heads


check_multi_head = YourTurn(
    "Your turn 5.1",
    _multi_head,
    [_words_and_matrices(*sizes) for sizes in ((2, 3, 4, 2), (3, 5, 6, 3), (4, 3, 8, 2))],
    mistakes={
        "that is one wide head: cut queries, keys and values into parts": _one_wide_head,
        "W_o is missing": _without_w_o,
        "keys and values come from y": _of_x_alone,
        "divide by the root of d_k, a head's width, not of d_model": _as_wide,
        "a view to the final shape mixes the words: see section 5.4": _by_view,
    },
)


def _cut(z, h):
    return z.unflatten(-1, (h, -1)).permute(0, 2, 1, 3)


def _cut_by_view(z, h):
    B, T, d_model = z.shape
    return z.reshape(B, h, T, d_model // h)


def _dealt_out(z, h):
    return z.unflatten(-1, (-1, h)).permute(0, 3, 1, 2)


check_split = YourTurn(
    "Your turn 5.2",
    _cut,
    [
        (torch.arange(12.0).view(1, 3, 4), 2),
        (*drawn(0, (2, 5, 12)), 3),
    ],
    mistakes={
        "that is a view to the final shape, and it mixes the words": _cut_by_view,
        "the axis of the heads must come before T": lambda z, h: z.unflatten(-1, (h, -1)),
        "head 1 has the first d_k columns, not every h-th": _dealt_out,
    },
)

check_5_1 = Question(
    "Exercise 5.1",
    4_198_400,
    mistakes={4_194_304: "and the biases?", 3_148_800: "there are four matrices, with W_O"},
)


def _by_broadcasting(x, W_q, W_k, W_v, W_o):
    q, k, v = (x[:, None] @ W for W in (W_q, W_k, W_v))  # (B, h, T, d_k)
    return (attention(q, k, v) @ W_o).sum(dim=1)


def _for_einsum(seed: int, B: int, T: int, d_model: int, h: int, d_k: int) -> tuple:
    return drawn(seed, (B, T, d_model), *3 * [(h, d_model, d_k)], (h, d_k, d_model))


check_5_2 = YourTurn(
    "Exercise 5.2",
    _by_broadcasting,
    [_for_einsum(0, 1, 2, 4, 3, 2), _for_einsum(1, 2, 5, 7, 6, 4)],
)

check_5_3 = Question(
    "Exercise 5.3",
    3,
    mistakes={12: "that would be a full view of the sentence", 4: "12 places, 4 heads"},
)


def _other_basis(W_q, W_k, W_v, W_o, M):
    inverse = torch.linalg.inv(M)
    return W_q @ M, W_k @ inverse.T, W_v @ M, inverse @ W_o


def _not_transposed(W_q, W_k, W_v, W_o, M):
    inverse = torch.linalg.inv(M)
    return W_q @ M, W_k @ inverse, W_v @ M, inverse @ W_o


def _for_basis(seed: int, d_model: int, d_k: int) -> tuple:
    M, *matrices = drawn(seed, (d_k, d_k), *3 * [(d_model, d_k)], (d_k, d_model))
    return *matrices, M + 3 * torch.eye(d_k)


check_5_4 = YourTurn(
    "Exercise 5.4",
    _other_basis,
    [_for_basis(0, 3, 2), _for_basis(1, 5, 3)],
    mistakes={"W_k needs the transpose of the inverse": _not_transposed},
)
