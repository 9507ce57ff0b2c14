"""Chapter 14: the checks of its turns and exercises, with the mistakes that people make."""

import torch

from transformer.data.tokens import PAD_ID
from transformer_book.turns import drawn
from transformer_book.your_turn import Question, YourTurn


def _hides(high):  # the share of the words asked for up to which another word is shown
    def hide(tokens, asked, fate, other, mask_id):
        shown = torch.where(asked & (fate < 0.8), mask_id, tokens)
        shown = torch.where(asked & (fate >= 0.8) & (fate < high), other, shown)
        return shown, torch.where(asked, tokens, PAD_ID)

    return hide


_right_hide = _hides(0.9)


def _texts(shape):
    g = torch.Generator().manual_seed(3)
    tokens, other = (torch.randint(4, 30, shape, generator=g) for _ in range(2))
    asked, fate = torch.rand(shape, generator=g) < 0.6, torch.rand(shape, generator=g)
    return tokens, asked, fate, other, 30


def _all_labels(tokens, *others):
    return _right_hide(tokens, *others)[0], tokens


def _all_asked(tokens, asked, *others):
    return _right_hide(tokens, torch.ones_like(asked), *others)[0], tokens * asked


check_hide = YourTurn(
    "Your turn 14.1",
    _right_hide,
    [_texts(shape) for shape in ((2, 9), (3, 11), (4, 25))],
    mistakes={
        "all words are labels: only those asked for should be": _all_labels,
        "words that are not asked for change, too": _all_asked,
        "10 % of the words asked for should stay": _hides(2.0),
        "the random word never comes": _hides(0.8),
    },
)

check_14_1 = Question(
    "Exercise 14.1",
    20 * 19 // 2,
    mistakes={
        20 * 19: "each pair of two source words was counted twice",
        20 * 21 // 2: "a word sees itself under the causal mask, too",
    },
)


def _lora_input(seed, n, d_in, d_out, r):
    return *drawn(seed, (n, d_in), (d_in, d_out), (d_in, r), (r, d_out)), 3.0 + seed


check_14_2 = YourTurn(
    "Exercise 14.2",
    lambda x, W, A, B, alpha: x @ W + alpha / A.size(1) * (x @ A @ B),
    [_lora_input(0, 2, 4, 5, 2), _lora_input(1, 3, 6, 5, 3)],
    mistakes={
        "alpha is divided by the rank": lambda x, W, A, B, a: x @ W + a * (x @ A @ B),
        "the frozen W counts, too": lambda x, W, A, B, a: a / A.size(1) * (x @ A @ B),
    },
)


def _count(tokens):  # how many words there are up to each place
    return (tokens != PAD_ID).long().cumsum(dim=1)


check_14_3 = YourTurn(
    "Exercise 14.3",
    lambda tokens: (_count(tokens) - 1).clamp(min=0),
    [(torch.tensor(rows),) for rows in ([[0, 1, 5]], [[1, 4, 6, 7], [0, 0, 0, 1]])],
    mistakes={
        "the first word stands at 0": _count,
        "padding before the text counts no position": lambda tokens: torch.arange(
            tokens.size(1)
        ).expand_as(tokens),
        "padding has position 0": lambda tokens: _count(tokens) - 1,
    },
)


def _same_text(owner):
    return owner[:, None] == owner


check_14_4 = YourTurn(
    "Exercise 14.4",
    lambda owner: _same_text(owner).tril(),
    [(torch.tensor(owner),) for owner in ([0, 1], [0, 0, 0, 1, 1, 2])],
    mistakes={
        "a word sees what stands before it, not after": _same_text,
        "no word sees another text": lambda owner: torch.ones(len(owner), len(owner)).tril() > 0,
        "a word sees itself, too": lambda owner: _same_text(owner).tril(-1),
    },
)


def _scores(shift=1, which=-1):  # after the last place of a word
    def score(weights, tokens):
        found = []
        for t, token in enumerate(tokens.tolist()):
            before = [s for s in range(t) if tokens[s] == token]
            if before:
                found.append(weights[t, before[which] + shift])
        return torch.stack(found).mean()

    return score


def _score_inputs():
    for seed, tokens in enumerate(([4, 5, 6, 4], [4, 5, 4, 6, 5, 4, 4])):
        g = torch.Generator().manual_seed(seed)
        yield torch.rand(len(tokens), len(tokens), generator=g).tril(), torch.tensor(tokens)


check_14_5 = YourTurn(
    "Exercise 14.5",
    _scores(),
    list(_score_inputs()),
    mistakes={
        "it is the place after the same word": _scores(shift=0),
        "it is the last place of the word": _scores(which=0),
    },
)
