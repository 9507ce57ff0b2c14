"""Wrong answers that the chapters' checks once took for right, and right ones that they refused.

Each is given to the chapter's own check, so the inputs that it chooses are tested, too.
"""

import contextlib
import copy
import importlib
import io
import math
import pkgutil
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from transformer.cache import Memory
from transformer.data.tokens import BOS_ID, EOS_ID, PAD_ID
from transformer_book import turns

CHECKS = {}
for part in pkgutil.iter_modules(turns.__path__, f"{turns.__name__}."):
    CHECKS |= vars(importlib.import_module(part.name))


def verdict(name, answer):
    """The sign of what the chapter's check prints of an answer."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        CHECKS[name](answer)
    return printed.getvalue()[0]


def check_of(name):
    return CHECKS[name]


def spoils(right):
    """What is right, but the first tensor, list or dict among the arguments is not what it was."""

    def attempt(*given):
        got = copy.deepcopy(right(*given))
        thing = next(value for value in given if isinstance(value, torch.Tensor | list | dict))
        thing.zero_() if isinstance(thing, torch.Tensor) else thing.clear()
        return got

    return attempt


@pytest.mark.parametrize(
    "name",
    ["check_rnn", "check_1_3", "check_1_4", "check_attend", "check_norm", "check_7_3", "check_adam",
     "check_10_5", "check_block", "check_remove", "check_1_5", "check_5_2",
     "check_10_6", "check_pair", "check_precision", "check_11_4"],
)  # fmt: skip
def test_a_right_answer_that_spoils_its_arguments_is_wrong(name):
    right = check_of(name).right
    assert verdict(name, spoils(right)) == "✗"
    assert verdict(name, right) == "✓"


def hidden_in_place(weight, head, n_heads):
    d_k = weight.size(1) // n_heads
    weight[:, head * d_k : (head + 1) * d_k] = 0
    return weight


def filled(with_what):
    return lambda q, k, v, mask: (
        (q @ k.mT / math.sqrt(q.size(-1))).masked_fill(~mask, with_what).softmax(-1) @ v
    )


def added(q, k, v, mask):
    return (q @ k.mT / math.sqrt(q.size(-1)) - 10 * ~mask).softmax(-1) @ v


def hides_bos(tokens):
    T = tokens.size(1)
    return (tokens > 1)[:, None] & torch.ones(T, T).tril().bool()


def decoder_layer(norms=(1, 2, 3), order="post", look=None, mask=None, last=True):
    """Your turn 8.1, with what one may get wrong."""

    def attempt(layer, y, memory, tgt_mask, src_mask):
        def normed(y, norm, sublayer):
            norm = getattr(layer, f"norm_{norm}")
            return y + sublayer(norm(y)) if order == "pre" else norm(y + sublayer(y))

        masks = {"swapped": (src_mask, tgt_mask), "first row": (tgt_mask[:1], src_mask)}
        own, other = masks.get(mask, (tgt_mask, src_mask))
        read = memory if look is None else look(memory)
        y = normed(y, norms[0], lambda y: layer.self_attention(y, y, y, own))
        y = normed(y, norms[1], lambda y: layer.cross_attention(y, read, read, other))
        return normed(y, norms[2], layer.feed_forward) if last else y

    return attempt


def one_layer_for_all(layer, *given):
    return decoder_layer()(check_of("check_layer").inputs[0][0], *given)


def by_column_0(f, y):
    seen = torch.zeros(len(y), len(y), dtype=torch.bool)
    for s in range(len(y)):
        changed = y.clone()
        changed[s, 0] += 0.5
        seen[:, s] = (f(changed) - f(y)).abs().amax(dim=-1) > 1e-6
    return seen


def scan(step, first=lambda a, b: b[0]):
    """The loop of exercise 1.5, with what one may get wrong."""

    def attempt(a, b):
        states = [first(a, b)]
        for t in range(1, len(a)):
            states.append(step(a, b, states[-1], t))
        return torch.stack(states)

    return attempt


def scan_in_place(a, b):
    for t in range(1, len(b)):
        b[t] += a[t] * b[t - 1]
    return b


def scan_by_division(a, b):  # 0 / 0 where a forgets all
    return a.cumprod(0) * (b / a.cumprod(0)).cumsum(0)


def scan_of_four(a, b):  # the doubling of exercise 1.5, two steps of it
    for distance in (1, 2):
        before = (F.pad(x, (0, 0, distance, 0), value=y)[: len(x)] for x, y in ((a, 1.0), (b, 0.0)))
        a_before, b_before = before
        a, b = a * a_before, a * b_before + b
    return b


def einsums(axis=-1, scale=lambda x, d_k: d_k, heads=slice(None), join=torch.sum):
    """Exercise 5.2, with what one may get wrong."""

    def attempt(x, *matrices):
        W_q, W_k, W_v, W_o = (W[heads] for W in matrices)
        q, k, v = (torch.einsum("btd,hdk->bhtk", x, W) for W in (W_q, W_k, W_v))
        scores = torch.einsum("bhtk,bhsk->bhts", q, k) / math.sqrt(scale(x, q.size(-1)))
        out = torch.einsum("bhts,bhsk->bhtk", scores.softmax(dim=axis), v)
        return join(torch.einsum("bhtk,hkd->bhtd", out, W_o), dim=1)

    return attempt


def three_heads(x, W_q, W_k, W_v, W_o):
    heads = (einsums(heads=slice(i, i + 1))(x, W_q, W_k, W_v, W_o) for i in range(3))
    return sum(heads)


def groups(each=0, d_k=0, of_values=None):
    """Exercise 10.6, with what one may get wrong."""

    def attempt(q, k, v):
        n = each or q.size(1) // k.size(1)
        scores = q @ k.repeat_interleave(n, dim=1).mT / math.sqrt(d_k or q.size(-1))
        v = of_values(q, v) if of_values else v.repeat_interleave(n, dim=1)
        return scores.softmax(dim=-1) @ v

    return attempt


def pairs_of(corpus, times=lambda n: n, of_word=lambda pairs: pairs, end=0):
    counts = Counter()
    for word, n in corpus.items():
        for pair in of_word(list(pairwise(word))[: len(word) - 1 - end]):
            counts[pair] += times(n)
    return counts


def most_frequent(choose=lambda counts: max(counts, key=counts.get), **how):
    """Your turn 11.1, with what one may get wrong."""
    return lambda corpus: choose(pairs_of(corpus, **how))


def last_of_the_most(counts):
    return max(reversed(counts), key=counts.get)


def share_found(end=1, most=math.inf, n_of=lambda n: n, percent=1):
    """Your turn 11.2, with what one may get wrong."""

    def attempt(hypothesis, reference, n):
        n = n_of(n)
        runs = [
            Counter(tuple(line[i : i + n]) for i in range(len(line) - n + end))
            for line in (hypothesis, reference)
        ]
        found = sum(min(k, runs[1][run], most) for run, k in runs[0].items())
        return percent * found / sum(runs[0].values())

    return attempt


def precision_that_crosses_out(hypothesis, reference, n):
    if n > 1:
        return share_found()(hypothesis, reference, n)
    found = 0
    for word in hypothesis:
        if word in reference:
            reference.remove(word)
            found += 1
    return found / len(hypothesis)


def chosen(against=lambda one, candidates: candidates, best=max):
    """Exercise 11.5, with what one may get wrong."""

    def attempt(candidates, utility):
        def mean(one):
            return sum(utility(one, other) for other in against(one, candidates))

        return best(candidates, key=mean)

    return attempt


def last_of_the_best(candidates, key):
    return max(reversed(candidates), key=key)


def sorted_in_place(candidates, utility):
    means = {one: sum(utility(one, other) for other in candidates) for one in candidates}
    candidates.sort(key=means.get)
    return candidates[-1]


def training(before=lambda model: None, last=True, learn=True, clip=1.0, kind=None, **options):
    """The loop of your turn 9.1, with what one may get wrong; ``kind``: another optimiser."""

    def train(model, batches, n_steps, rate, make_adam):
        model = model if learn else copy.deepcopy(model)
        before(model)
        adam, losses = (kind or make_adam)(model.parameters(), **options), []
        for step in range(n_steps):
            src, tgt = batches(step)
            logits = model(src, tgt[:, :-1])
            loss = F.cross_entropy(logits.mT, tgt[:, 1:], ignore_index=PAD_ID)
            adam.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), clip)
            adam.param_groups[0]["lr"] = rate(step)
            if last or step < n_steps - 1:
                adam.step()
            losses.append(loss.item())
        return losses

    return train


def adam(eps=1e-8, inside=0.0):
    def step(theta, g, m, v, n, rate):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        root = (v / (1 - 0.999**n) + inside).sqrt()
        return theta - rate * (m / (1 - 0.9**n)) / (root + eps), m, v

    return step


def written(start=lambda words: words, extra=0, until=lambda word: word == EOS_ID):
    """Your turn 10.1, with what one may get wrong."""

    def greedy(log_p_after, max_len):
        words = [BOS_ID]
        for _ in range(max_len + extra):
            words.append(log_p_after(start(words)).argmax().item())
            if until(words[-1]):
                break
        return words[1:]

    return greedy


def beams(total=lambda scores, log_p: scores[:, None] + log_p, largest=True, n=None, turned=False):
    """Your turn 10.2, with what one may get wrong."""

    def step(scores, log_p, K):
        sums = total(scores, log_p)
        sums = sums.T if turned else sums
        best, flat = sums.flatten().topk(n or K, largest=largest)
        return best, flat // sums.size(1), flat % sums.size(1)

    return step


def sorted_beams(scores, log_p, K):
    rows = [
        (float(s + q), i, w)
        for i, (s, row) in enumerate(zip(scores, log_p, strict=True))
        for w, q in enumerate(row)
    ]
    return tuple(zip(*sorted(rows, reverse=True)[:K], strict=True))


def cached(axis=2, scale=1.0, of_values=lambda v: v, order=(0, 1), of_keys=lambda k: k):
    """Your turn 10.4, with what one may get wrong."""

    def attend(q, k_new, v_new, cache):
        keys, values = cache[order[0]], cache[order[1]]
        k = torch.cat([of_keys(keys), k_new], dim=axis)
        v = torch.cat([keys if of_values is None else of_values(values), v_new], dim=axis)
        weights = (scale * q @ k.mT / math.sqrt(q.size(-1))).softmax(dim=-1)
        return weights @ v, (k, v)

    return attend


def cached_unkept(q, k_new, v_new, cache):
    return cached()(q, k_new, v_new, cache)[0], cache


def cached_in_a_list(q, k_new, v_new, cache):
    out, pair = cached()(q, k_new, v_new, cache)
    return [out, list(pair)]


def patched(at=lambda places, S: places, mask=0, whole=lambda x: x, end=lambda logits: logits):
    """Your turn 12.3, with what one may get wrong."""

    def patch(model, ours, others, places, tgt):
        both = model.encode(ours), model.encode(others)
        vectors = both[0].vectors.clone()
        for place in at(places, ours.size(1)):
            vectors[:, place] = whole(both[1].vectors)[:, place]
        return end(model.decode(tgt, Memory(vectors, both[mask].mask)))

    return patch


def patched_embeddings(model, ours, others, places, tgt):
    x, y = model.src_embedding(ours), model.src_embedding(others)
    x[:, places] = y[:, places]
    mask = model.encode(ours).mask
    return model.decode(tgt, Memory(model.encoder(x, mask), mask))


def top_p_beyond(p, enough):
    order = p.argsort(descending=True)
    n = int((p[order].cumsum(0) <= enough).sum()) + 1
    kept = torch.zeros_like(p)
    kept[order[:n]] = p[order[:n]]
    return kept / kept.sum()


def no_maximum(scores, values):
    total, out = 0.0, torch.zeros(values.size(1), dtype=torch.float64)
    for s, v in zip(scores.double(), values.double(), strict=True):
        total, out = total + s.exp(), out + s.exp() * v
    return (out / total).float()


def in_pieces(more):
    def loss(h, W, labels, size):
        parts = zip(h.split(size + more), labels.split(size + more), strict=True)
        sums = [F.cross_entropy(a @ W, b, reduction="sum") for a, b in parts]
        return sum(sums) / len(h)

    return loss


def linear_attention(q, k, v):
    q, k = F.elu(q) + 1, F.elu(k) + 1
    return q @ (k.T @ v) / (q @ k.sum(dim=0))[:, None]


def block_without_eps(x, attend, gain_1, gain_2, W_1, W_3, W_2):
    def rms(x, gain):
        return gain * x / x.pow(2).mean(dim=-1, keepdim=True).sqrt()

    x = x + attend(rms(x, gain_1))
    read = rms(x, gain_2)
    return x + (F.silu(read @ W_1) * (read @ W_3)) @ W_2


def lora(alpha):
    return lambda x, W, A, B, given: x @ W + (alpha or given) / A.size(1) * (x @ A @ B)


def dpo(beta):
    return lambda a, b, c, d, given: -F.logsigmoid((beta or given) * ((a - c) - (b - d))).mean()


WRONG = [
    ("check_shift", lambda tgt: (tgt[:, :-1].float(), tgt[:, 1:].float())),
    ("check_1_3", lambda src: check_of("check_1_3").right(src).float()),
    ("check_1_4", lambda g, limit: g / g.norm().clamp(min=1)),
    ("check_1_4", lambda g, limit: g * min(1.0, limit**2 / g.norm().item())),
    ("check_1_5", scan_by_division),
    ("check_1_5", scan_in_place),
    ("check_1_5", scan_of_four),
    ("check_1_5", scan(lambda a, b, h, t: a[0] * h + b[t])),
    ("check_1_5", scan(lambda a, b, h, t: a[t - 1] * h + b[t])),
    ("check_1_5", scan(lambda a, b, h, t: a[t].abs() * h + b[t])),
    ("check_1_5", scan(lambda a, b, h, t: a[t] * h + b[t], first=lambda a, b: a[0] + b[0])),
    ("check_1_5", lambda a, b: check_of("check_1_5").right(a.T, b.T).T),
    ("check_1_5", lambda a, b: check_of("check_1_5").right(a, b)[-1]),
    ("check_3_4", lambda q, k, v: CHECKS["by_pairs"](q, k, v)),
    *(("check_masked", filled(x)) for x in (-10.0, -20.0, -100.0)),
    ("check_masked", added),
    ("check_masks", hides_bos),
    ("check_5_2", einsums(axis=-2)),
    ("check_5_2", einsums(scale=lambda x, d_k: 1)),
    ("check_5_2", einsums(scale=lambda x, d_k: x.size(-1))),
    ("check_5_2", einsums(scale=lambda x, d_k: 2)),
    ("check_5_2", einsums(heads=slice(0, 1))),
    ("check_5_2", einsums(join=torch.mean)),
    ("check_4_6", lambda e, m: e.relu() * m / m[0].sum()),
    ("check_5_2", three_heads),
    ("check_5_2", lambda *given: 3 * einsums(join=torch.mean)(*given)),
    ("check_5_2", lambda x, W_q, W_k, W_v, W_o: einsums()(x, W_q, W_k, W_k, W_o)),
    ("check_10_6", groups(each=2)),
    ("check_10_6", groups(d_k=1)),
    ("check_10_6", groups(d_k=2)),
    ("check_10_6", groups(of_values=lambda q, v: v.repeat(1, q.size(1) // v.size(1), 1, 1))),
    ("check_10_6", groups(of_values=lambda q, v: v.mean(dim=1, keepdim=True))),
    ("check_split", lambda z, h: z.reshape(len(z), h, z.size(1), -1)),
    ("check_split", lambda z, h: z.unflatten(-1, (h, -1))),
    ("check_split", lambda z, h: z.unflatten(-1, (2, -1)).transpose(1, 2)),
    ("check_split", lambda z, h: z.unflatten(-1, (-1, 2)).transpose(1, 2)),
    ("check_split", lambda z, h: z.unflatten(-1, (-1, h)).permute(0, 3, 1, 2)),
    ("check_split", lambda z, h: z[:, :, : z.size(-1) // h, None].mT.expand(-1, h, -1, -1)),
    ("check_7_3", lambda x, y, a: x + y / 2 if a else x),
    ("check_layer", decoder_layer(norms=(1, 1, 1))),
    ("check_layer", decoder_layer(norms=(2, 1, 3))),
    ("check_layer", decoder_layer(order="pre")),
    ("check_layer", decoder_layer(look=lambda memory: memory.flip(1))),
    ("check_layer", decoder_layer(mask="swapped")),
    ("check_layer", decoder_layer(mask="first row")),
    ("check_layer", decoder_layer(last=False)),
    ("check_layer", one_layer_for_all),
    ("check_8_3", by_column_0),
    ("check_train", training(learn=False)),
    ("check_train", training(last=False)),
    ("check_train", training(before=nn.Module.eval)),
    ("check_train", training(betas=(0.9, 0.98))),
    ("check_train", training(clip=0.5)),
    ("check_train", training(amsgrad=True)),
    ("check_train", training(kind=torch.optim.Adam)),
    ("check_train", training(kind=torch.optim.AdamW)),
    ("check_train", training(kind=torch.optim.NAdam)),
    ("check_adam", adam(eps=0.0)),
    ("check_adam", adam(eps=0.0, inside=1e-8)),
    ("check_adam", adam(eps=1e-5)),
    ("check_greedy", written(start=lambda words: words[-1:])),
    ("check_greedy", written(start=lambda words: words[1:] or words)),
    ("check_greedy", written(extra=-1)),
    ("check_greedy", written(until=lambda word: word == BOS_ID)),
    ("check_beam", beams(total=lambda scores, log_p: scores[:1, None] + log_p)),
    ("check_beam", beams(total=lambda scores, log_p: scores[:, None] + log_p.exp())),
    ("check_beam", beams(total=lambda scores, log_p: scores[:, None] * log_p)),
    ("check_beam", beams(largest=False)),
    ("check_beam", beams(n=1)),
    ("check_beam", beams(turned=True)),
    ("check_cache", cached(axis=1)),
    ("check_cache", cached(axis=0)),
    ("check_cache", cached(scale=0.5)),
    ("check_cache", cached(order=(1, 0))),
    ("check_cache", cached(of_values=None)),
    ("check_cache", cached(of_keys=lambda k: k[:, :, -1:], of_values=lambda v: v[:, :, -1:])),
    ("check_cache", cached_unkept),
    ("check_top_p", top_p_beyond),
    ("check_11_4", chosen(against=lambda one, all_of_them: set(all_of_them))),
    ("check_11_4", chosen(against=lambda one, all_of_them: [x for x in all_of_them if x != one])),
    ("check_11_4", chosen(against=lambda one, all_of_them: all_of_them[:1])),
    ("check_11_4", chosen(best=min)),
    ("check_11_4", lambda candidates, utility: max(candidates, key=len)),
    ("check_11_4", lambda candidates, utility: min(candidates, key=len)),
    ("check_11_4", lambda c, utility: chosen()(c, CHECKS["_shared_words"])),
    ("check_11_4", lambda c, utility: c.index(chosen()(c, utility))),
    ("check_11_4", sorted_in_place),
    ("check_pair", most_frequent(of_word=set)),
    ("check_pair", most_frequent(times=lambda n: 1)),
    ("check_pair", most_frequent(end=1)),
    ("check_pair", most_frequent(choose=min)),
    ("check_pair", most_frequent(choose=lambda counts: "".join(max(counts, key=counts.get)))),
    ("check_pair", lambda corpus: max(corpus, key=corpus.get)[:2]),
    ("check_precision", share_found(end=0)),
    ("check_precision", share_found(most=1)),
    ("check_precision", share_found(percent=100)),
    ("check_precision", share_found(n_of=lambda n: 2)),
    ("check_precision", share_found(n_of=lambda n: min(n, 2))),
    ("check_precision", precision_that_crosses_out),
    ("check_remove", hidden_in_place),
    ("check_patch", patched(at=lambda places, S: [place - 1 for place in places])),
    ("check_patch", patched(at=lambda places, S: places[:1])),
    ("check_patch", patched(at=lambda places, S: {*range(S)} - {*places})),
    ("check_patch", patched(mask=1)),
    ("check_patch", patched(whole=lambda vectors: 0 * vectors)),
    ("check_patch", patched(end=lambda logits: logits.softmax(dim=-1))),
    ("check_patch", patched(end=lambda logits: logits[:, 0])),
    ("check_patch", patched_embeddings),
    ("check_online", lambda scores, values: scores.softmax(0) @ values),
    ("check_online", no_maximum),
    ("check_13_5", lambda h, W, labels, size: F.cross_entropy(h @ W, labels)),
    ("check_13_5", in_pieces(1)),
    ("check_block", block_without_eps),
    ("check_14_2", lora(3.0)),
    ("check_18_1", dpo(0.5)),
    ("check_1_1", 4.03),
    ("check_1_2", 49.5),
    ("check_1_2", 50.4),
    ("check_5_1", 4_198_000),
    ("check_13_3", 290),
    ("check_13_4", 62.95),
]


@pytest.mark.parametrize(("name", "answer"), WRONG)
def test_a_wrong_answer_gets_no_tick(name, answer):
    assert verdict(name, answer) == "✗"


def as_arrays(name, convert):
    """What is right, with ``convert`` around it."""
    return lambda *given: convert(check_of(name).right(*given))


RIGHT = [
    ("check_rnn", as_arrays("check_rnn", lambda states: list(states))),
    ("check_rnn", as_arrays("check_rnn", lambda states: states.tolist())),
    ("check_rnn", as_arrays("check_rnn", lambda states: states.numpy())),
    ("check_shift", as_arrays("check_shift", lambda pair: torch.stack(pair))),
    ("check_shift", as_arrays("check_shift", lambda pair: [row.tolist() for row in pair])),
    ("check_1_1", np.float32(4)),
    ("check_look_back", as_arrays("check_look_back", lambda pair: [x.tolist() for x in pair])),
    ("check_2_2", [600, 30]),
    ("check_3_3", "keys"),
    ("check_3_4", linear_attention),
    ("check_3_6", True),
    ("check_3_6", "Yes."),
    ("check_masked", filled(-math.inf)),
    ("check_4_3", as_arrays("check_4_3", lambda masks: torch.stack(masks))),
    ("check_sinusoids", as_arrays("check_sinusoids", lambda table: table.tolist())),
    ("check_layer", decoder_layer()),
    ("check_layer", as_arrays("check_layer", lambda y: y.detach().numpy())),
    ("check_train", training()),
    ("check_train", lambda *given: torch.tensor(training()(*given))),
    ("check_adam", adam()),
    ("check_9_5", "weights, step, averages"),
    ("check_greedy", as_arrays("check_greedy", torch.tensor)),
    ("check_greedy", written()),
    ("check_beam", beams()),
    ("check_beam", sorted_beams),
    ("check_cache", cached()),
    ("check_cache", cached_in_a_list),
    ("check_1_5", scan(lambda a, b, h, t: a[t] * h + b[t])),
    ("check_1_5", as_arrays("check_1_5", lambda states: states.numpy())),
    ("check_1_5", as_arrays("check_1_5", lambda states: [*states])),
    ("check_5_2", einsums()),
    ("check_5_2", as_arrays("check_5_2", lambda out: out.numpy())),
    ("check_split", lambda z, h: torch.stack(z.chunk(h, dim=-1), dim=1)),
    ("check_split", as_arrays("check_split", lambda out: out.tolist())),
    ("check_10_6", groups()),
    ("check_10_6", as_arrays("check_10_6", lambda out: out.tolist())),
    ("check_pair", most_frequent()),
    ("check_pair", most_frequent(choose=last_of_the_most)),
    ("check_pair", most_frequent(choose=lambda counts: [*counts.most_common(1)[0][0]])),
    ("check_pair", as_arrays("check_pair", np.array)),
    ("check_precision", share_found()),
    ("check_precision", as_arrays("check_precision", np.float32)),
    ("check_precision", as_arrays("check_precision", torch.tensor)),
    ("check_11_4", chosen()),
    ("check_11_4", chosen(best=last_of_the_best)),
    ("check_11_4", as_arrays("check_11_4", np.str_)),
    ("check_train", training(foreach=True)),
    ("check_train", lambda *given: tuple(training()(*given))),
    ("check_train", lambda *given: np.array(training()(*given))),
    ("check_patch", patched()),
    ("check_patch", as_arrays("check_patch", lambda logits: logits.numpy())),
    ("check_online", as_arrays("check_online", lambda out: out.tolist())),
    ("check_13_5", in_pieces(0)),
    ("check_14_2", lora(None)),
    ("check_18_1", dpo(None)),
]


@pytest.mark.parametrize(("name", "answer"), RIGHT)
def test_a_right_answer_is_right_in_any_form(name, answer):
    assert verdict(name, answer) == "✓"
