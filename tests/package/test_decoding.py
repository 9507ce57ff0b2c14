import itertools
import math

import pytest
import torch
from torch.testing import assert_close

from tests.package.unchecked import unchecked
from transformer.cache import Memory
from transformer.config import TransformerConfig
from transformer.decoding import beam_search, compiled, greedy_decode, sample
from transformer.decoding.beams import Beams
from transformer.decoding.limits import Limits
from transformer.decoding.search import keep_top_k, keep_top_p, search_beams
from transformer.model import Transformer

V, MAX_LEN = 9, 10
IDS = {"bos_id": 1, "eos_id": 2, "max_len": MAX_LEN}
KINDS = pytest.mark.parametrize(
    ("position", "norm"),
    [("sinusoidal", "post"), ("learned", "pre"), ("rotary", "post"), ("none", "pre")],
)
SEEDS = pytest.mark.parametrize("seed", range(4))


def model(seed=0, sharpness=2.0, **changes):
    """Untrained, in training mode, and so that its sentences end here and there."""
    torch.manual_seed(seed)
    c = TransformerConfig.tiny(V, V, d_model=16, d_ff=16, max_len=12, dropout=0.3, **changes)
    made = Transformer(c.replace(share_embeddings=False)).double()
    with torch.no_grad():
        made.output.weight.mul_(sharpness)
        made.output.weight[2].mul_(2)
        for layer in made.decoder.layers:
            layer.self_attention.W_o.weight.mul_(2)
            layer.cross_attention.W_o.weight.mul_(2)
    return made


def sources(seed=0, B=12):
    src = torch.randint(3, V, (B, 6), generator=torch.Generator().manual_seed(seed))
    src[1:2, 3:] = 0
    return src


def log_p(m, src, prefix):
    """Log-probabilities of the token after ``prefix`` of one sentence; of padding, which is never
    chosen, none."""
    with unchecked():
        logits = m(src[None], torch.tensor([prefix]))[0, -1]
    return [-math.inf, *logits.log_softmax(-1).tolist()[1:]]


def greedy_by_loops(m, src):
    tokens = [1]
    while len(tokens) <= MAX_LEN and tokens[-1] != 2:
        scores = log_p(m, src, tokens)
        tokens.append(scores.index(max(scores)))
    return tokens[1:]


def penalised(score, length, alpha):
    return score / ((5 + length) / 6) ** alpha


def beam_by_loops(m, src, K, alpha, early):
    """Lists of (log-probability, tokens), one sentence, one hypothesis at a time.

    Unless it stops early it never stops: a search that may must find the same.
    """
    live, ended = [(0.0, [1])], []
    for _ in range(MAX_LEN):
        grown = [
            (score + p, [*tokens, token])
            for score, tokens in live
            for token, p in enumerate(log_p(m, src, tokens))
            if token
        ]
        grown.sort(key=lambda pair: -pair[0])
        ended += [pair for pair in grown[:K] if pair[1][-1] == 2]
        live = [pair for pair in grown if pair[1][-1] != 2][:K]
        if early and len(ended) >= K:
            break
    score, tokens = max(ended or live, key=lambda h: penalised(h[0], len(h[1]) - 1, alpha))
    return score, tokens[1:]


def rows(tokens):
    """Each row up to and with its end of sentence; what follows must be padding."""
    out = []
    for row in tokens.tolist():
        length = row.index(2) + 1 if 2 in row else len(row)
        assert not any(row[length:])
        assert 0 not in row[:length]
        out.append(row[:length])
    return out


@SEEDS
def test_greedy_equals_plain_loops(seed):
    m, src = model(seed), sources(seed)
    tokens = greedy_decode(m, src, **IDS)
    m.eval()
    assert rows(tokens) == [greedy_by_loops(m, s) for s in src]
    assert tokens.size(1) == max(map(len, rows(tokens)))


def test_sentences_here_end_at_many_lengths():
    # else the tests of this file would not see a sentence that goes on after its end
    made = [model(seed, position=kind) for seed in range(4) for kind in ("sinusoidal", "none")]
    lengths = [len(r) for m in made for r in rows(greedy_decode(m, sources(), **IDS))]
    assert len(set(lengths)) > 5
    assert {1, MAX_LEN} < set(lengths)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    ("K", "alpha", "early"),
    [(2, 0.6, False), (3, 0.0, False), (5, 2.0, False), (2, -1.0, False), (4, 0.6, True)],
)
def test_beam_search_equals_plain_loops(K, alpha, early, seed):
    m, src = model(seed, sharpness=1.5), sources(seed, B=3)
    options = {"beam_size": K, "length_penalty": alpha, "early_stopping": early}
    tokens, scores = beam_search(m, src, **options, **IDS)
    m.eval()
    expected = [beam_by_loops(m, s, K, alpha, early) for s in src]
    assert rows(tokens) == [t for _, t in expected]
    assert_close(
        scores.double(), torch.tensor([s for s, _ in expected]).double(), rtol=0, atol=1e-5
    )


def test_a_beam_as_wide_as_the_tree_finds_the_best_sentence_of_all():
    torch.manual_seed(0)
    c = TransformerConfig.tiny(5, 5, d_model=16, d_ff=16, max_len=4, share_embeddings=False)
    m, src, alpha = Transformer(c).double().eval(), torch.tensor([[3, 4, 3]]), 0.6
    candidates = []
    for length in (1, 2, 3):
        for body in itertools.product((1, 3, 4), repeat=length - 1):
            tokens = [1, *body, 2]
            score = sum(log_p(m, src[0], tokens[:t])[tokens[t]] for t in range(1, length + 1))
            candidates.append((penalised(score, length, alpha), score, tokens[1:]))
    _, score, tokens = max(candidates)
    found, log_probability = beam_search(
        m, src, bos_id=1, eos_id=2, max_len=3, beam_size=40, length_penalty=alpha
    )
    assert rows(found) == [tokens]
    assert log_probability.item() == pytest.approx(score, abs=1e-5)


@SEEDS
@KINDS
def test_a_beam_of_one_is_greedy(position, norm, seed):
    m, src = model(seed, position=position, norm=norm), sources(seed)
    tokens, _ = beam_search(m, src, beam_size=1, **IDS)
    assert torch.equal(tokens, greedy_decode(m, src, **IDS))


@pytest.mark.parametrize("search", [greedy_decode, beam_search, sample])
def test_leaves_the_model_as_it_was(search):
    m = model()
    m.decoder.layers[1].eval()
    before = [module.training for module in m.modules()]
    out = search(m, sources(), **IDS)
    assert [module.training for module in m.modules()] == before
    assert any(before)
    assert not all(before)
    assert all(p.grad is None for p in m.parameters())
    tokens = out[0] if isinstance(out, tuple) else out
    assert not tokens.is_inference()
    with pytest.raises(ValueError, match="ids from 0 to"):
        search(m, sources() + V, **IDS)
    assert [module.training for module in m.modules()] == before


def test_narrow_ids_and_wide_ids_give_the_same():
    m, src = model(), sources()
    for use_cache in (True, False):
        tokens = greedy_decode(m, src.int(), use_cache=use_cache, **IDS)
        assert tokens.dtype == torch.long
        assert torch.equal(tokens, greedy_decode(m, src, use_cache=use_cache, **IDS))
    assert torch.equal(beam_search(m, src.int(), **IDS)[0], beam_search(m, src, **IDS)[0])


def test_sampling_draws_from_the_softmax_of_the_logits_over_the_temperature():
    m = model(sharpness=1.5)
    src = sources(B=1).repeat(20_000, 1)
    g = torch.Generator().manual_seed(0)
    for temperature in (0.5, 1.0, 2.0):
        tokens = sample(m, src, temperature=temperature, generator=g, **{**IDS, "max_len": 1})
        m.eval()
        expected = (torch.tensor(log_p(m, src[0], [1])) / temperature).softmax(-1)
        shares = tokens.flatten().bincount(minlength=V) / len(src)
        assert_close(shares, expected, rtol=0, atol=0.015)


def drawn(**options):
    """The tokens that come first in 3,000 samples of one sentence, and their probabilities."""
    m = model(sharpness=1.5)
    src = sources(B=1).repeat(3000, 1)
    g = torch.Generator().manual_seed(0)
    tokens = sample(m, src, generator=g, **{**IDS, "max_len": 1}, **options)
    m.eval()
    return set(tokens.flatten().tolist()), torch.tensor(log_p(m, src[0], [1])).exp().tolist()


@pytest.mark.parametrize("k", [1, 2, 3, 100])
def test_top_k_keeps_the_k_likeliest(k):
    tokens, p = drawn(top_k=k, temperature=3.0)
    likeliest = sorted(range(1, V), key=lambda token: -p[token])[:k]
    assert tokens == set(likeliest)


@pytest.mark.parametrize("top_p", [1e-9, 0.3, 0.6, 0.8, 1.0])
def test_top_p_keeps_the_fewest_that_reach_p(top_p):
    tokens, p = drawn(top_p=top_p)
    nucleus, total = set(), 0.0
    for token in sorted(range(1, V), key=lambda token: -p[token]):
        if total >= top_p:
            break
        nucleus.add(token)
        total += p[token]
    assert tokens <= nucleus
    assert all(p[token] < 0.003 for token in nucleus - tokens)


def test_top_k_comes_before_top_p():
    _, p = drawn()
    first, second = sorted(range(1, V), key=lambda token: -p[token])[:2]
    share = p[first] / (p[first] + p[second])
    assert drawn(top_k=2, top_p=share - 1e-3)[0] == {first}
    assert drawn(top_k=2, top_p=share + 1e-3)[0] == {first, second}


def test_the_nucleus_ends_where_p_is_reached():
    quarters = torch.zeros(1, 4, dtype=torch.float64)
    for p, kept in ((0.25, 1), (0.5, 2), (0.51, 3), (1.0, 4)):
        assert keep_top_p(quarters, p).isfinite().sum() == kept
    assert keep_top_k(torch.tensor([[3.0, 2.0, 1.0]]), 2).isfinite().tolist() == [
        [True, True, False]
    ]


def test_the_temperature_comes_before_what_is_kept():
    _, p = drawn()
    flat = torch.tensor(p).pow(1 / 3)
    flat = (flat / flat.sum()).tolist()
    first, second = sorted(range(1, V), key=lambda token: -p[token])[:2]
    between = (flat[first] + p[first]) / 2  # flattened, the likeliest alone does not reach it
    assert p[first] > between > flat[first]
    assert drawn(top_p=between)[0] == {first}
    assert {first, second} <= drawn(top_p=between, temperature=3.0)[0]


def test_the_same_seed_draws_the_same_sentences():
    m, src = model(), sources()
    one, two, other = (
        sample(m, src, generator=torch.Generator().manual_seed(s), **IDS) for s in (5, 5, 6)
    )
    assert torch.equal(one, two)
    assert one.shape != other.shape or not torch.equal(one, other)


def test_sampling_the_likeliest_is_greedy():
    m, src = model(), sources()
    greedy = greedy_decode(m, src, **IDS)
    assert torch.equal(sample(m, src, top_k=1, **IDS), greedy)
    assert torch.equal(sample(m, src, temperature=1e-4, **IDS), greedy)


@pytest.mark.parametrize("search", [greedy_decode, beam_search, sample])
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_len": 0}, "max_len must be positive, got 0"),
        ({"max_len": 13}, "max_len must be at most 12, got 13"),
        ({"bos_id": V}, "bos_id must be an id below 9, got 9"),
        ({"bos_id": torch.tensor([1, 1])}, r"bos_id must be an integer, or have .* got \(2,\)"),
        ({"bos_id": torch.tensor([1] * 11 + [0])}, "bos_id must not hold the padding id, got 0"),
        ({"eos_id": -1}, "eos_id must be an id below 9, got -1"),
        ({"eos_id": 0}, "eos_id must not be the padding id, got 0"),
        ({"eos_id": True}, "eos_id must be an integer, got True"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_refuses_where_a_sentence_cannot_begin_or_end(search, changes, message):
    for use_cache in (True, False):
        with pytest.raises((TypeError, ValueError), match=message):
            search(model(), sources(), use_cache=use_cache, **{**IDS, **changes})


@pytest.mark.parametrize(
    ("search", "changes", "message"),
    [
        (beam_search, {"beam_size": 0}, "beam_size must be positive, got 0"),
        (beam_search, {"length_penalty": math.nan}, "length_penalty must be finite, got nan"),
        (beam_search, {"length_penalty": True}, "length_penalty must be a number, got True"),
        (sample, {"temperature": 0.0}, "temperature must be positive and finite, got 0.0"),
        (sample, {"temperature": "1"}, "temperature must be a number, got '1'"),
        (sample, {"top_k": 0}, "top_k must be positive, got 0"),
        (sample, {"top_p": 0.0}, "top_p must be above 0 and at most 1, got 0.0"),
        (sample, {"top_p": 1.1}, "top_p must be above 0 and at most 1, got 1.1"),
        (sample, {"top_p": "0.5"}, "top_p must be a number, got '0.5'"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_refuses_options(search, changes, message):
    with pytest.raises((TypeError, ValueError), match=message):
        search(model(), sources(), **IDS, **changes)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("length_penalty", [1e308, -1e308, 150.0])
def test_a_penalty_that_leaves_no_scores_to_compare_is_refused(length_penalty):
    with pytest.raises(
        ValueError, match=r"length_penalty must be between -75.39 and 75.39 for a max"
    ):
        beam_search(model(), sources(), length_penalty=length_penalty, **IDS)
    for largest in (-75.0, 75.0):
        tokens, log_p = beam_search(model(), sources(), length_penalty=largest, **IDS)
        assert log_p.isfinite().all()
        assert tokens[:, 0].all()
    beam_search(model(), sources(), length_penalty=largest, **{**IDS, "max_len": 1})  # of no length


ONE_WORD = torch.zeros(V).index_fill_(0, torch.tensor(5), math.nan)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("options", [{}, {"use_cache": False}, {"compiled": True}], ids=str)
@pytest.mark.parametrize("bad", [ONE_WORD, math.inf, -math.inf], ids=["NaN", "inf", "-inf"])
def test_logits_that_are_not_finite_are_told(bad, options, monkeypatch):
    monkeypatch.setattr("transformer.decoding.compiled._compiled_step", lambda: compiled._step)
    m = model()
    m.output.register_forward_hook(lambda _, x, y: y + bad)
    for search in [greedy_decode, *([] if "compiled" in options else [beam_search, sample])]:
        with pytest.raises(ValueError, match="model must give logits that are numbers, got NaN"):
            search(m, sources(), **IDS, **options)


@pytest.mark.parametrize("use_cache", [True, False])
def test_of_no_sentence_there_is_no_translation(use_cache):
    options = IDS | {"use_cache": use_cache}
    for search in (greedy_decode, sample):
        assert search(model(), sources()[:0], **options).shape == (0, 0)
    tokens, log_p = beam_search(model(), sources()[:0], **options)
    assert (tokens.shape, log_p.shape) == ((0, 0), (0,))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("search", [greedy_decode, beam_search, sample])
def test_a_wrapped_model_is_refused_by_name(search):
    with pytest.raises(
        TypeError, match=r"model must have max_len, got DataParallel: give .*\.module"
    ):
        search(torch.nn.DataParallel(model()), sources(), **IDS)


class Chain(torch.nn.Module):
    """The logits of the next token depend on the last one alone: a row of a table."""

    pad_id, max_len, takes_cache, tgt_vocab_size = None, 20, False, 6

    def __init__(self, logits):
        super().__init__()
        self.logits = logits

    def encode(self, src):
        return Memory(src)

    def decode(self, tgt, memory):
        return self.logits[tgt]


@pytest.mark.usefixtures("unchecked")
def test_nan_in_a_word_that_is_written_later_is_told_too():
    logits = torch.zeros(6, 6)
    for token, after in ((1, 3), (3, 4), (4, 5), (5, 2)):
        logits[token, after] = 5.0
    ends, src = {"bos_id": 1, "eos_id": 2, "max_len": 6}, torch.tensor([[3], [4]])
    for search in (greedy_decode, beam_search, sample):
        torch.manual_seed(0)
        search(Chain(logits), src, **ends)
    logits[5, 3] = math.nan
    for search in (greedy_decode, beam_search):
        with pytest.raises(ValueError, match="got NaN"):
            search(Chain(logits), src, **ends)
    with pytest.raises(ValueError, match="got NaN"):
        sample(Chain(logits), src, top_k=1, **ends)


@pytest.mark.usefixtures("unchecked")
def test_a_model_without_padding_writes_all_ids_and_fills_up_with_ends():
    logits = torch.zeros(6, 6)
    for token, after in ((1, 0), (0, 4), (4, 2), (3, 2)):
        logits[token, after] = 9.0
    src = torch.tensor([[3], [4]])
    ends = {"bos_id": torch.tensor([1, 3]), "eos_id": 2, "max_len": 6}
    for search in (greedy_decode, lambda *a, **k: beam_search(*a, length_penalty=0.0, **k)[0]):
        assert search(Chain(logits), src, **ends)[:, :3].tolist() == [[0, 4, 2], [2, 2, 2]]
    zero = {**ends, "bos_id": 0}
    assert greedy_decode(Chain(logits), src, **zero).tolist() == [[4, 2], [4, 2]]


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("use_cache", [True, False])
@pytest.mark.parametrize("search", [greedy_decode, beam_search, sample])
def test_a_cache_is_used_if_asked_for(search, use_cache, monkeypatch):
    m = model()
    monkeypatch.setattr(m, "decode" if use_cache else "decode_next", None)  # calling it raises
    search(m, sources(), use_cache=use_cache, **IDS)


NEVER = -1e9


def beams_of(K, *steps, words=5, early_stopping=True, **options):
    """A search of one sentence through hand-made probabilities: one {word: p} a step, all beams."""
    options |= {"early_stopping": early_stopping, "pad_id": 0, "device": "cpu"}
    beams = Beams(1, K, Limits(1, 2, max_len=6), **options)
    rows = None
    for step in steps:
        logits = torch.full((K, words), NEVER)
        for word, p in step.items():
            logits[:, word] = math.log(p)
        rows = beams.advance(logits)
    return beams, rows


def test_a_beam_that_ends_leaves_its_place_to_the_next_best():
    beams, rows = beams_of(2, {2: 0.5, 3: 0.3, 4: 0.2})
    assert_close(beams.log_p[0].exp(), torch.tensor([0.3, 0.2]))
    assert beams.last_tokens().tolist() == [3, 4]
    assert rows.tolist() == [0, 0]


def test_a_beam_that_does_not_exist_yet_cannot_end():
    # of four beams the first step has one; the other three end with a probability of zero
    beams, rows = beams_of(4, {2: 0.5, 3: 0.5}, words=4)
    assert beams.n_ended.tolist() == [1]
    assert len(rows) == 4


def test_of_two_equally_good_sentences_the_one_found_first_stays():
    beams, _ = beams_of(2, {2: 0.5, 3: 0.5}, {2: 1.0})
    tokens, log_p = beams.best()
    assert tokens.tolist() == [[2, 0]]
    assert log_p.exp().item() == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("p", "alpha", "goes_on"),
    [
        (0.2, 0.0, False),  # a word more makes no sentence likelier: 0.4 has ended
        (0.6, 0.0, True),
        # with six tokens log 0.2 would be worth -1.61 / (11 / 6)^α, and log 0.4 is -0.92
        (0.2, 0.9, False),
        (0.2, 1.0, True),
        # a negative penalty divides by least at the next length: -0.51 / (7 / 6)^α
        (0.6, -3.7, True),
        (0.6, -4.0, False),
    ],
)
def test_a_search_goes_on_while_a_beam_could_still_end_better(p, alpha, goes_on):
    step = {2: 0.4, 3: p, **dict.fromkeys(range(4, 8), (0.6 - p) / 4 or 1e-9)}
    _, rows = beams_of(2, step, words=8, early_stopping=False, length_penalty=alpha)
    assert rows.tolist() == ([0, 0] if goes_on else [])


def test_a_beam_of_one_stops_at_its_end_whatever_the_penalty():
    _, rows = beams_of(1, {2: 0.5, 3: 0.3, 4: 0.2}, early_stopping=False, length_penalty=2.0)
    assert rows.tolist() == []


@pytest.mark.parametrize(
    ("K", "max_len", "alpha"), [(3, 5, -1.0), (3, 5, 0.0), (3, 5, 0.6), (8, 6, 1.4)]
)
def test_where_exhaustive_search_wins_over_stopping_early_beams_go_on(K, max_len, alpha):
    # tables of two words, whose beams are wide enough to keep what becomes the best
    bodies = [b for n in range(max_len) for b in itertools.product((3, 4), repeat=n)]
    paths = [(1, *body, 2) for body in bodies]
    lost = 0
    for seed in range(25):
        table = torch.randn(5, 5, generator=torch.Generator().manual_seed(seed)).double()
        table[:, :2] = NEVER
        p = table.log_softmax(dim=1).tolist()
        sums = [sum(p[a][b] for a, b in itertools.pairwise(path)) for path in paths]
        scores = [penalised(x, len(path) - 1, alpha) for x, path in zip(sums, paths, strict=True)]
        best = paths[scores.index(max(scores))]
        found = {}
        for early in (False, True):
            options = {"length_penalty": alpha, "early_stopping": early}
            beams = Beams(1, K, Limits(1, 2, max_len), pad_id=0, device="cpu", **options)
            for _ in range(max_len):
                if len(beams.advance(table[beams.last_tokens()])) == 0:
                    break
            found[early] = (1, *rows(beams.best()[0])[0])
        assert found[False] == best, seed
        lost += found[True] != best
    assert lost


def test_one_search_serves_every_penalty():
    m, src = model(sharpness=1.0), sources()
    how = {"beam_size": 4, "early_stopping": True, "length_penalty": 20.0}  # steers nothing
    beams = search_beams(m, src, Limits(**IDS), **how)
    for alpha in (-2.0, 0.0, 0.6, 5.0):
        tokens, log_p = beam_search(m, src, length_penalty=alpha, early_stopping=True, **IDS)
        best, best_log_p = beams.best(alpha)
        assert torch.equal(best, tokens)
        assert torch.equal(best_log_p, log_p)
