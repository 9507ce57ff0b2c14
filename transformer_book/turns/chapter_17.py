"""Chapter 17: the checks of its turns and exercises, with the mistakes that people make."""

from transformer_book.your_turn import Question, YourTurn


def _next_call(unread, budget):
    left, shares = budget - unread.count(1), []
    for n in unread:
        shares.append(1 if n == 1 else min(n, max(left, 0)))
        left -= shares[-1] if n > 1 else 0
    return shares


def _in_order(unread, budget):
    shares = []
    for n in unread:
        shares.append(min(n, budget))
        budget -= shares[-1]
    return shares


def _whole(unread, budget):
    shares = _next_call(unread, budget)
    return [m if m == n else 0 for m, n in zip(shares, unread, strict=True)]


check_next_call = YourTurn(
    "Your turn 17.1",
    _next_call,
    [
        ([1, 1, 100], 16),
        ([100, 1], 16),
        ([10, 10, 1], 16),
        ([9, 30, 30], 16),
        ([5, 9, 1], 64),
        ([1, 1, 40, 1], 2),
        ([40], 16),
    ],
    mistakes={
        "who has one unread word gets it, even after a long prompt": _in_order,
        "a prompt that doesn't fit is read in part": _whole,
        "what one prompt has taken, the next can't have": (
            lambda unread, budget: [
                1 if n == 1 else min(n, max(budget - unread.count(1), 0)) for n in unread
            ]
        ),
        "the words of those who write are part of the budget, too": (
            lambda unread, budget: _next_call(unread, budget + unread.count(1))
        ),
    },
)
check_place = YourTurn(
    "Your turn 17.2",
    lambda table, size, i: table[i // size] * size + i % size,
    [
        ([2, 0], 4, 5),
        ([2, 0], 4, 0),
        ([7, 1, 3], 16, 40),
        ([7, 1, 3], 16, 31),
        ([5], 3, 2),
    ],
    mistakes={
        "the table says on which page; within it the words stand in order": (
            lambda table, size, i: table[i // size] * size
        ),
        "a page begins at its number times `size`": (
            lambda table, size, i: table[i // size] + i % size
        ),
        "pages need not lie in the order of the text": lambda table, size, i: i,
    },
)
check_17_1 = Question(
    "Exercise 17.1",
    0.6,
    mistakes={
        0.4: "this is the share for somebody",
        0.75: "all four rows are computed 100 times, and 160 of these are words of an answer",
    },
)
check_17_2 = Question(
    "Exercise 17.2",
    423,
    mistakes={
        427: "a page is taken whole, the last one of a text, too",
        544: "the weights have to be kept in the same memory",
        484: "the server may use only nine tenths of the memory",
        52: "this is with a room of 8,192 words for each",
    },
)


def _shared(known, prompt, size):
    n = 0
    while n + size < len(prompt) and known[n : n + size] == prompt[n : n + size]:
        n += size
    return n


def _word_by_word(known, prompt, size):
    pairs = zip(known, prompt[:-1], strict=False)
    alike = [a == b for a, b in pairs]
    return alike.index(False) if False in alike else len(alike)


check_17_3 = YourTurn(
    "Exercise 17.3",
    _shared,
    [
        ([5, 6, 7, 8], [5, 6, 7, 8, 9], 2),
        ([5, 6, 7, 8], [5, 6, 7, 8], 2),
        ([5, 6, 7, 8], [5, 6, 7, 9, 3], 2),
        ([5, 6, 7, 8, 9, 4], [5, 6, 7, 8, 9, 4, 8, 2], 4),
        ([3, 6, 7, 8], [5, 6, 7, 8, 1], 2),
        ([5, 6, 7, 8, 1, 1], [5, 6, 4, 8, 1, 1, 2], 2),
    ],
    mistakes={
        "only whole pages are shared": _word_by_word,
        "the last word of the prompt has to be read, for it says which word is next": (
            lambda known, prompt, size: _shared(known, [*prompt, -1], size)
        ),
        "a page after one that differs can't be shared: its keys know what came before": (
            lambda known, prompt, size: sum(
                size
                for n in range(0, len(prompt) - size, size)
                if known[n : n + size] == prompt[n : n + size]
            )
        ),
    },
)
check_17_4 = Question(
    "Exercise 17.4",
    2.2,
    mistakes={
        1.4: "the draft's four steps cost something, too",
        1.6: "four guesses are four steps of the draft, one after another",
        0.8: "this is what the draft costs alone",
    },
)


def _expected(a, n):
    return sum(a**i for i in range(n + 1))


check_17_5 = YourTurn(
    "Exercise 17.5",
    _expected,
    [(0.5, 1), (0.5, 2), (0.9, 4), (0.2, 8), (0.7, 3)],
    mistakes={
        "one word comes in any case, the target's own": lambda a, n: _expected(a, n) - 1,
        "a guess counts only if all before it were right": lambda a, n: 1 + n * a,
        "all n may be right, and then there is still the target's word": (
            lambda a, n: _expected(a, n - 1)
        ),
    },
)
