"""Chapter 15: the checks of its turns and exercises, with the mistakes that people make."""

from functools import partial

import torch

from transformer_book.turns import drawn
from transformer_book.your_turn import Question, YourTurn


def _rms(x, gain, eps=1e-5, mean=0.0):
    x = x - mean * x.mean(dim=-1, keepdim=True)
    return gain * x / (x.pow(2).mean(dim=-1, keepdim=True) + eps).sqrt()


def _block(x, attend, gain_1, gain_2, W_1, W_3, W_2, mean=0.0, stream=0, gate=None):
    gate = gate or (lambda z: z / (1 + torch.exp(-z)))
    read = _rms(x, gain_1, mean=mean)
    x = (read if stream else x) + attend(read)
    read = _rms(x, gain_2, mean=mean)
    return (read if stream else x) + (gate(read @ W_1) * (read @ W_3)) @ W_2


def _drawn_block(B, T, d, d_ff, seed):
    shapes = ((B, T, d), (d,), (d,), (d, d_ff), (d, d_ff), (d_ff, d))
    x, *others = (x + 0.5 for x in drawn(seed, *shapes))
    return x, lambda z: z.cumsum(dim=1).roll(1, dims=-1), *others


_small, _large = _drawn_block(1, 2, 3, 5, 0), _drawn_block(2, 4, 6, 7, 1)
check_block = YourTurn(
    "Your turn 15.1",
    _block,
    [_small, _large, (1e-3 * _small[0], *_small[1:])],  # the last is so small that ε counts
    mistakes={
        "RMSNorm takes no mean away": partial(_block, mean=1.0),
        "the norm belongs to the sublayer, not to the stream": partial(_block, stream=1),
        "silu(z) is z times the sigmoid": partial(_block, gate=torch.sigmoid),
        "W_1 makes the gates, W_3 goes through": lambda x, attend, g, h, W_1, W_3, W_2: _block(
            x, attend, g, h, W_3, W_1, W_2
        ),
    },
)


def _in_blocks(W, bits, width, most=None):
    most = most or 2 ** (bits - 1) - 1
    x = W.reshape(-1, width)
    ruler = x.abs().amax(dim=1, keepdim=True).clamp(min=1e-9) / most
    return ((x / ruler).round() * ruler).reshape(W.shape)


(_weights,) = drawn(2, (4, 8))
_weights[:, 0] *= 20
_weights[2, 4:] = 0.0
check_rulers = YourTurn(
    "Your turn 15.2",
    _in_blocks,
    [(torch.tensor([[20.0, 1.0, 0.4, 0.9]]), 4, 2), (_weights, 4, 4), (_weights, 3, 2)],
    mistakes={
        "that is one ruler for a whole row": lambda W, bits, width: _in_blocks(W, bits, W.size(1)),
        "a block is of neighbours in a row, not in a column": lambda W, bits, width: (
            _in_blocks(W.T, bits, width if W.size(0) % width == 0 else W.size(0)).T
        ),
        "the largest whole number is 7 for four bits": lambda W, bits, width: _in_blocks(
            W, bits, width, most=2 ** (bits - 1)
        ),
    },
)


check_15_1 = Question(
    "Exercise 15.1",
    2 * 8 * 128 * 16 * 2,
    mistakes={
        2 * 32 * 128 * 32 * 2: "that is with 32 heads of keys and values",
        2 * 8 * 128 * 32 * 2: "that is with each layer's own; two layers share",
    },
)


def _patches(image, p):
    C, H, W = image.shape
    x = image.view(C, H // p, p, W // p, p)
    return x.permute(1, 3, 2, 4, 0).reshape(-1, p * p * C)


check_15_2 = YourTurn(
    "Exercise 15.2",
    _patches,
    [(torch.arange(24.0).view(1, 4, 6), 2), (torch.arange(162.0).view(3, 6, 9), 3)],
    mistakes={
        "these are p rows of the picture, not squares": lambda image, p: image.permute(
            1, 2, 0
        ).reshape(-1, p * p * image.size(0)),
        "patches go row by row": lambda image, p: _patches(image.mT, p),
    },
)


def _best_size(A, alpha, B, beta, C):
    return (alpha * A / (beta * B) * (C / 6) ** beta) ** (1 / (alpha + beta))


check_15_3 = YourTurn(
    "Exercise 15.3",
    _best_size,
    [(2.0, 0.5, 3.0, 0.5, 1e4), (400.0, 0.34, 410.0, 0.28, 6e15)],
    mistakes={
        "D is C / (6 N): six operations": lambda A, a, B, b, C: _best_size(A, a, B, b, 6 * C),
        "that is the number of tokens": lambda A, a, B, b, C: C / 6 / _best_size(A, a, B, b, C),
    },
)


def _loads(x, W_r, b, k, after=True):
    r = x @ W_r
    r = r.softmax(dim=-1) + b if after else (r + b).softmax(dim=-1)
    chosen = r.topk(k, dim=-1).indices
    return chosen.flatten().bincount(minlength=len(b))


def _drawn_words(B, d, n, k, seed):
    x, W_r, b = drawn(seed, (B, d), (d, n), (n,))
    return x, W_r, 0.2 * b, k


check_15_4 = YourTurn(
    "Exercise 15.4",
    _loads,
    [_drawn_words(3, 2, 4, 2, 0), _drawn_words(12, 4, 6, 3, 1)],
    mistakes={
        "each word reads k experts": lambda x, W_r, b, k: _loads(x, W_r, b, 1),
        "b counts in the choice": lambda x, W_r, b, k: _loads(x, W_r, 0 * b, k),
        "b is added to the shares, after the softmax": partial(_loads, after=False),
        "that is which experts are fetched, not how often": lambda x, W_r, b, k: (
            _loads(x, W_r, b, k) > 0
        ).long(),
    },
)
