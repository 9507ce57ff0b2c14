"""One token at a time, with a cache, every model gives what it gives of the whole without one."""

import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from tests.package.test_decoder_only import CONFIGS, prompts, stepwise
from tests.package.test_decoder_only import model as decoder_only
from tests.package.test_model import SRC, B, D, S, T, config, sentences, shaken
from tests.package.test_seq2seq import KINDS, make
from tests.package.test_seq2seq import SRC as SHORT
from transformer.decoding import beam_search, greedy_decode, sample
from transformer.model import DecoderLayer, Transformer
from transformer.multihead import MultiHeadAttention, record_attention
from transformer.positional import POSITIONS, Positions

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
TRANSFORMERS = VARIANTS | {
    f"{position}, {norm}": {"position": position, "norm": norm}
    for position in (*POSITIONS, "slopes")
    for norm in ("post", "pre")
}
# A model of each kind, in float64, and what it reads: sources, or prompts padded on the left.
MODELS = {
    **{
        name: (lambda changes=changes: (written(**changes)[0], EMPTY))
        for name, changes in TRANSFORMERS.items()
    },
    **{name: (lambda name=name: (decoder_only(name), prompts())) for name in CONFIGS},
    **{
        f"{name}, no prompt": (lambda name=name: (decoder_only(name), prompts()[:, :0]))
        for name in CONFIGS
    },
    **{
        f"{kind.__name__}, {options}": (lambda k=kind, o=options: (make(k, **o), SHORT))
        for kind, options in KINDS
    },
}
EACH = pytest.mark.parametrize("name", MODELS)


def words(model, src):
    g = torch.Generator().manual_seed(6)
    return torch.randint(3, model.tgt_vocab_size, (len(src), T), generator=g)


@EACH
def test_steps_give_the_logits_of_the_whole(name):
    model, src = MODELS[name]()
    assert model.takes_cache
    tgt = words(model, src)
    whole = model.decode(tgt, model.encode(src))
    assert_close(stepwise(model, src, tgt), whole, rtol=0, atol=1e-11)


@EACH
@pytest.mark.usefixtures("unchecked")
def test_selected_and_repeated_rows_go_on_as_they_would_have(name):
    model, src = MODELS[name]()
    tgt, state = words(model, src), model.start_decoding(src, max_len=T)
    rows = torch.arange(len(src))
    for t, chosen in enumerate(([1, 2, 1, 0], [0, 0, 3], [2, 1], [])):
        state.select(torch.tensor(chosen, dtype=torch.long))
        rows = rows[chosen]
        got = model.decode_next(tgt[rows, t], state)
        if chosen:
            whole = model.decode(tgt[rows, : t + 1], model.encode(src[rows]))
            assert_close(got, whole[:, t], rtol=0, atol=1e-11)
    assert got.shape == (0, model.tgt_vocab_size)


@EACH
@pytest.mark.usefixtures("unchecked")  # the steps of each are checked above
def test_every_search_writes_the_same_with_a_cache_as_without(name):
    model, src = MODELS[name]()
    for search in (greedy_decode, beam_search):
        cached, whole = (search(model, src, use_cache=c, **ENDS) for c in (True, False))
        assert_close(cached, whole, rtol=0, atol=1e-5)
    draws = [
        sample(model, src, use_cache=c, generator=torch.Generator().manual_seed(0), **ENDS)
        for c in (True, False)
    ]
    assert torch.equal(*draws)


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


class Mean(nn.Module):
    """A foreign attention: the mean of the values that may be seen. It takes no cache."""

    def forward(self, query, key, value, mask=None):
        shape = (len(query), 1, query.size(1), key.size(1))
        seen = torch.ones(shape) if mask is None else mask.expand(shape)
        weights = seen[:, 0].to(value)
        return weights @ value / weights.sum(dim=-1, keepdim=True).clamp(min=1)


class OtherLayer(nn.Module):
    """A foreign layer, which takes no cache either."""

    def __init__(self):
        super().__init__()
        self.layer = DecoderLayer(config())

    def forward(self, x, memory, tgt_mask=None, src_mask=None):
        return 1.5 * self.layer(x, memory, tgt_mask, src_mask)


PARTS = {
    "self_attention": (Sharp(D, 4), True),
    "cross_attention": (Sharp(D, 4), True),
    "foreign self_attention": (Mean(), False),
    "foreign cross_attention": (Mean(), False),
    "foreign layer": (OtherLayer(), False),
}


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("position", ["sinusoidal", "rotary"])
@pytest.mark.usefixtures("unchecked")
def test_a_part_from_elsewhere_decodes_with_a_cache_or_does_without(name, position):
    model, tgt = written(position=position)
    before, (part, takes_cache) = model(SRC, tgt), PARTS[name]
    if name == "foreign layer":
        model.decoder.layers.append(part.double())
    else:
        setattr(model.decoder.layers[1], name.split()[-1], part.double())
    assert not torch.allclose(model(SRC, tgt), before), "the part changes nothing"
    assert model.takes_cache is takes_cache
    if takes_cache:
        assert_close(stepwise(model, SRC, tgt), model(SRC, tgt), rtol=0, atol=1e-12)
    cached, whole = (greedy_decode(model, SRC, use_cache=c, **ENDS) for c in (True, False))
    assert torch.equal(cached, whole)


@pytest.mark.usefixtures("unchecked")
def test_a_decoder_alone_with_a_part_from_elsewhere_does_without():
    model = decoder_only("gpt2")
    assert model.takes_cache
    model.blocks[1].self_attention = Mean().double()
    assert not model.takes_cache
    cached, whole = (greedy_decode(model, prompts(), use_cache=c, **ENDS) for c in (True, False))
    assert torch.equal(cached, whole)


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
                row = whole[name][:, :, t : t + 1, :S_t]
                assert_close(weights, row, rtol=0, atol=1e-12)
    assert len(maps) == 2 * len(model.decoder.layers)


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
