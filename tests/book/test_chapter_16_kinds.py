"""Chapter 16's kinds of attention, the texts that they read, and their training, against others.

Theirs are Hugging Face's models of one layer, made here with random weights.
"""

import math
from itertools import pairwise

import pytest
import torch
from torch.testing import assert_close
from transformers import (
    DeepseekV2Config,
    DeepseekV2Model,
    DeepseekV3Config,
    DeepseekV3Model,
    MistralConfig,
    MistralModel,
    Qwen3NextConfig,
    Qwen3NextModel,
)

from tests.package.test_model import shaken
from transformer.positional import RotaryPositions
from transformer.runtime import default_device
from transformer_book.experiments.chapter_16 import afterwards, caches, together
from transformer_book.experiments.chapter_16.caches import (
    FAR,
    KINDS,
    TUNING,
    best_by_median,
    page,
    recall_model,
    told,
)
from transformer_book.experiments.chapter_16.lines import (
    DISTANCES,
    KEYS,
    LENGTH,
    PARTS,
    VALUES,
    WORDS,
    Lines,
    _language,
    lines,
)
from transformer_book.experiments.chapter_16.together import Together
from transformer_book.experiments.runs import Run

SIZES = {
    **{"vocab_size": 29, "hidden_size": 24, "num_hidden_layers": 1, "num_attention_heads": 3},
    **{"intermediate_size": 16, "max_position_embeddings": 64, "pad_token_id": None},
}
LATENT = {
    **{"q_lora_rank": None, "kv_lora_rank": 10, "qk_rope_head_dim": 4, "qk_nope_head_dim": 8},
    **{"v_head_dim": 8, "head_dim": 4, "num_key_value_heads": 3, "first_k_dense_replace": 1},
}
DELTA = {
    **{"linear_num_key_heads": 3, "linear_num_value_heads": 3, "linear_key_head_dim": 8},
    **{"linear_value_head_dim": 8, "linear_conv_kernel_dim": 4, "mlp_only_layers": [0]},
    "layer_types": ["linear_attention"],
}


def theirs(make, config, name, **sizes):
    """The layer ``name`` of their model, and what goes into it and out of it, in float64."""
    torch.manual_seed(0)
    model = shaken(make(config(**SIZES, **sizes))).eval()
    layer = getattr(model.layers[0], name)
    seen = {}

    def see(_module, args, more, out):
        seen["x"] = args[0] if args else more["hidden_states"]
        seen["y"] = out[0] if isinstance(out, tuple) else out

    with layer.register_forward_hook(see, with_kwargs=True), torch.no_grad():
        model(input_ids=torch.randint(29, (2, 40)), use_cache=False)
    assert seen["y"].std() > 0.1  # there is something to compare
    return layer, seen["x"], seen["y"]


def assert_same(ours, weights, x, y, atol):
    """``weights``: ours by name, all of them."""
    ours.double().load_state_dict(weights)
    mask = torch.ones(40, 40, dtype=torch.bool).tril()
    with torch.no_grad():
        assert_close(ours(x, x, x, mask), y, rtol=0, atol=atol)


# Some of their steps are in float32, whatever the weights are: hence 1e-6. Their norms have an eps
# of 1e-6, ours PyTorch's, which is smaller: for the latent vectors that would be 3e-6 more.


@pytest.mark.parametrize(
    ("make", "config"), [(DeepseekV2Model, DeepseekV2Config), (DeepseekV3Model, DeepseekV3Config)]
)
def test_latent_attention_is_deepseeks(make, config):
    layer, x, y = theirs(make, config, "self_attn", **LATENT)
    w_q, w_qr = layer.q_proj.weight.unflatten(0, (3, 12)).split([8, 4], dim=1)  # of each head
    w_k, w_v = layer.kv_b_proj.weight.unflatten(0, (3, 16)).split([8, 8], dim=1)
    w_c, w_r = layer.kv_a_proj_with_mqa.weight.split([10, 4])
    heads = {"W_q": w_q, "W_qr": w_qr, "W_k": w_k, "W_v": w_v}
    weights = {f"{name}.weight": w.flatten(0, 1) for name, w in heads.items()}
    weights |= {"W_c.weight": w_c, "W_r.weight": w_r, "W_o.weight": layer.o_proj.weight}
    weights["norm.weight"] = layer.kv_a_layernorm.weight
    ours = page().names().Latent(24, 3, rank=10, positions=RotaryPositions(64, 4))
    ours.norm.eps = layer.kv_a_layernorm.variance_epsilon
    assert_same(ours, weights, x, y, 1e-6)


@pytest.mark.parametrize("window", [1, 7])
def test_a_window_is_mistrals(window):
    sizes = {"num_key_value_heads": 1, "head_dim": 8, "sliding_window": window}
    layer, x, y = theirs(MistralModel, MistralConfig, "self_attn", **sizes)
    # theirs turns columns i and i + 4 of a head together, ours 2i and 2i + 1
    order = torch.arange(8).view(2, 4).T.flatten()
    weights = {
        f"W_{name}.weight": w.unflatten(0, (-1, 8))[:, order].flatten(0, 1)
        for name, w in (("q", layer.q_proj.weight), ("k", layer.k_proj.weight))
    }
    weights |= {"W_v.weight": layer.v_proj.weight, "W_o.weight": layer.o_proj.weight}
    turn = {"positions": RotaryPositions(64, 8), "bias": False}
    ours = page().names().Window(24, 3, n_key_heads=1, window=window, **turn)
    assert_same(ours, weights, x, y, 1e-6)


def test_the_gated_delta_rule_is_qwens():
    layer, x, y = theirs(Qwen3NextModel, Qwen3NextConfig, "linear_attn", **DELTA)
    q, k, v, gate = layer.in_proj_qkvz.weight.unflatten(0, (3, 4, 8)).unbind(dim=1)  # of each head
    write, fade = layer.in_proj_ba.weight.unflatten(0, (3, 2)).unbind(dim=1)
    weights = {
        "W_qkv.weight": torch.stack([q, k, v]).flatten(0, 2),
        "W_gate.weight": gate.flatten(0, 1),
        **{"W_write.weight": write, "W_fade.weight": fade, "W_o.weight": layer.out_proj.weight},
        "mix.weight": layer.conv1d.weight[:, 0].T,
        **{"speed": layer.A_log, "b_fade": layer.dt_bias, "norm.weight": layer.norm.weight},
    }
    ours = page().names().GatedDelta(24, 3)
    # Some words read so little that an eps of 1e-6, theirs, is more than their mean square; and the
    # norm makes float32's error as much larger: of the largest number, it's a few millionths.
    ours.norm.eps = layer.norm.variance_epsilon
    assert_same(ours, weights, x, y, 1e-5 * y.abs().max().item())


OTHERS = {
    "not mixed": {"kind": "ffff", "mixes": False},
    "window of 64": {"kind": "wwww", "window": 64},  # more than is read at once
    "more sinks than window": {"kind": "wwww", "window": 5, "sinks": 12},
    "one of each": {"kind": "fdwl", "window": 16},
}


def opened(kind):
    """The page's model, with weights away from where they start, and 80 words of two texts."""
    model = shaken(recall_model(**(KINDS | OTHERS)[kind])).eval()
    return model, torch.randint(224, (2, 80))


@pytest.mark.parametrize("kind", KINDS | OTHERS)
@torch.no_grad()
def test_word_by_word_is_the_whole_at_once(kind, unchecked):
    model, tokens = opened(kind)
    whole, caches = model(tokens), model.caches()
    assert whole.std() > 0.5
    parts = [model(part, caches) for part in (tokens[:, :41], *tokens[:, 41:].split(1, dim=1))]
    assert_close(torch.cat(parts, dim=1), whole, rtol=0, atol=1e-10)


# Of one text of 80 words: 64 numbers a word are the keys of four heads, 64 their values; a delta
# layer has four squares of 16 × 16, and three words before the next, before they are mixed.
FULL, WINDOW, DELTA_RULE = 80 * 128, 31 * 128, 4 * 16 * 16 + 3 * 192
KEPT = {
    **{"all heads": 4 * FULL, "2 key heads": 2 * FULL, "1 key head": FULL},
    **{"latent": 4 * 80 * (24 + 8), "window": 4 * WINDOW, "window and sinks": 4 * 35 * 128},
    **{"three windows, one full": 3 * WINDOW + FULL, "pairs share": 2 * FULL},
    **{"delta": 4 * DELTA_RULE, "three delta, one full": 3 * DELTA_RULE + FULL},
}


@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_no_more_is_kept_than_is_read_again(kind, unchecked):
    model, tokens = opened(kind)
    caches = model.caches()
    for part in (tokens[:, :79], tokens[:, 79:]):
        model(part, caches)
    assert sum(x[0].numel() for cache in caches[:-1] for x in cache.kept) == KEPT[kind]


@pytest.mark.parametrize("size", [32, 8])
@pytest.mark.parametrize("length", [1, 5, 32, 64, 77])
def test_the_delta_rule_in_chunks_is_the_loop(length, size):
    names = page().names()
    q, k, v = torch.randn(3, 2, 3, length, 6, dtype=torch.float64)
    k = k / k.norm(dim=-1, keepdim=True)
    fade, write = torch.rand(2, 2, 3, length, dtype=torch.float64)
    S = torch.randn(2, 3, 6, 6, dtype=torch.float64)
    wanted = names.delta_rule(q, k, v, fade, write, S)
    given = q, k, v, fade.log(), write
    assert_close(names.delta_in_chunks(*given, S, size), wanted, rtol=0, atol=1e-10)
    if length > 1:  # the state is handed over
        at = length // 2
        first, S = names.delta_in_chunks(*(x[:, :, :at] for x in given), S, size)
        rest, S = names.delta_in_chunks(*(x[:, :, at:] for x in given), S, size)
        assert_close((torch.cat([first, rest], dim=2), S), wanted, rtol=0, atol=1e-10)


def test_the_delta_rule_in_chunks_outlives_a_fade_that_leaves_nothing():
    names = page().names()
    q, k, v = torch.randn(3, 1, 2, 40, 4)
    k, write = k / k.norm(dim=-1, keepdim=True), torch.rand(1, 2, 40)
    log_fade = (-200 * torch.rand(1, 2, 40)).requires_grad_()  # exp of many is 0 in float32
    assert (log_fade.exp() == 0).any()
    S = torch.randn(1, 2, 4, 4)
    found, _ = names.delta_in_chunks(q, k, v, log_fade, write, S)
    assert_close(found, names.delta_rule(q, k, v, log_fade.exp(), write, S)[0], rtol=0, atol=1e-3)
    found.sum().backward()
    assert log_fade.grad.isfinite().all()


@pytest.fixture
def in_float64():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def toy(seed):
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Embedding(224, 6), torch.nn.Linear(6, 224))
    model[0].weight.data *= 1.6  # its gradients are about as long as they may be
    return model


def of_kind(name):
    def make(seed):
        torch.manual_seed(seed)
        return recall_model(**KINDS[name])

    return make


def small_texts(n, length):
    """Without a language; some words are asked for, and some cannot be known."""
    back = torch.tensor([0, -1, 0, 8, 0, 40, 0, 256, 20, 64, 128]).repeat(n * length)
    parts = torch.randint(224, (n, length)), back[: n * length].view(n, length)
    return Lines(*(x.to(default_device()) for x in (*parts, torch.rand(n, length).float())))


def alone(model, rate, seed, texts, n_steps, n_texts):
    """One model after all steps: PyTorch's AdamW."""
    matrices = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": matrices, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}]
    adam = torch.optim.AdamW(groups, betas=(0.9, 0.98), eps=1e-9)
    n = len(texts.tokens)
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed)).tolist()
    lengths = []
    for step in range(n_steps):
        rows = [order[i % n] for i in range(step * n_texts, (step + 1) * n_texts)]
        tokens, back = texts.tokens[rows], texts.back[rows][:, 1:]
        logits, labels = model(tokens[:, :-1]), tokens[:, 1:]
        parts = [
            torch.nn.functional.cross_entropy(logits[which], labels[which])
            for which in (back == 0, back > 0)
        ]
        adam.zero_grad()
        sum(parts).backward()
        lengths.append(torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0).item())
        rises, falls = (step + 1) / (0.05 * n_steps), (n_steps - step) / (0.2 * n_steps)
        for group in adam.param_groups:
            group["lr"] = rate * min(1, rises, falls)
        adam.step()
    return dict(model.named_parameters()), lengths


@pytest.mark.filterwarnings("ignore:There is a performance drop")  # vmap calls models one by one
@pytest.mark.parametrize(
    ("make", "n_steps", "seeds"),
    [
        pytest.param(toy, 60, (3, 0, 3), id="toy"),
        pytest.param(of_kind("three windows, one full"), 3, (0,), id="one alone"),
        *(pytest.param(of_kind(k), 3, (0, 1), id=k) for k in ("latent", "pairs share", "delta")),
    ],
)
def test_together_each_takes_the_steps_that_it_takes_alone(
    make, n_steps, seeds, in_float64, unchecked, monkeypatch
):
    monkeypatch.setattr(together, "BATCH", 2)
    texts, rates = small_texts(7, 40), (0.01, 0.04, 0.02)[: len(seeds)]
    models = Together(make, rates, seeds)
    assert list(models.run(texts, (0, 1, n_steps))) == [0, 1, n_steps]
    all_lengths = []
    for i, (rate, seed) in enumerate(zip(rates, seeds, strict=True)):
        wanted, lengths = alone(make(seed).to(default_device()), rate, seed, texts, n_steps, 2)
        all_lengths += lengths
        for name, weight in models.weights_of(i).items():
            # clip_grad_norm_ divides by 1e-6 more than the length
            assert_close(weight, wanted[name].detach().cpu(), rtol=0, atol=5e-6)
    if make is toy:  # gradients that are cut, and some that are not
        assert min(all_lengths) < 1 < max(all_lengths)


def test_together_each_is_judged_as_alone(in_float64, unchecked):
    n, seeds = 40, (0, 1)
    texts, models = small_texts(n, 24), Together(toy, (0.01, 0.01), seeds)
    # each other text is one that the first model guesses
    first = toy(0).to(default_device())
    for t in range(1, 24):
        texts.tokens[::2, t] = first(texts.tokens[::2, t - 1]).argmax(dim=-1)
    for seed, judged in zip(seeds, models.judged(texts), strict=True):
        logits = toy(seed).to(default_device())(texts.tokens[:, :-1])
        costs, found = [], {}
        for row in range(n):
            for t in range(1, 24):
                word, back = texts.tokens[row, t], texts.back[row, t].item()
                guess = logits[row, t - 1]
                if back == 0:
                    costs.append((guess.logsumexp(0) - guess[word] - texts.floor[row, t]).item())
                for low, high in pairwise(DISTANCES):
                    if low <= back < high:
                        found.setdefault(str(low), []).append((guess.argmax() == word).item())
        wanted = {"excess": sum(costs) / len(costs)}
        wanted |= {low: sum(right) / len(right) for low, right in found.items()}
        assert len(wanted) == 6
        assert judged == pytest.approx(wanted, abs=1e-4)


def test_what_is_told_is_of_few_pairs_and_of_many():
    few, many = (
        {"excess": x} | {str(low): share for low, share in zip(DISTANCES, shares, strict=False)}
        for x, shares in ((0.1, [1.0] * 5), (0.2, [0.9, 0.8, 0.7, 0.6, 0.5]))
    )
    found = told(few, many)
    assert (found["missed"], found["excess"]) == (0.3, 0.1)
    assert (found["8 excess"], found["48 excess"], found["48 128"]) == (0.1, 0.2, 0.5)


def test_a_rate_is_chosen_by_the_median_of_its_models_and_not_by_one_seed():
    def runs(lr, found, excess):
        return [
            Run("a", seed == TUNING, lr, seed, 1, 9, {9: {FAR: x, "excess": excess}}, 1.0, {})
            for seed, x in zip((0, 1, 2, TUNING), found, strict=True)
        ]

    steady = runs(0.1, (0.6, 0.6, 0.6, 0.0), 0.2)
    chosen_by_one = runs(0.2, (0.0, 0.0, 0.0, 1.0), 0.1)
    best_mean = runs(0.4, (1.0, 1.0, 0.0, 0.0), 0.1)
    assert best_by_median([*chosen_by_one, *steady, *best_mean]) == 0.1
    # a pair in a thousand chooses nothing: then it's the excess
    all_found, less_excess = runs(0.1, (1.0,) * 4, 0.2), runs(0.2, (0.999,) * 4, 0.1)
    assert best_by_median([*all_found, *less_excess]) == 0.2


class Named:
    """Stands for models side by side: tells of each what it was judged on."""

    def __init__(self, make, rates, seeds):
        self.n, self.weights = len(seeds), {}

    def run(self, texts, steps):
        yield from steps

    def judged(self, texts):
        return [texts] * self.n


def test_only_the_seed_that_chooses_the_rate_is_judged_on_other_texts(unchecked, monkeypatch):
    for module in (caches, afterwards):
        monkeypatch.setattr(module, "Together", Named)
        monkeypatch.setattr(module, "test_texts", lambda n, *, seed: (n, seed))
        monkeypatch.setattr(module, "told", lambda few, many: (few, many))
    monkeypatch.setattr(caches, "training_texts", lambda n_steps: None)
    plans = [(0.1, 0), (0.1, TUNING), (0.2, 2)]
    *_, curves = caches.training("window", plans, (0, 3))
    reported, other = ((8, 0), (48, 0)), ((8, 1), (48, 1))
    wanted = {plan: other if plan[1] == TUNING else reported for plan in plans}
    assert curves == {plan: {0: texts, 3: texts} for plan, texts in wanted.items()}
    assert afterwards.measured({}, bits=16) == [reported] * 3


def test_afterwards_only_the_attention_is_exchanged(unchecked, monkeypatch):
    made = []

    class Making(Named):
        def __init__(self, make, rates, seeds):
            super().__init__(make, rates, seeds)
            made.append(make(0))

    monkeypatch.setattr(afterwards, "Together", Making)
    monkeypatch.setattr(afterwards, "test_texts", lambda n, *, seed: None)
    monkeypatch.setattr(afterwards, "told", lambda few, many: None)
    for options in ({}, {"bits": 3}, {"sinks": 0}, {"sinks": 4}):
        afterwards.measured({}, **options)
    kinds = [[type(block.self_attention).__name__ for block in model.blocks] for model in made]
    assert kinds == [[kind] * 4 for kind in ("MultiHeadAttention", "Rounded", "Window", "Window")]
    assert len({tuple(model.state_dict()) for model in made}) == 1  # the weights fit
    assert [model.blocks[3].self_attention.sinks for model in made[2:]] == [0, 4]


@pytest.fixture(scope="module")
def texts():
    n_pairs = torch.tensor([8, 24, 48]).repeat(40)
    return n_pairs, lines(torch.Generator().manual_seed(5), 120, n_pairs)


def test_what_is_asked_for_stands_so_far_back(texts):
    n_pairs, read = texts
    n_found = torch.zeros(len(n_pairs), len(DISTANCES))
    for row, (tokens, backs) in enumerate(
        zip(read.tokens.tolist(), read.back.tolist(), strict=True)
    ):
        assert len(tokens) == len(backs) == LENGTH + 1
        asked = [(t, back) for t, back in enumerate(backs) if back > 0]
        places = set()
        for t, back in asked:
            assert 8 <= back <= 256
            key, value = tokens[t - 1 : t + 1]
            assert WORDS <= key < WORDS + KEYS <= value < WORDS + KEYS + VALUES
            assert tokens[t - back - 1 : t - back + 1] == [key, value]
            assert tokens.count(key) == 2
            assert backs[t - 1] == backs[t - back] == backs[t - back - 1] == -1
            places |= {t - back - 1, t - back, t - 1, t}
            n_found[row, sum(back >= low for low in DISTANCES) - 1] += 1
        assert len(places) == 4 * len(asked)  # no two overlap
        words = [t for t in range(LENGTH + 1) if t not in places]
        assert all(backs[t] == 0 and 0 <= tokens[t] < WORDS for t in words)
    assert (n_found.sum(dim=1) <= n_pairs).all()
    assert n_found.sum() >= 0.95 * n_pairs.sum()
    assert (n_found.sum(dim=0)[:-1] > 0.1 * n_found.sum()).all()  # five classes, none of them rare


def test_the_floor_is_what_a_word_costs_whoever_knows_how_it_is_drawn(texts):
    _, read = texts
    table, following = (x.tolist() for x in _language())
    for row, next_ in zip(table, following, strict=True):
        assert [next_.count(word) / PARTS for word in range(WORDS)] == row
    # Whatever else one believes: what it says of the words that come, as a share of how likely
    # they are, is 1 in the mean. So the words are drawn as the floors say.
    shares = []
    for row in range(len(read.tokens)):
        at = read.back[row] == 0
        text, floors = read.tokens[row, at].tolist(), read.floor[row, at].tolist()
        assert floors[0] == 0
        for t, word in enumerate(text[1:], start=1):
            half = t // 2
            likely, again = table[text[t - 1]][word], text[:t].count(word) / t
            newer = text[half:t].count(word) / (t - half)
            p = 0.5 * likely + 0.5 * again
            assert floors[t] == pytest.approx(-math.log(p), abs=1e-5)
            shares.append([likely / p, newer / p])
    shares = torch.tensor(shares)
    assert ((shares.mean(dim=0) - 1).abs() < 4 * shares.std(dim=0) / len(shares) ** 0.5).all()
