"""Chapter 10: the checks of its turns and exercises, with the mistakes that people make."""

import math

import torch
from torch.nn.functional import scaled_dot_product_attention

from transformer.attention import attention
from transformer.cache import KeyValueCache
from transformer.data.tokens import BOS_ID, EOS_ID
from transformer.decoding.search import keep_top_p
from transformer_book.turns import drawn
from transformer_book.your_turn import Question, YourTurn


def _greedy(log_p_after, max_len, stop=True, choose=torch.argmax):
    words = [BOS_ID]
    while len(words) <= max_len and not (stop and words[-1] == EOS_ID):
        words.append(choose(log_p_after(words)).item())
    return words[1:]


class Chain:
    """A model of V words: what follows depends on all the words so far."""

    def __init__(self, log_p, sway=0.0):
        self.log_p, self.sway = log_p, sway

    def __call__(self, words):
        ids = torch.tensor([words])[0]  # as a model reads them
        return (self.log_p[ids[-1]] + self.sway * self.log_p[ids].sum(0)).log_softmax(-1)

    def __repr__(self):
        return f"a model of {len(self.log_p)} words"


def _random_table(V, seed):
    (x,) = drawn(seed, (V, V))
    return (2 * x).log_softmax(dim=-1)


_even = [0.25, 0.25, 0.25, 0.25]
_ends_soon = torch.tensor([_even, [0.1, 0.1, 0.1, 0.7], _even, [0.1, 0.1, 0.7, 0.1]]).log()

check_greedy = YourTurn(
    "Your turn 10.1",
    _greedy,
    [
        (Chain(_ends_soon), 6),
        (Chain(_random_table(7, 3)), 5),
        *((Chain(_random_table(9, seed), 0.5), 4 + seed) for seed in range(3)),
    ],
    mistakes={
        "<bos> is read, not written": lambda *given: [BOS_ID, *_greedy(*given)],
        "<eos> belongs to the sentence": lambda *a: [w for w in _greedy(*a) if w != EOS_ID],
        "yours goes on after <eos>": lambda p, n: _greedy(p, n, stop=False),
        "max_len counts the words that you write": lambda p, n: _greedy(p, n + 1),
        "that is the least likely word": lambda p, n: _greedy(p, n, choose=torch.argmin),
        "the model reads all the words so far, not the last one": lambda p, n: _greedy(
            lambda words: p(words[-1:]), n
        ),
    },
)


def _step_by_loops(scores, log_p, K):
    V = log_p.size(1)
    sums = [scores[i] + log_p[i, w] for i in range(len(scores)) for w in range(V)]
    order = sorted(range(len(sums)), key=lambda n: -sums[n])[:K]
    beams, words = [n // V for n in order], [n % V for n in order]
    return torch.stack([sums[n] for n in order]), torch.tensor(beams), torch.tensor(words)


def _step_with(add=True, by_words=False, one_each=False):
    def step(scores, log_p, K):
        sums = scores[:, None] + log_p if add else log_p.clone()
        if one_each:
            best, words = sums.max(dim=1)
            return best[:K], torch.arange(len(best))[:K], words[:K]
        best, flat = sums.flatten().topk(K)
        n = len(scores) if by_words else log_p.size(1)
        return best, flat // n, flat % n

    return step


def _beams_of(k, V, K, seed):
    g = torch.Generator().manual_seed(seed)
    scores = -3 * torch.rand(k, generator=g)
    return scores, (2 * torch.randn(k, V, generator=g)).log_softmax(dim=-1), K


_drawn = torch.tensor([[0.4, 0.3, 0.3], [0.6, 0.2, 0.2]]).log()  # Figure 10.4
_never = torch.tensor([[-1.0, -math.inf, -math.inf], [-2.0, -1.5, -math.inf]])

check_beam = YourTurn(
    "Your turn 10.2",
    _step_by_loops,
    [
        (torch.tensor([0.4, 0.35]).log(), _drawn, 2),
        (torch.zeros(1), _drawn[1:], 1),
        (torch.tensor([-1.0, -0.2]), _never, 3),
        _beams_of(3, 5, 6, 0),
        _beams_of(4, 9, 3, 1),
    ],
    mistakes={
        "a beam's own log-probability counts, too": _step_with(add=False),
        "a place in the flat row is beam · V + word": _step_with(by_words=True),
        "two of the best may continue one beam": _step_with(one_each=True),
    },
)


def _top_p(p, enough):
    return keep_top_p(p.log()[None], enough).softmax(dim=-1)[0]


def _cut_in_order(p, enough):
    kept = p * (p.cumsum(dim=0) - p < enough)
    return kept / kept.sum()


def _stops_before(p, enough):
    kept = p * torch.stack([p[p >= each].sum() <= enough for each in p])
    return kept / kept.sum()


check_top_p = YourTurn(
    "Your turn 10.3",
    _top_p,
    [
        (torch.tensor([0.2, 0.5, 0.3]), 0.6),
        (torch.tensor([0.1, 0.15, 0.4, 0.05, 0.3]), 0.75),
        (torch.tensor([0.28, 0.24, 0.20, 0.16, 0.12]), 0.9),  # the flat one of Figure 10.7
        (torch.tensor([0.125, 0.5, 0.25, 0.125]), 0.75),  # two reach 0.75, to the last bit
    ],
    mistakes={
        "divide what is kept by its sum": lambda p, n: p * (_top_p(p, n) > 0),
        "begin with the likeliest, not with the first": _cut_in_order,
        "the word that reaches p is kept, too": _stops_before,
        "p is for the sum of the kept words, not for each": lambda p, n: p * (p >= n),
    },
)


def _cached(q, k_new, v_new, cache):
    kept = KeyValueCache(9)
    if cache[0].size(2):
        kept.update(*cache)
    pair = tuple(x.clone() for x in kept.update(k_new, v_new))
    return attention(q, *pair), pair


def _cached_with(order=1, values=True, keep=True):
    def step(q, k_new, v_new, cache):
        k, v = (
            torch.cat([old, new][::order], dim=2)
            for old, new in zip(cache, (k_new, v_new), strict=True)
        )
        v = v if values else torch.cat([v_new] * k.size(2), dim=2)
        return attention(q, k, v), (k, v) if keep else (k_new, v_new)

    return step


def _step_of(B, h, t, d, seed):
    *new, keys, values = drawn(seed, *3 * [(B, h, 1, d)], *2 * [(B, h, t, d)])
    return *new, (keys, values)


check_cache = YourTurn(
    "Your turn 10.4",
    _cached,
    [_step_of(1, 1, 1, 2, 0), _step_of(1, 2, 0, 3, 1), _step_of(2, 3, 4, 5, 2)],
    mistakes={
        "the new key and value come last, behind the kept ones": _cached_with(order=-1),
        "values are kept, too, not only keys": _cached_with(values=False),
        "return the longer pair: the next step needs it": _cached_with(keep=False),
    },
)

_alpha = math.log(math.log(0.31 / 9) / math.log(0.07)) / math.log(1.5)
check_10_1 = Question("Exercise 10.1", _alpha, within=0.015)
check_10_2 = Question("Exercise 10.2", 2, mistakes={0.5: "that makes 9 to 1 into 81 to 1"})
_per_key, _per_word = 2 * 6 * 512, 6 * (6 * 512**2 + 2 * 512 * 2048) + 512 * 37_000
check_10_3 = Question(
    "Exercise 10.3",
    _per_word / _per_key,
    mistakes={_per_word / 512: "2 N d_model for each key: 2 · 6 · 512"},
)
check_10_4 = Question(
    "Exercise 10.4",
    943_718_400,
    mistakes={
        629_145_600: "that is without the keys and values of the memory",
        943_718_400 // 4: "each of the 64 sentences has four beams",
    },
)


def _accept(draft, target):
    n = 0
    while n < len(draft) and draft[n] == target[n]:
        n += 1
    return target[: n + 1]


def _keeps_the_guess(draft, target):
    return [*draft, target[-1]][: len(_accept(draft, target))]


check_10_5 = YourTurn(
    "Exercise 10.5",
    _accept,
    [([5], [7, 3]), ([5, 7, 9], [5, 7, 9, 2]), ([5, 7, 9, 4], [5, 8, 9, 4, 2])],
    mistakes={
        "the target's own next word is free: add it": lambda d, t: _accept(d, t)[:-1],
        "the first wrong guess is replaced by the target's word": _keeps_the_guess,
        "after the first wrong guess the others are worthless": lambda d, t: t,
    },
)


def _groups(q, k, v):
    return scaled_dot_product_attention(q, k, v, enable_gqa=True)


def _groups_dealt_out(q, k, v):
    each = q.size(1) // k.size(1)
    return attention(q, k.repeat(1, each, 1, 1), v.repeat(1, each, 1, 1))


def _in_groups(seed: int, B: int, h: int, g: int, T: int, S: int, d_k: int) -> tuple:
    return drawn(seed, (B, h, T, d_k), (B, g, S, d_k), (B, g, S, d_k))


check_10_6 = YourTurn(
    "Exercise 10.6",
    _groups,
    [
        _in_groups(0, 1, 4, 2, 1, 3, 2),
        _in_groups(1, 2, 6, 2, 4, 5, 3),
        _in_groups(2, 2, 3, 3, 4, 1, 5),
        _in_groups(3, 1, 3, 1, 2, 4, 2),
    ],
    mistakes={
        "yours deals the key heads out as 1 2 1 2; neighbours share: 1 1 2 2": _groups_dealt_out
    },
)
