"""One token at a time, with a cache, gives what the whole sentence gives without one."""

import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from tests.package.test_model import NORMS, SRC, B, D, S, T, config, sentences, shaken
from tests.package.unchecked import unchecked
from transformer.decoding import beam_search, greedy_decode, sample
from transformer.model import DecoderLayer, Transformer
from transformer.multihead import MultiHeadAttention, record_attention
from transformer.positional import POSITIONS, Positions

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12}
ENDS = {"bos_id": 1, "eos_id": 2, "max_len": 8}
EMPTY = SRC.clone()
EMPTY[2] = 0  # a source without a word


class Slopes(Positions):
    """A bias that falls with the distance, as ALiBi's: a third place at which positions act."""

    @classmethod
    def in_attention(cls, *, n_heads, **_):
        made = cls()
        made.register_buffer("slopes", 2.0 ** -torch.arange(1, n_heads + 1), persistent=False)
        return made

    def bias(self, T, S):
        query, key = torch.arange(S - T, S), torch.arange(S)
        return self.slopes[:, None, None] * (key - query[:, None])


@pytest.fixture(autouse=True)
def _slopes(monkeypatch):
    monkeypatch.setitem(POSITIONS, "slopes", Slopes)


def written(dtype=torch.float64, **changes):
    """The same model at every call, and the words that it reads back."""
    torch.manual_seed(0)
    model = shaken(Transformer(config(**changes)), dtype)
    return model, sentences(25, T, seed=6).clamp(min=1)


def stepwise(model, src, tgt):
    state = model.start_decoding(src, max_len=tgt.size(1))
    return torch.stack([model.decode_next(y, state) for y in tgt.unbind(1)], dim=1)


@pytest.mark.parametrize("dtype", TOLERANCE)
@NORMS
@pytest.mark.parametrize("position", ["sinusoidal", "learned", "rotary", "none", "slopes"])
def test_steps_give_the_logits_of_the_whole(position, norm, dtype):
    model, tgt = written(dtype, norm=norm, position=position)
    for src in (SRC, EMPTY, SRC[:, :1]):
        with unchecked(dtype == torch.float64):
            whole, steps = model(src, tgt), stepwise(model, src, tgt)
        tolerance = TOLERANCE[dtype] * max(1, whole.abs().max().item())
        assert_close(steps, whole, rtol=0, atol=tolerance)


VARIANTS = {
    "grouped keys": {"n_key_heads": 2},
    "one head of keys": {"n_key_heads": 1, "position": "rotary", "rope_theta": 50.0},
    "of today": {
        **{"n_key_heads": 2, "norm": "pre", "norm_kind": "rms", "feed_forward": "swiglu"},
        **{"bias": False, "position": "rotary"},
    },
    "grouped, with a bias on the scores": {"n_key_heads": 2, "position": "slopes"},
    "no padding": {"pad_id": None},
}


@pytest.mark.parametrize("name", VARIANTS)
def test_every_variant_decodes_with_a_cache_as_without(name):
    model, tgt = written(**VARIANTS[name])
    assert model.takes_cache
    assert_close(stepwise(model, EMPTY, tgt), model(EMPTY, tgt), rtol=0, atol=1e-12)
    for search in (greedy_decode, beam_search):
        cached, whole = (search(model, SRC, use_cache=c, **ENDS) for c in (True, False))
        assert_close(cached, whole, rtol=0, atol=1e-5)
    with record_attention(model) as maps:
        recorded = model(SRC, tgt)
    assert_close(recorded, model(SRC, tgt), rtol=0, atol=1e-11)
    assert {weights.shape[1] for weights in maps.values()} == {4}  # heads of queries
    state = model.start_decoding(SRC, max_len=3)
    model.decode_next(tgt[:, 0], state)
    heads = model.config.n_key_heads or 4
    for cache in state.caches:
        assert cache.self_attention.keys.shape == (B, heads, 3, D // 4)
        assert cache.cross_attention.kept[1].shape == (B, heads, S, D // 4)


@NORMS
@pytest.mark.parametrize("position", ["sinusoidal", "rotary", "slopes"])
def test_reordered_and_repeated_sentences_go_on_as_they_would_have(position, norm):
    model, tgt = written(norm=norm, position=position)
    rows, again = torch.tensor([1, 2, 1, 0]), torch.tensor([3, 0, 0])
    state = model.start_decoding(SRC, max_len=T)
    model.decode_next(tgt[:, 0], state)
    state.select(rows)
    model.decode_next(tgt[rows, 1], state)
    state.select(again)
    got = model.decode_next(tgt[rows[again], 2], state)
    whole = model(SRC[rows[again]], tgt[rows[again], :3])[:, 2]
    assert_close(got, whole, rtol=0, atol=1e-12)
    assert state.length == 3


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_an_empty_source_leaves_finite_numbers_in_every_dtype(dtype):
    model, tgt = written(dtype)
    for p in model.decoder.parameters():
        p.data.mul_(10)
    assert stepwise(model, EMPTY, tgt).isfinite().all()


def test_a_step_reads_one_token_and_the_memory_is_projected_once():
    model, tgt = written()
    lengths, projections = [], []
    for layer in model.decoder.layers:
        layer.self_attention.W_k.register_forward_hook(lambda _, x, y: lengths.append(y.size(1)))
        for linear in (layer.cross_attention.W_k, layer.cross_attention.W_v):
            linear.register_forward_hook(lambda _, x, y: projections.append(y))
    stepwise(model, SRC, tgt)
    assert lengths == [1] * (T * len(model.decoder.layers))
    assert len(projections) == 2 * len(model.decoder.layers)


def test_another_pad_id_is_padding_to_the_encoder_the_decoder_and_the_steps():
    (zero, _), (seven, _) = written(pad_id=0), written(pad_id=7)
    src, tgt = SRC.clone(), sentences(25, T, seed=6)
    for tokens in (src, tgt):
        tokens[tokens == 7] = 8
        tokens[1, 3:] = 0
    moved = src.masked_fill(src == 0, 7), tgt.masked_fill(tgt == 0, 7)
    for model in (zero, seven):  # the embedding of padding must not matter
        model.src_embedding.tokens.weight.data[[0, 7]] = 0.5
        model.tgt_embedding.tokens.weight.data[[0, 7]] = 0.5
    assert_close(seven(*moved), zero(src, tgt), rtol=0, atol=1e-12)
    words = tgt.clamp(min=1)
    assert_close(stepwise(seven, moved[0], words), stepwise(zero, src, words), rtol=0, atol=1e-12)


class Sharp(MultiHeadAttention):
    """A subclass: scores twice as large."""

    def attend(self, q, k, v, mask, bias=None):
        return super().attend(2 * q, k, v, mask, bias)


class Halved(MultiHeadAttention):
    """A subclass that only looks at what comes out."""

    def forward(self, *inputs, **options):
        return super().forward(*inputs, **options) / 2


class Mean(nn.Module):
    """A foreign attention: the mean of the values that may be seen. It takes no cache."""

    def forward(self, query, key, value, mask=None):
        shape = (len(query), 1, query.size(1), key.size(1))
        seen = torch.ones(shape) if mask is None else mask.expand(shape)
        weights = seen[:, 0].to(value)
        return weights @ value / weights.sum(dim=-1, keepdim=True).clamp(min=1)


class OtherLayer(nn.Module):
    """A foreign layer, which takes no cache either."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x, memory, tgt_mask=None, src_mask=None):
        return 1.5 * self.layer(x, memory, tgt_mask, src_mask)


def exchange(model, name, part):
    layer = model.decoder.layers[1]
    if isinstance(part, MultiHeadAttention):
        part.load_state_dict(getattr(layer, name).state_dict())
    setattr(layer, name, part.double())


def hooked(name):
    def change(model):
        part = model.decoder.layers[1].get_submodule(name)
        part.register_forward_hook(lambda _, inputs, out: out.tanh())

    return change


def attend_replaced(model):
    module = model.decoder.layers[0].cross_attention
    module.attend = lambda q, k, v, mask, bias=None: v.mean(dim=2, keepdim=True).expand_as(q)


PARTS = {
    "a hook on a projection": hooked("self_attention.W_k"),
    "a hook on the memory's keys": hooked("cross_attention.W_k"),
    "a hook on attention": hooked("self_attention"),
    "a hook on the feed-forward network": hooked("feed_forward.W_1"),
    "attend replaced in one object": attend_replaced,
    "a subclass of self-attention": lambda m: exchange(m, "self_attention", Sharp(D, 4)),
    "a subclass of cross-attention": lambda m: exchange(m, "cross_attention", Sharp(D, 4)),
    "another forward": lambda m: exchange(m, "self_attention", Halved(D, 4)),
    "no biases": lambda m: setattr(m.decoder.layers[0].self_attention.W_q, "bias", None),
    "another feed-forward network": lambda m: exchange(
        m, "feed_forward", nn.Sequential(nn.Linear(D, 9), nn.GELU(), nn.Linear(9, D))
    ),
    "another norm": lambda m: setattr(
        m.decoder.layers[0].residual_1, "norm", nn.LayerNorm(D, eps=1.0).double()
    ),
    "a foreign self-attention": lambda m: exchange(m, "self_attention", Mean()),
    "a foreign cross-attention": lambda m: exchange(m, "cross_attention", Mean()),
    "a foreign layer": lambda m: m.decoder.layers.append(
        OtherLayer(DecoderLayer(config()).double())
    ),
}
NO_CACHE = {"a foreign self-attention", "a foreign cross-attention", "a foreign layer"}


@pytest.mark.parametrize("change", PARTS)
@pytest.mark.parametrize("position", ["sinusoidal", "rotary"])
def test_any_part_decodes_with_a_cache_as_without(change, position):
    before, _ = written(position=position)
    model, tgt = written(position=position)
    PARTS[change](model)
    model.output.weight.data[2].mul_(0.3)  # so that sentences end here and there
    assert not torch.allclose(model(SRC, tgt), before(SRC, tgt)), "the change changes nothing"
    assert model.takes_cache is (change not in NO_CACHE)
    if model.takes_cache:
        assert_close(stepwise(model, SRC, tgt), model(SRC, tgt), rtol=0, atol=1e-12)
    with unchecked():  # the steps of each part are checked above, the searches in test_decoding.py
        for search in (greedy_decode, beam_search):
            cached, whole = (search(model, SRC, use_cache=c, **ENDS) for c in (True, False))
            assert_close(cached, whole, rtol=0, atol=1e-5)
        draws = [
            sample(model, SRC, use_cache=c, generator=torch.Generator().manual_seed(0), **ENDS)
            for c in (True, False)
        ]
    assert torch.equal(*draws)


@pytest.mark.parametrize("position", ["sinusoidal", "rotary", "slopes"])
def test_what_is_recorded_in_a_step_is_the_last_row_of_the_whole(position):
    model, tgt = written(position=position)
    with record_attention(model) as whole:
        model(EMPTY, tgt)
    state = model.start_decoding(EMPTY, max_len=T)
    with record_attention(model) as maps:
        for t in range(T):
            model.decode_next(tgt[:, t], state)
            for name, weights in maps.items():
                S_t = S if name.endswith("cross_attention") else t + 1
                assert weights.shape == (B, 4, 1, S_t)
                row = whole[name][:, :, t : t + 1, :S_t]
                assert_close(weights, row, rtol=0, atol=1e-12)
    assert len(maps) == 2 * len(model.decoder.layers)


def test_recorded_decoding_is_cached_and_writes_the_same():
    model, _ = written()
    plain = greedy_decode(model, SRC, **ENDS)
    with record_attention(model) as maps:
        assert torch.equal(greedy_decode(model, SRC, **ENDS), plain)
    length = plain.size(1)
    assert maps["decoder.layers.1.self_attention"].shape[2:] == (1, length)


def test_refuses_to_decode_past_its_room():
    model, tgt = written()
    with pytest.raises(ValueError, match="max_len must be at most 12, got 13"):
        model.start_decoding(SRC, max_len=13)
    state = model.start_decoding(SRC, max_len=2)
    for t in range(2):
        model.decode_next(tgt[:, t], state)
    with pytest.raises(ValueError, match="the cache has room for 2 positions, got 3"):
        model.decode_next(tgt[:, 2], state)


@pytest.mark.usefixtures("unchecked")
def test_a_first_token_of_its_own_for_each_sentence():
    model, _ = written()
    first = torch.tensor([5, 9, 5])
    for use_cache in (True, False):
        ends = {**ENDS, "use_cache": use_cache}
        greedy = greedy_decode(model, SRC, **{**ends, "bos_id": first})
        best, log_p = beam_search(model, SRC, **{**ends, "bos_id": first})
        for b in range(B):
            src, own = SRC[b : b + 1], {**ends, "bos_id": first[b].item()}
            alone = greedy_decode(model, src, **own)
            assert torch.equal(greedy[b, : alone.size(1)], alone[0])
            alone, its_log_p = beam_search(model, src, **own)
            assert torch.equal(best[b, : alone.size(1)], alone[0])
            assert_close(log_p[b], its_log_p[0], rtol=0, atol=1e-5)
        _, others = beam_search(model, SRC, **{**ends, "bos_id": 5})
        assert (others != log_p).tolist() == [False, True, False]
    for search in (greedy_decode, beam_search):
        with pytest.raises(ValueError, match=r"bos_id must be .* shape \(3,\) .* got \(2,\)"):
            search(model, SRC, **{**ENDS, "bos_id": first[:2]})
        with pytest.raises(ValueError, match="bos_id must hold ids from 0 to 24, got 29"):
            search(model, SRC, **{**ENDS, "bos_id": first + 20})


def test_log_probabilities_of_a_half_precision_model_are_of_its_logits_in_float32():
    model, _ = written()
    model = model.to(torch.bfloat16)
    model.requires_grad_(False)
    tokens, scores = beam_search(model, SRC, beam_size=1, **ENDS)
    assert scores.dtype == torch.float32
    state, log_p = model.start_decoding(SRC, max_len=8), torch.zeros(B)
    read, going = torch.ones(B, dtype=torch.long), torch.ones(B, dtype=torch.bool)
    model.eval()
    for y in tokens.unbind(1):
        step = model.decode_next(read, state).float().log_softmax(dim=-1)
        log_p += torch.where(going, step[torch.arange(B), y], 0.0)
        read, going = y.clamp(min=1), going & (y != 2)
    assert_close(scores, log_p, rtol=0, atol=1e-4 * max(1, math.ceil(-log_p.min())))
