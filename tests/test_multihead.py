import copy
import math

import pytest
import torch
from torch.testing import assert_close

from tests.oracles import attention_by_loops, torch_attention
from transformer.masks import causal_mask, padding_mask
from transformer.cache import KeyValueCache
from transformer.multihead import MultiHeadAttention, record_attention

B, T, S, D, H = 3, 5, 7, 12, 4
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


def test_equals_its_heads_one_by_one():
    attend = module()
    query, memory = vectors(T, S)
    q, k, v = attend.W_q(query), attend.W_k(memory), attend.W_v(memory)
    heads = [
        attention_by_loops(*(x[..., i * D // H : (i + 1) * D // H] for x in (q, k, v)))
        for i in range(H)
    ]
    expected = torch.cat(heads, dim=-1) @ attend.W_o.weight.T + attend.W_o.bias
    assert_close(attend(query, memory, memory), expected, rtol=0, atol=1e-12)


def test_value_may_differ_from_key():
    attend = module()
    query, key, value = vectors(T, S, S)
    expected, _ = torch_attention(attend)(query, key, value)
    assert_close(attend(query, key, value), expected, rtol=0, atol=1e-12)


def test_a_query_without_keys_gets_the_bias_of_the_output_layer_alone():
    attend = module()
    query, memory = vectors(T, S)
    mask = torch.ones(B, 1, T, S, dtype=torch.bool)
    mask[1] = False
    out = attend(query, memory, memory, mask)
    assert_close(out[1], attend.W_o.bias.expand(T, D))
    assert out.isfinite().all()


def test_dropout_falls_on_the_weights_in_training_only():
    attend = module(dropout=0.5)
    query, memory = vectors(T, S)
    assert not torch.equal(attend(query, memory, memory), attend(query, memory, memory))
    attend.eval()
    assert_close(attend(query, memory, memory), module().eval()(query, memory, memory))


def test_dropout_keeps_the_mean():
    attend = module(dropout=0.3, bias=False)
    query, memory = vectors(T, S)
    torch.manual_seed(0)
    many = [x.repeat(4000, 1, 1) for x in (query, memory, memory)]
    mean = attend(*many).unflatten(0, (4000, B)).mean(dim=0)
    assert_close(mean, attend.eval()(query, memory, memory), rtol=0, atol=0.05)


@pytest.mark.parametrize("steps", [(1,) * S, (3, 1, 3)])
def test_cache_holds_what_was_appended_in_order(steps):
    kv = torch.randn(B, 2, H, S, 5, generator=torch.Generator().manual_seed(0))
    cache = KeyValueCache(torch.full((B, 2, H, S + 1, 5), torch.nan))
    for part in kv.split(list(steps), dim=3):
        cache.append(part)
    assert cache.length == S
    for held, expected in zip(cache.held(), kv.unbind(1), strict=True):
        assert torch.equal(held, expected)


def test_cache_selects_rows_and_repeats_them():
    kv = torch.randn(B, 2, H, S, 5, generator=torch.Generator().manual_seed(0))
    cache = KeyValueCache(kv, length=4)
    rows = torch.tensor([2, 0, 2, 1])
    cache.select(rows)
    for held, expected in zip(cache.held(), kv.unbind(1), strict=True):
        assert torch.equal(held, expected[rows, :, :4])


def test_cache_refuses_more_than_it_has_room_for():
    cache = KeyValueCache(torch.zeros(B, 2, H, 4, 5), length=3)
    with pytest.raises(ValueError, match="the cache has room for 4 positions, got 5"):
        cache.append(torch.ones(B, 2, H, 2, 5))
    assert cache.length == 3
    assert not cache.room.any()


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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((10, 4), "d_model must be a multiple of n_heads, got 10 and 4"),
        ((0, 4), "d_model must be positive, got 0"),
        ((8, -2), "n_heads must be positive, got -2"),
    ],
)
def test_refuses_sizes(arguments, message):
    with pytest.raises(ValueError, match=message):
        MultiHeadAttention(*arguments)


def bad_inputs():
    query, memory = vectors(T, S)
    nothing = torch.ones(B, 1, T, S + 1, dtype=torch.bool)
    yield (query[0], memory, memory), r"query must have shape \(B, length, d_model\)"
    yield (query, memory[..., :-1], memory), r"key must have .* 12\), got \(3, 7, 11\)"
    yield (query, memory, memory[:2]), r"value must have .* \(3, length, 12\), got \(2, 7, 12\)"
    yield (query, memory[:1], memory[:1]), r"key must have .* got \(1, 7, 12\)"
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
