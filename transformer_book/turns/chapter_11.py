"""Chapter 11: the checks of its turns and exercises, with the mistakes that people make."""

import math
from collections import Counter

import torch

from transformer_book.your_turn import Question, YourTurn


def _pairs(corpus, weigh=lambda n: n, step=1):
    pairs: Counter = Counter()
    for word, n in corpus.items():
        for i in range(len(word) - step):
            pairs[word[i], word[i + step]] += weigh(n)
    return pairs


def _best_pair(corpus, **how):
    pairs = _pairs(corpus, **how)
    return max(pairs, key=pairs.get)


def _corpus(seed, letters, n_words):
    g = torch.Generator().manual_seed(seed)
    corpus = {}
    for _ in range(n_words):
        length = int(torch.randint(2, 6, (1,), generator=g))
        ids = torch.randint(len(letters), (length,), generator=g).tolist()
        corpus[tuple(letters[i] for i in ids)] = int(torch.randint(1, 9, (1,), generator=g))
    return corpus


_FIVE = {"Hund": 6, "Hunde": 3, "Hut": 2, "Hand": 4, "Sand": 3}
_MERGED = {("H", "u", "nd"): 6, ("H", "u", "nd", "e"): 3, ("H", "u", "t"): 2,
           ("H", "a", "nd"): 4, ("S", "a", "nd"): 3}  # fmt: skip

check_pair = YourTurn(
    "Your turn 11.1",
    _best_pair,
    [
        ({("H", "u", "t"): 1, ("a", "b"): 5, ("u", "t"): 1},),
        (_corpus(1, "abc", 5),),
        (_corpus(5, "abcde", 8),),
        ({tuple(word): n for word, n in _FIVE.items()},),
        (_MERGED,),
    ],
    mistakes={
        "a word that comes six times counts six times": lambda c: _best_pair(c, weigh=lambda n: 1),
        "count neighbours: pieces i and i + 1": lambda c: _best_pair(c, step=2),
        "return the pair, without its count": lambda c: _pairs(c).most_common(1)[0],
        "the most frequent, not the rarest": lambda c: _pairs(c).most_common()[-1][0],
    },
)


def _runs(line, n):
    return Counter(tuple(line[i : i + n]) for i in range(len(line) - n + 1))


def _precision(h, r, n):
    return (_runs(h, n) & _runs(r, n)).total() / _runs(h, n).total()


def _unclipped(h, r, n):
    found = [k for run, k in _runs(h, n).items() if run in _runs(r, n)]
    return sum(found) / _runs(h, n).total()


def _as_sets(h, r, n):
    return len(set(_runs(h, n)) & set(_runs(r, n))) / len(_runs(h, n))


def _recall(h, r, n):
    return (_runs(h, n) & _runs(r, n)).total() / _runs(r, n).total()


_WANTED = ["A", "cat", "sits", "on", "top", "of", "a", "store", "sign", "."]
_TRIES = (["A", "cat", "sits", "on", "top", "of", "a", "sign", "."],
          ["A", "cat", "sits", "on", "top", "of", "a", "sign", "on", "a", "sign", "."])  # fmt: skip

check_precision = YourTurn(
    "Your turn 11.2",
    _precision,
    [
        (["a", "a", "a", "b"], ["a", "b", "a"], 1),
        (["the", "the", "cat"], ["the", "cat", "the", "dog", "sleeps"], 2),
        *((line, _WANTED, n) for line in _TRIES for n in (1, 2, 3, 4)),
    ],
    mistakes={
        "an n-gram counts at most as often as the reference has it": _unclipped,
        "count each n-gram as often as it comes, not once": _as_sets,
        "divide by what the hypothesis has, not the reference": _recall,
        "that is for single words: take runs of n": lambda h, r, n: _precision(h, r, 1),
    },
)

check_11_1 = Question(
    "Exercise 11.1",
    math.exp(1 - 1 / 0.9),
    mistakes={
        0.9: "the exponent is 1 - r/h",
        math.exp(-0.1): "divide by the hypothesis's length",
    },
    within=0.004,
)
check_11_2 = Question(
    "Exercise 11.2",
    5 * 0.6 * 0.4 / (4 * 0.6 + 0.4),
    mistakes={0.48: "recall counts more: β = 2", 0.5: "not the mean: Equation 11.3"},
)


def _merge(word, pair):
    pieces: list[str] = []
    for piece in word:
        if pieces and (pieces[-1], piece) == tuple(pair):
            pieces[-1] += piece
        else:
            pieces.append(piece)
    return tuple(pieces)


def _segment(word, merges, skip):
    pieces = tuple(word)
    for i, pair in enumerate(merges):
        pieces = pieces if i in skip else _merge(pieces, pair)
    return list(pieces)


_MERGES = [("n", "d"), ("H", "u"), ("Hu", "nd"), ("a", "nd"), ("H", "and")]

check_11_3 = YourTurn(
    "Exercise 11.3",
    _segment,
    [("Hund", _MERGES, {0}), ("Hunde", _MERGES, {1}), ("Sand", _MERGES, set())],
    mistakes={
        "the merges in skip are left out": lambda w, m, s: _segment(w, m, set()),
        "the others are left out": lambda w, m, s: _segment(w, m, set(range(len(m))) - s),
        "the order of the merges counts": lambda w, m, s: _segment(w, m[::-1], s),
    },
)


def _mbr(candidates, utility):
    values = [sum(utility(one, other) for other in candidates) for one in candidates]
    return candidates[values.index(max(values))]


def _shared_words(one, other):  # the share of one's words that the other has
    return sum(word in other.split() for word in one.split()) / len(one.split())


check_11_4 = YourTurn(
    "Exercise 11.4",
    _mbr,
    [
        (["a b", "a c d", "a"], _shared_words),
        (["the cat", "a cat sits", "a cat sits here", "dogs"], _shared_words),
        (["x y z", "x", "y z x x", "q"], _shared_words),
        (["q r", "x y", "x z", "q r"], _shared_words),  # who is drawn twice, counts twice
        (["a", "a b c d", "a b"], lambda one, other: -abs(len(one) - len(other))),
    ],
    mistakes={
        "the highest mean utility, not the lowest": lambda c, utility: _mbr(
            c, lambda one, other: -utility(one, other)
        ),
        "utility(one, other): the candidate comes first": lambda c, utility: _mbr(
            c, lambda one, other: utility(other, one)
        ),
    },
)
