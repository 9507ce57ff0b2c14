"""Chapter 12: the checks of its turns and exercises, with the mistakes that people make."""

import torch
from torch import nn

from transformer.cache import Memory
from transformer.config import TransformerConfig
from transformer.data.tokens import PAD_ID
from transformer.model import Transformer
from transformer_book.turns import drawn
from transformer_book.your_turn import Question, YourTurn


def _right_share(found, gold):
    return len({t for _, t in found & gold}) / len({t for _, t in gold})


check_scores = YourTurn(
    "Your turn 12.1",
    _right_share,
    [
        ({(0, 0)}, {(0, 0), (1, 0)}),
        ({(0, 0), (1, 1), (1, 2)}, {(0, 0), (1, 1), (2, 1)}),
        ({(0, 0), (2, 1), (1, 2), (1, 3)}, {(0, 0), (1, 2), (2, 1), (3, 3)}),
    ],
    mistakes={
        "count French words: one with two gold links counts once": lambda found, gold: (
            len(found & gold) / len(gold)
        ),
        "a French word without a gold link doesn't count": lambda found, gold: (
            len(found & gold) / len(found)
        ),
    },
)


def _right_removal(weight, head, n_heads):
    cut, d_k = weight.clone(), weight.size(1) // n_heads
    cut[:, head * d_k : (head + 1) * d_k] = 0
    return cut


def _one_column(weight, head, n_heads):
    cut = weight.clone()
    cut[:, head] = 0
    return cut


def _removal_inputs():
    g = torch.Generator().manual_seed(0)
    for d_model, width, head, n_heads in ((3, 6, 1, 3), (6, 12, 2, 3)):
        yield torch.randint(1, 9, (d_model, width), generator=g).float(), head, n_heads


check_remove = YourTurn(
    "Your turn 12.2",
    _right_removal,
    list(_removal_inputs()),
    mistakes={
        "these are rows; nn.Linear computes x Wᵀ: a head has columns": lambda w, head, n: (
            _right_removal(w.T, head, n).T
        ),
        "a head has d_k columns, not one": _one_column,
        "this keeps the head and removes all others": lambda w, head, n: (
            w - _right_removal(w, head, n)
        ),
    },
)


def _right_patch(model, ours, others, places, tgt):
    memory, other = model.encode(ours), model.encode(others)
    rows = [(other if s in places else memory).vectors[:, s] for s in range(ours.size(1))]
    return model.decode(tgt, Memory(torch.stack(rows, dim=1), memory.mask))


def _other_words(model, ours, others, places, tgt):
    changed = ours.clone()
    changed[:, places] = others[:, places]
    return model(changed, tgt)


class _Small(Transformer):
    def __init__(self, seed):
        torch.manual_seed(seed)
        super().__init__(TransformerConfig.tiny(12, 9, dropout=0.0))
        self.requires_grad_(False)

    def __repr__(self):
        return "a small Transformer"


def _patch_input(B, S, T, places, seed):
    g = torch.Generator().manual_seed(seed)
    ours, others = torch.randint(4, 12, (2, B, S), generator=g)
    ours[0, -1] = PAD_ID  # so that the masks of the two sentences differ
    return _Small(seed), ours, others, places, torch.randint(4, 9, (B, T), generator=g)


check_patch = YourTurn(
    "Your turn 12.3",
    _right_patch,
    [
        _patch_input(1, 3, 1, [1], 0),
        _patch_input(2, 4, 3, [0, 2], 1),
        _patch_input(3, 5, 2, [], 2),
    ],
    mistakes={
        "the vectors of others go into the memory of ours": lambda model, a, b, places, tgt: (
            _right_patch(model, b, a, places, tgt)
        ),
        "all others of our vectors stay": lambda model, a, b, places, tgt: _right_patch(
            model, a, b, range(a.size(1)), tgt
        ),
        "replace vectors of the memory, not words of the source": _other_words,
        "nothing is replaced in yours": lambda model, a, b, places, tgt: model(a, tgt),
    },
)

check_12_1 = Question(
    "Exercise 12.1",
    "higher",
    mistakes={"lower": "do eight heads agree? Each that does not adds another link"},
)
check_12_2 = Question(
    "Exercise 12.2",
    "no",
    mistakes={"yes": "look at Figure 12.7: what do four heads of one module cost together?"},
)


def _lens_input(T, d_model, V):
    norm = nn.LayerNorm(d_model).requires_grad_(False)
    norm.weight.copy_(torch.arange(1, d_model + 1))
    states, weight = drawn(0, (T - 1, T, d_model), (V, d_model))
    return states, norm, weight


check_12_3 = YourTurn(
    "Exercise 12.3",
    lambda states, norm, weight: norm(states) @ weight.T,
    [_lens_input(2, 3, 5), _lens_input(3, 4, 6)],
    mistakes={"normalise first, as the last state is": lambda x, norm, w: x @ w.T},
)


def _solved(x, y):
    squares = x.T @ x + 0.1 * torch.eye(x.size(1))
    return torch.linalg.solve(squares, x.T @ (2 * y - 1))


def _right_probe(x, y):
    return _solved(torch.cat([x, torch.ones(len(x), 1)], dim=1), y)


def _probe_inputs():
    g = torch.Generator().manual_seed(0)
    for n, d in ((5, 2), (9, 3)):
        yield torch.randn(n, d, generator=g), torch.randint(2, (n,), generator=g).float()


check_12_4 = YourTurn(
    "Exercise 12.4",
    _right_probe,
    list(_probe_inputs()),
    mistakes={
        "a column of ones is missing": _solved,
        "the goal is -1 or 1, not 0 or 1": lambda x, y: _right_probe(x, (y + 1) / 2),
    },
)
check_12_5 = Question("Exercise 12.5", 15, mistakes={16: "the sum must stay the same, too"})
