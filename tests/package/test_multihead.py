import copy
import math
from contextlib import nullcontext

import pytest
import torch
from torch.testing import assert_close

from tests.package.oracles import attention_by_loops, torch_attention
from transformer.cache import KeyValueCache
from transformer.masks import causal_mask, padding_mask
from transformer.multihead import MultiHeadAttention, record_attention
from transformer.positional import Positions, RotaryPositions

B, T, S, D, H = 3, 5, 7, 24, 4
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12}
DTYPES = pytest.mark.parametrize("dtype", TOLERANCE)


def module(dtype=torch.float64, seed=0, **options):
    """With biases that are not zero, so that none can be forgotten."""
    torch.manual_seed(seed)
    made = MultiHeadAttention(D, H, **options).to(dtype)
    with torch.no_grad():
        for p in made.parameters():
            p.copy_(torch.randn(p.shape) / math.sqrt(D))
    return made


def vectors(*lengths, dtype=torch.float64, seed=1):
    g = torch.Generator().manual_seed(seed)
    return [torch.randn(B, n, D, generator=g, dtype=torch.float64).to(dtype) for n in lengths]


def source(length=S):
    tokens = torch.ones(B, length, dtype=torch.long)
    tokens[1, 3:] = 0
    return tokens


@DTYPES
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("masked", [None, "padding", "causal", "both"])
def test_equals_torch_forward_and_gradients(masked, bias, dtype):
    ours = module(dtype, bias=bias)
    theirs = torch_attention(ours)
    x, y = (t.requires_grad_() for t in vectors(S, S, dtype=dtype))
    mask, hidden, future = None, None, None
    if masked in ("padding", "both"):
        mask, hidden = padding_mask(source()), source() == 0
    if masked in ("causal", "both"):
        causal = causal_mask(S)
        mask, future = causal if mask is None else mask & causal, ~causal
    out = ours(x, y, y, mask)
    expected, _ = theirs(x, y, y, key_padding_mask=hidden, attn_mask=future, need_weights=False)
    assert_close(out, expected, rtol=0, atol=TOLERANCE[dtype])

    g = torch.randn(out.shape, generator=torch.Generator().manual_seed(2)).to(dtype)
    three = [ours.W_q, ours.W_k, ours.W_v]
    mine = torch.autograd.grad(out, [x, y, *(m.weight for m in three), ours.W_o.weight], g)
    wanted = torch.autograd.grad(expected, [x, y, theirs.in_proj_weight, theirs.out_proj.weight], g)
    mine = [*mine[:2], torch.cat(mine[2:5]), mine[5]]
    assert_close(mine, list(wanted), rtol=0, atol=10 * TOLERANCE[dtype])


def test_a_query_without_keys_gets_the_bias_of_the_output_layer_alone():
    attend = module()
    query, memory = vectors(T, S)
    mask = torch.ones(B, 1, T, S, dtype=torch.bool)
    mask[1] = False
    out = attend(query, memory, memory, mask)
    assert_close(out[1], attend.W_o.bias.expand(T, D))
    assert out.isfinite().all()


def alibi(n_heads=H):
    """Slopes of its own for each head, on how far back a key lies; Press et al. (2022)."""
    slopes = 2.0 ** -torch.arange(1, n_heads + 1)[:, None, None]

    class Alibi(Positions):
        def bias(self, T, S):
            return slopes * (torch.arange(S) - torch.arange(S - T, S)[:, None])

    return Alibi()


POSITIONED = pytest.mark.parametrize(
    "make", [Positions, lambda: RotaryPositions(S, D // H), alibi], ids=["none", "rotary", "bias"]
)


def by_loops(attend, query, key, value, mask=None):
    """The formula of the class, with positions where the paper of each has them."""

    def heads(linear, x):
        return linear(x).unflatten(-1, (-1, D // H)).transpose(1, 2)

    q, k, v = heads(attend.W_q, query), heads(attend.W_k, key), heads(attend.W_v, value)
    q, k = attend.positions.turn(q), attend.positions.turn(k)  # and not the values
    k, v = (torch.stack([x[:, i * x.size(1) // H] for i in range(H)], dim=1) for x in (k, v))
    bias = attend.positions.bias(q.size(2), k.size(2))
    return attend.W_o(attention_by_loops(q, k, v, mask, bias).transpose(1, 2).flatten(-2))


@POSITIONED
@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_positions_act_on_queries_and_keys_and_scores_alone(make, recorded, masked):
    attend = module(positions=make())
    key, value = vectors(S, S)
    mask = padding_mask(source()) & causal_mask(S) if masked else None
    with record_attention(attend) if recorded else nullcontext():
        out = attend(key, key, value, mask)
    assert_close(out, by_loops(attend, key, key, value, mask), rtol=0, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("recorded", [False, True])
def test_a_bias_in_every_dtype(dtype, recorded):
    attend = module(dtype, positions=alibi())
    query, memory = vectors(S, S, dtype=dtype)
    mask = torch.ones(B, 1, S, S, dtype=torch.bool)
    mask[1] = False
    with record_attention(attend) if recorded else nullcontext():
        out = attend(query, memory, memory, mask)
    assert out.dtype == dtype
    expected = module(positions=alibi())(query.double(), memory.double(), memory.double(), mask)
    tolerance = {torch.float16: 1e-2, torch.bfloat16: 1e-1, torch.float32: 1e-5}[dtype]
    assert_close(out.double(), expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("positions", [None, alibi(1)])
@pytest.mark.parametrize("recorded", [False, True])
def test_scores_of_half_precision_do_not_overflow_before_they_are_scaled(positions, recorded):
    attend = MultiHeadAttention(64, 1, bias=False, positions=positions).half()
    with torch.no_grad():
        for linear in (attend.W_q, attend.W_k, attend.W_v, attend.W_o):
            linear.weight.copy_(torch.eye(64))
    x = torch.full((1, 2, 64), 40.0).half()  # scores of 64 · 40² > 65504, an eighth when scaled
    with record_attention(attend) if recorded else nullcontext():
        assert_close(attend(x, x, x), x, rtol=1e-2, atol=0)


@POSITIONED
@pytest.mark.parametrize("n_key_heads", [1, 2, 4])
def test_groups_of_heads_may_share_keys_and_values(make, n_key_heads):
    attend = module(n_key_heads=n_key_heads, positions=make())
    (x,) = vectors(S)
    expected = by_loops(attend, x, x, x, causal_mask(S))
    assert_close(attend(x, x, x, causal_mask(S)), expected, rtol=0, atol=1e-12)
    cache = KeyValueCache(S)
    rows = [attend(y, y, y, cache=cache) for y in x.split(1, dim=1)]
    assert cache.keys.shape == (B, n_key_heads, S, D // H)
    assert_close(torch.cat(rows, dim=1), expected, rtol=0, atol=1e-12)
    with record_attention(attend) as maps:
        attend(x, x, x, causal_mask(S))
    assert maps[""].shape == (B, H, S, S)


def test_record_attention_gives_the_weights_that_torch_gives():
    attend = module()
    query, memory = vectors(T, S)
    hidden = source() == 0
    _, expected = torch_attention(attend)(
        query, memory, memory, key_padding_mask=hidden, average_attn_weights=False
    )
    with record_attention(attend) as maps:
        recorded = attend(query, memory, memory, padding_mask(source()))
    assert list(maps) == [""]
    assert not maps[""].requires_grad
    assert_close(maps[""], expected, rtol=0, atol=1e-12)
    assert_close(recorded, attend(query, memory, memory, padding_mask(source())))


def test_record_attention_ends_with_its_block_even_after_an_error():
    attend = module()
    (x,) = vectors(S)
    with record_attention(attend) as outer:
        attend(x, x, x)
        first = outer[""]
        with pytest.raises(ZeroDivisionError), record_attention(attend) as inner:
            attend(2 * x, x, x).fill_(1 / 0)
        assert outer[""] is first
        attend(3 * x, x, x)
    assert outer[""] is not first
    last = outer[""]
    attend(x, x, x)
    assert outer[""] is last
    assert set(inner) == {""}


def test_a_copy_made_while_the_original_is_watched_is_not_watched():
    attend = module()
    (x,) = vectors(S)
    with record_attention(attend) as maps:
        attend(x, x, x)
        first = maps[""]
        copied = copy.deepcopy(attend)
        copied(2 * x, x, x)
        assert maps[""] is first
    assert copied.record is None
    assert_close(copied(x, x, x), attend(x, x, x))


def test_record_attention_wants_something_to_record():
    with pytest.raises(ValueError, match="must hold a MultiHeadAttention, got Linear"):
        record_attention(torch.nn.Linear(2, 2)).__enter__()


def bad_inputs():
    query, memory = vectors(T, S)
    nothing = torch.ones(B, 1, T, S + 1, dtype=torch.bool)
    yield (query[0], memory, memory), r"query must have shape \(B, length, d_model\)"
    yield (query, memory[..., :-1], memory), r"key must have .* 24\), got \(3, 7, 23\)"
    yield (query, memory, memory[:2]), r"value must have .* \(3, length, 24\), got \(2, 7, 24\)"
    yield (query, memory[:1], memory[:1]), r"key must have .* got \(1, 7, 24\)"
    yield (query, memory, memory[:, :5]), "value must be as long as key, 7 positions, got 5"
    yield (query, memory, memory, nothing), r"mask must broadcast .* \(3, 4, 5, 7\)"
    ambiguous = torch.ones(B, T, S, dtype=torch.bool)
    yield (query, memory, memory, ambiguous), r"mask must have the axes \(T, S\) or \(B, 1 or 4"
    yield (query[0, 0, 0], memory, memory), r"query must have shape \(B, length, d_model\)"
    yield (query, memory, memory, nothing[..., :S].float()), "mask must be bool"


@pytest.mark.parametrize(("inputs", "message"), list(bad_inputs()))
@pytest.mark.usefixtures("unchecked")
def test_refuses_inputs(inputs, message):
    with pytest.raises(ValueError, match=message):
        module()(*inputs)
