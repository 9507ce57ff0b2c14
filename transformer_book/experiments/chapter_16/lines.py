"""Texts in which words repeat, with pairs in between that are asked for later.

Half of the words follow from the word before, as a table of the language says; the other half
repeat any earlier word of the text, each place as likely as another. So a model gains from all that
it remembers, and how likely each word is is known. In between stand pairs of a key and its value.
Each comes twice, 8 to 256 words apart, as many of them 8 to 16 as 128 to 256; at the second time
the value can be known.
"""

from dataclasses import dataclass
from functools import cache

import torch
from jaxtyping import Float, Int
from torch import Tensor

WORDS, KEYS, VALUES = 128, 64, 32  # how many there are; their ids follow each other in this order
LENGTH = 320  # words that are read of a text
DISTANCES = (8, 16, 32, 64, 128, 257)  # the edges of five classes
PARTS = 1024  # a probability of the table is a number of these


@dataclass(frozen=True)
class Lines:
    """Texts; of each word how far back its pair stands, and what the best guess of it costs.

    ``back``: 0 for a word of the language, -1 where nobody can know it: a key, or a value that
    comes for the first time. ``floor``: nats, of a word of the language.
    """

    tokens: Int[Tensor, "n words"]  # LENGTH + 1 of them: the last is only predicted
    back: Int[Tensor, "n words"]
    floor: Float[Tensor, "n words"]


@cache
def _language() -> tuple[Tensor, Tensor]:
    """The probabilities (WORDS, WORDS), and for each word the PARTS next words in equal parts."""
    g = torch.Generator().manual_seed(0)
    scores = 1.5 * torch.randn(WORDS, WORDS, generator=g) - torch.arange(1, WORDS + 1).log()
    share = scores.softmax(dim=1).double().cumsum(dim=1)
    ends = (share * PARTS).round().long()  # of each word's parts
    places = torch.arange(PARTS).expand(WORDS, PARTS).contiguous()
    following = torch.searchsorted(ends, places, right=True).clamp(max=WORDS - 1)
    counts = torch.zeros(WORDS, WORDS).scatter_add_(1, following, torch.ones(WORDS, PARTS))
    return counts / PARTS, following


def lines(g: torch.Generator, n: int, n_pairs: int | Int[Tensor, " n"]) -> Lines:
    """``n`` texts, with so many pairs in each, or a few less where they find no room."""
    row, words = torch.arange(n), LENGTH + 1
    tokens, back = _pairs(g, torch.as_tensor(n_pairs).expand(n))
    table, following = _language()
    text, cost = torch.empty(words, n, dtype=torch.long), torch.zeros(words, n)
    counts = torch.zeros(n, WORDS)
    for t in range(words):
        if t == 0:
            word = torch.randint(WORDS, (n,), generator=g)
        else:
            last = text[t - 1]
            next_ = following[last, torch.randint(PARTS, (n,), generator=g)]
            again = text[(torch.rand(n, generator=g) * t).long(), row]
            word = torch.where(torch.rand(n, generator=g) < 0.5, next_, again)
            cost[t] = -(0.5 * table[last, word] + 0.5 * counts[row, word] / t).log()
        text[t] = word
        counts[row, word] += 1
    free = tokens < 0
    nth = (free.cumsum(dim=1) - 1).clamp(min=0)  # a pair stands between two words of the text
    tokens = torch.where(free, text.T.gather(1, nth), tokens)
    return Lines(tokens, back, torch.where(free, cost.T.gather(1, nth), 0.0))


def _pairs(g: torch.Generator, wanted: Int[Tensor, " n"]) -> tuple[Tensor, Tensor]:
    """Tokens, -1 where there is no pair, and how far back: a pair begins at an even place."""
    n, places = len(wanted), (LENGTH + 1) // 2
    tokens = torch.full((n, LENGTH + 1), -1)
    back = torch.zeros(n, LENGTH + 1, dtype=torch.long)
    taken, row = torch.zeros(n, places, dtype=torch.bool), torch.arange(n)
    keys = torch.rand(n, KEYS, generator=g).argsort(dim=1)  # each text has its own order
    for j in range(int(wanted.max())):
        key, value = WORDS + keys[:, j], torch.randint(VALUES, (n,), generator=g)
        unplaced = row[wanted > j]
        for _ in range(12):  # tries to find room
            far = (4 * 32 ** torch.rand(len(unplaced), generator=g)).round().long()  # of two words
            first = (torch.rand(len(unplaced), generator=g) * (places - far)).long()
            fits = ~(taken[unplaced, first] | taken[unplaced, first + far])
            r, first, second = unplaced[fits], first[fits], (first + far)[fits]
            for place in (first, second):
                taken[r, place] = True
                tokens[r, 2 * place] = key[r]
                tokens[r, 2 * place + 1] = WORDS + KEYS + value[r]
                back[r, 2 * place] = back[r, 2 * place + 1] = -1
            back[r, 2 * second + 1] = 2 * far[fits]
            unplaced = unplaced[~fits]
    return tokens, back
