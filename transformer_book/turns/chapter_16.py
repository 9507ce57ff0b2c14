"""Chapter 16: the checks of its turns and exercises, with the mistakes that people make."""

import math
from functools import partial

import torch

from transformer_book.turns import drawn
from transformer_book.your_turn import Question, YourTurn


def _latent_scores(q, c, W_k):
    return (q @ W_k.T) @ c.T


check_latent = YourTurn(
    "Your turn 16.2",
    _latent_scores,
    [
        tuple(map(torch.tensor, ([[1.0, 0, 2]], [[1.0, 2], [3, 0]], [[1.0, 0, 1], [0, 1, 1]]))),
        drawn(0, (2, 16), (40, 4), (4, 16)),
        drawn(1, (3, 24), (50, 5), (5, 24)),
    ],
    mistakes={
        "the keys of all words are made; W_k can be put to the query instead": (
            lambda q, c, W_k: q @ (c @ W_k).T
        ),
        "each query has a row of scores, one for each word": (
            lambda q, c, W_k: _latent_scores(q, c, W_k).T
        ),
    },
    most_numbers=lambda q, c, W_k: max(len(q) * len(c), c.numel(), W_k.numel(), q.numel()),
)


def _sees(T, window, sinks, ahead=False, late=0):
    at = torch.arange(T)
    back = at[:, None] - at
    near = back < window + late
    return near | (at < sinks) if ahead else (back >= 0) & (near | (at < sinks))


check_window = YourTurn(
    "Your turn 16.1",
    _sees,
    [(3, 2, 0), (5, 2, 1), (7, 3, 2), (9, 4, 0)],
    mistakes={
        "the word itself is one of the window": partial(_sees, late=1),
        "nobody sees a word that comes later, a sink included": partial(_sees, ahead=True),
        "the first words are seen from everywhere behind them": lambda T, window, sinks: _sees(
            T, window, 0
        ),
    },
)


def _written(S, k, v, fade, write, of=None, corrects=True):
    S = fade * S
    found = k @ (S if of is None else S / fade) if corrects else 0.0
    return S + write * torch.outer(k, v - found)


def _small_state(fade, write):
    S = torch.tensor([[3.0, 1.0], [0.0, 2.0]])
    return S, torch.tensor([1.0, 0.0]), torch.tensor([5.0, 1.0]), fade, write


def _state(d_k, d_v, fade, write, seed):
    S, k, v = drawn(seed, (d_k, d_v), (d_k,), (d_v,))
    return S, k / k.norm(), v, fade, write


check_delta = YourTurn(
    "Your turn 16.3",
    _written,
    [_small_state(1.0, 1.0), _small_state(0.5, 0.5), _state(3, 4, 0.9, 0.7, 0)],
    mistakes={
        "what stood under the key stays there, and the new is added": partial(
            _written, corrects=False
        ),
        "the state has faded before the key looks into it": partial(_written, of="before"),
        "only the difference is multiplied by the share that is written": (
            lambda S, k, v, fade, write: fade * S + torch.outer(k, write * v - k @ (fade * S))
        ),
    },
)

_A_WORD = 2 * 8 * 256 * 2  # bytes in a layer
check_16_1 = Question(
    "Exercise 16.1",
    8 * 100_000 * _A_WORD + 40 * 1024 * _A_WORD,
    mistakes={
        48 * 100_000 * _A_WORD: "that is with 48 layers that see everything",
        8 * 100_000 * _A_WORD: "the 40 others keep 1,024 words each",
        (8 * 100_000 + 40 * 1024) * _A_WORD // 2: "keys and values: two of each",
    },
)

check_16_2 = Question(
    "Exercise 16.2",
    50,
    mistakes={
        12.5: "that is beside all heads, with 1,024 bytes a word",
        32: "the mixed words before the layer's queries, keys and values are kept, too",
        200: "that is beside one layer with one key head; there are four",
    },
)


def _with_nothing(scores, sink, keeps=False):
    sinks = torch.as_tensor(sink).expand(*scores.shape[:-1], 1)
    weights = torch.cat([scores, sinks], dim=-1).softmax(dim=-1)
    return weights if keeps else weights[..., :-1]


check_16_3 = YourTurn(
    "Exercise 16.3",
    _with_nothing,
    [
        (torch.zeros(1, 3), 0.0),
        (*drawn(0, (2, 4)), 1.5),
        (100 * torch.tensor([[1.0, 0.5, -1.0], [-1.0, -2.0, -3.0]]), 20.0),
    ],
    mistakes={
        "the sink has no value, so its weight is dropped": partial(_with_nothing, keeps=True),
        "the sink stands in the sum below the line": lambda scores, sink: scores.softmax(dim=-1),
        "e^100 is too large: take the greatest score away first": lambda scores, sink: (
            scores.exp() / (scores.exp().sum(dim=-1, keepdim=True) + math.exp(sink))
        ),
    },
)


def _picked(q, k, v, index, n, by_scores=False, forgets=False):
    scores = q @ k.T / k.size(-1) ** 0.5
    n = min(n, len(k))
    chosen = torch.topk(scores if by_scores else index, n, dim=-1).indices
    mask = torch.zeros_like(index, dtype=torch.bool).scatter(1, chosen, True)
    if forgets:
        return scores.softmax(dim=-1).masked_fill(~mask, 0.0) @ v
    return scores.masked_fill(~mask, -math.inf).softmax(dim=-1) @ v


def _drawn_index(T, S, d_k, d_v, n, seed):
    return *drawn(seed, (T, d_k), (S, d_k), (S, d_v), (T, S)), n


check_16_4 = YourTurn(
    "Exercise 16.4",
    _picked,
    [
        _drawn_index(1, 3, 2, 1, 1, 0),
        _drawn_index(3, 8, 4, 5, 3, 1),
        _drawn_index(2, 5, 3, 2, 9, 2),
    ],
    mistakes={
        "the indexer's scores choose, and the queries' scores weigh": partial(
            _picked, by_scores=True
        ),
        "the weights of the chosen words are to sum to 1": partial(_picked, forgets=True),
        "there may be fewer words than n": lambda q, k, v, index, n: (
            _picked(q, k, v, index, n)
            if n <= len(k)
            else q.new_zeros(len(q), v.size(1)).fill_(math.nan)
        ),
    },
)


def _fading(q, k, v, a, late=False, fades=True):
    state, outputs = q.new_zeros(k.size(1), v.size(1)), []
    for q_t, k_t, v_t, a_t in zip(q, k, v, a, strict=True):
        fade, new = a_t if fades else 1.0, torch.outer(k_t, v_t)
        state = fade * (state + new) if late else fade * state + new
        outputs.append(q_t @ state)
    return torch.stack(outputs)


def _without_a_past(q, k, v, a):
    return (q * k).sum(dim=1, keepdim=True) * v


def _seen_ahead(q, k, v, a):
    faded = a.log().cumsum(dim=0)
    return (q @ k.T * (faded[:, None] - faded).exp()) @ v


def _drawn_fading(T, d_k, d_v, seed):
    q, k, v = drawn(seed, (T, d_k), (T, d_k), (T, d_v))
    return q, k, v, 0.5 + torch.rand(T, generator=torch.Generator().manual_seed(seed)) / 2


check_16_5 = YourTurn(
    "Exercise 16.5",
    _fading,
    [_drawn_fading(2, 1, 1, 0), _drawn_fading(5, 3, 2, 1), _drawn_fading(9, 2, 4, 2)],
    mistakes={
        "what was kept is multiplied by a_t": partial(_fading, fades=False),
        "a word's own part comes in whole": partial(_fading, late=True),
        "a word also reads the words before it": _without_a_past,
        "a later word has no share: the mask is causal": _seen_ahead,
    },
)
