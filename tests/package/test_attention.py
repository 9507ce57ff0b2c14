import itertools
import math

import jaxtyping
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from tests.package.oracles import attention_by_loops
from transformer.attention import attention, attention_weights
from transformer.fused import fused_attention, fused_heads
from transformer.masks import causal_mask, noted

BOTH = pytest.mark.parametrize("attend", [attention, fused_attention])
B, H, T, S, D_K, D_V = 2, 3, 4, 5, 6, 7  # all different, so that no swapped axis goes unseen
# Rounding of one product in the dtype's own precision, a few units in the last place.
TOLERANCE = {
    torch.float32: 1e-5,
    torch.float64: 1e-12,
    torch.float16: 4e-3,
    torch.bfloat16: 3e-2,
}


def tensors(*batch, T=T, S=S, d_k=D_K, d_v=D_V, dtype=torch.float32, seed=0):
    g = torch.Generator().manual_seed(seed)
    shapes = ((T, d_k), (S, d_k), (S, d_v))
    return [
        torch.randn(*batch, *shape, generator=g, dtype=torch.float64).to(dtype) for shape in shapes
    ]


def some_mask(*shape, seed=0):
    """Random, with one query that may attend to nothing and one that may attend to all."""
    mask = torch.rand(shape, generator=torch.Generator().manual_seed(seed)) < 0.6
    if len(shape) > 1 and shape[-2] > 1:
        mask[..., 0, :], mask[..., 1, :] = False, True
    return mask


def broadcastable(*full):
    """Every shape that broadcasts to ``full``, from () to ``full`` itself."""
    for n in range(len(full) + 1):
        yield from itertools.product(*[(1, size) for size in full[len(full) - n :]])


@BOTH
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("batch", [(), (B,), (B, H), (2, 1, 3)])
def test_equals_plain_loops(attend, dtype, batch):
    q, k, v = tensors(*batch, dtype=dtype)
    out = attend(q, k, v)
    assert out.dtype == dtype
    assert_close(out.double(), attention_by_loops(q, k, v), rtol=0, atol=TOLERANCE[dtype])


@BOTH
@pytest.mark.parametrize("shape", sorted(set(broadcastable(B, H, T, S))))
def test_masks_of_every_broadcastable_shape_equal_plain_loops(attend, shape):
    q, k, v = tensors(B, H, dtype=torch.float64)
    mask = some_mask(*shape)
    assert_close(attend(q, k, v, mask), attention_by_loops(q, k, v, mask), rtol=0, atol=1e-12)


@BOTH
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_masked_in_every_dtype(attend, dtype):
    q, k, v = tensors(B, H, dtype=dtype)
    mask = some_mask(B, 1, T, S)
    expected = attention_by_loops(q, k, v, mask)
    assert_close(attend(q, k, v, mask).double(), expected, rtol=0, atol=TOLERANCE[dtype])


@pytest.mark.parametrize("masked", [False, True])
def test_reference_equals_torch(masked):
    q, k, v = tensors(B, H, dtype=torch.float64)
    mask = some_mask(B, 1, T, S) | torch.eye(T, S, dtype=torch.bool) if masked else None
    expected = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    assert_close(attention(q, k, v, mask), expected, rtol=0, atol=1e-12)


def test_weights_are_the_averages_weights():
    q, k, v = tensors(B, dtype=torch.float64)
    mask = some_mask(B, T, S)
    weights = attention_weights(q, k, mask)
    assert_close(weights @ v, attention(q, k, v, mask), rtol=0, atol=0)
    assert (weights >= 0).all()
    assert (weights[~mask] == 0).all()
    assert_close(weights.sum(-1), mask.any(-1).double(), rtol=0, atol=1e-12)


@BOTH
@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_a_query_without_keys_gets_zeros_and_harmless_gradients(attend, dtype):
    inputs = [t.requires_grad_() for t in tensors(B, H, dtype=dtype)]
    mask = some_mask(T, S)
    with torch.autograd.detect_anomaly(check_nan=True):
        out = attend(*inputs, mask)
        out.float().square().sum().backward()
    assert (out[..., 0, :] == 0).all()
    assert not (out[..., 1, :] == 0).any()
    assert all(t.grad.isfinite().all() for t in inputs)
    assert (inputs[0].grad[..., 0, :] == 0).all()


@BOTH
def test_without_any_key_everything_is_zero(attend):
    q, k, v = tensors(B, H, S=0)
    for mask in (None, torch.ones(T, 0, dtype=torch.bool), torch.tensor(True)):
        assert_close(attend(q, k, v, mask), torch.zeros(B, H, T, D_V), rtol=0, atol=0)


@BOTH
def test_without_any_query_the_result_is_empty(attend):
    assert attend(*tensors(B, H, T=0)).shape == (B, H, 0, D_V)


@BOTH
@pytest.mark.parametrize("masked", [False, True])
def test_gradcheck(attend, masked):
    inputs = [t.requires_grad_() for t in tensors(2, T=3, S=4, d_k=2, d_v=3, dtype=torch.float64)]
    mask = some_mask(2, 3, 4) if masked else None
    assert torch.autograd.gradcheck(lambda q, k, v: attend(q, k, v, mask), inputs)


@pytest.mark.parametrize("shape", sorted(set(broadcastable(2, 2, 33, 65))))
def test_the_kernel_for_equal_widths_sees_every_mask(shape):
    # with four axes and d_k = d_v the CPU, too, has a flash kernel, with rules of its own
    results = []
    for attend in (attention, fused_attention):
        inputs = [t.requires_grad_() for t in tensors(2, 2, T=33, S=65, d_k=16, d_v=16)]
        out = attend(*inputs, some_mask(*shape))
        out.square().sum().backward()
        results.append([out, *(t.grad for t in inputs)])
    for fused, reference in zip(*results, strict=True):
        assert_close(fused, reference, rtol=1e-4, atol=1e-5)


def test_fused_is_fused_and_no_kernel_meets_a_row_without_keys(monkeypatch):
    calls = []

    def kernel(*inputs, attn_mask=None, **words):
        calls.append(attn_mask)
        return sdpa(*inputs, attn_mask=attn_mask, **words)

    sdpa = F.scaled_dot_product_attention
    monkeypatch.setattr(F, "scaled_dot_product_attention", kernel)
    fused_attention(*tensors())
    fused_attention(*tensors(), some_mask(T, S))
    fused_attention(*tensors(), some_mask(T, 1))
    attention(*tensors())
    assert [None if mask is None else mask.shape for mask in calls] == [None, (T, S), (T, S)]
    assert all(mask.any(-1).all() for mask in calls[1:])


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_a_cpu_computes_half_precision_in_float32_and_nothing_else_anew(dtype, monkeypatch):
    seen = []

    def kernel(q, k, v, attn_mask=None, **words):
        seen.append([t.dtype for t in (q, k, v, attn_mask) if t is not None])
        return sdpa(q, k, v, attn_mask=attn_mask, **words)

    sdpa = F.scaled_dot_product_attention
    monkeypatch.setattr(F, "scaled_dot_product_attention", kernel)
    inputs = tensors(B, H, dtype=dtype)
    wanted = torch.float32 if dtype.itemsize < 4 else dtype
    assert fused_heads(*inputs, some_mask(T, S)).dtype == dtype
    assert fused_heads(*inputs, some_mask(T, S), torch.randn(H, T, S)).dtype == dtype
    assert seen == [[wanted] * 3 + [torch.bool], [wanted] * 4]
    exact = sdpa(*(t.float() for t in inputs)) if dtype.itemsize < 4 else sdpa(*inputs)
    assert torch.equal(fused_heads(*inputs), exact.to(dtype))


NOTED = {  # a note → a mask that it is true of, and what the kernel is given
    "full": (torch.ones(B, 1, 1, T, dtype=torch.bool), {"attn_mask": False, "is_causal": False}),
    "causal": (causal_mask(T), {"attn_mask": False, "is_causal": True}),
    "right": (
        (torch.arange(T) < torch.tensor([1, T])[:, None])[:, None, None],
        {"attn_mask": True, "is_causal": False},
    ),
    "keyed": (torch.eye(T, dtype=torch.bool), {"attn_mask": True, "is_causal": False}),
}


@pytest.mark.parametrize("n_key_heads", [4, 2, 1])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("note", NOTED)
def test_a_note_spares_the_kernel_a_mask_and_changes_no_number(
    note, biased, n_key_heads, monkeypatch
):
    g = torch.Generator().manual_seed(5)
    q = torch.randn(B, 4, T, 8, generator=g, dtype=torch.float64)
    k, v = torch.randn(2, B, n_key_heads, T, 8, generator=g, dtype=torch.float64)
    bias = torch.randn(4, T, T, generator=g, dtype=torch.float64) if biased else None
    mask, wanted = NOTED[note]
    whole = [x.repeat_interleave(4 // n_key_heads, dim=1) for x in (k, v)]
    plain = fused_heads(q, *whole, mask.clone(), bias)
    calls = []

    def kernel(*inputs, attn_mask, is_causal, enable_gqa):
        calls.append({"attn_mask": attn_mask is not None, "is_causal": is_causal})
        return sdpa(*inputs, attn_mask=attn_mask, is_causal=is_causal, enable_gqa=enable_gqa)

    sdpa = F.scaled_dot_product_attention
    monkeypatch.setattr(F, "scaled_dot_product_attention", kernel)
    monkeypatch.setattr("transformer.fused._seen_to_be_empty", pytest.fail)  # a look is a wait
    assert_close(fused_heads(q, k, v, noted(mask.clone(), note), bias), plain, rtol=0, atol=1e-12)
    assert calls == [{"attn_mask": True, "is_causal": False} if biased else wanted]


def test_a_causal_note_is_of_as_many_queries_as_keys():
    q, k, v = torch.randn(1, 1, 1, 8), torch.randn(1, 1, 5, 8), torch.randn(1, 1, 5, 8)
    mask = noted(causal_mask(1), "causal")  # (1, 1), which broadcasts over all keys
    assert_close(fused_heads(q, k, v, mask), fused_heads(q, k, v))


BIASES = [(T, S), (H, T, S), (H, 1, S), (B, 1, T, S)]


def some_bias(*shape, dtype=torch.float64):
    g = torch.Generator().manual_seed(7)
    return 3 * torch.randn(shape, generator=g, dtype=torch.float64).to(dtype)


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("mask", [None, (T, S), (S,), (B, 1, T, S), (B, 1, 1, S), (T, 1)])
def test_a_bias_is_added_to_the_scaled_scores(bias, mask):
    q, k, v = tensors(B, H, dtype=torch.float64)
    mask, bias = None if mask is None else some_mask(*mask), some_bias(*bias)
    expected = attention_by_loops(q, k, v, mask, bias)
    assert_close(fused_heads(q, k, v, mask, bias), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_a_bias_in_every_dtype_and_in_another_than_the_queries(dtype, own):
    q, k, v = tensors(B, H, dtype=dtype)
    other = torch.float64 if dtype == torch.float32 else torch.float32
    mask, bias = some_mask(B, 1, T, S), some_bias(H, T, S, dtype=dtype if own else other)
    out = fused_heads(q, k, v, mask, bias)
    assert out.dtype == dtype
    expected = attention_by_loops(q, k, v, mask, bias)
    assert_close(out.double(), expected, rtol=0, atol=TOLERANCE[dtype])
    assert (out[..., 0, :] == 0).all()  # a query without keys


def test_a_bias_learns():
    q, k, v = tensors(2, T=3, S=4, d_k=2, d_v=3, dtype=torch.float64)
    mask, bias = some_mask(2, 3, 4), some_bias(3, 4).requires_grad_()
    assert torch.autograd.gradcheck(lambda bias: fused_heads(q, k, v, mask, bias), [bias])
    assert torch.autograd.gradcheck(lambda bias: fused_heads(q, k, v, None, bias), [bias])


@BOTH
@pytest.mark.parametrize(
    ("dtype", "large"), [(torch.float16, 300), (torch.float32, 1e20), (torch.float64, 1e160)]
)
def test_scores_that_overflow_do_no_harm_where_nothing_may_be_seen(attend, dtype, large):
    q, k, v = (torch.full((1, 1, n, 64), large, dtype=dtype) for n in (2, 3, 3))
    v = v / large
    inputs = [t.requires_grad_() for t in (q, k, v)]
    out = attend(*inputs, torch.zeros(2, 3, dtype=torch.bool))
    out.float().sum().backward()
    assert (out == 0).all()
    assert all((t.grad == 0).all() for t in inputs)


@BOTH
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_scores_of_six_times_ten_to_the_four_do_not_overflow(attend, dtype):
    d_k = 64
    q = torch.full((2, d_k), math.sqrt(6e4 / math.sqrt(d_k))).to(dtype)
    k = torch.stack([q[0], -q[0], torch.zeros(d_k, dtype=dtype)])
    out = attend(q, k, torch.eye(3, dtype=dtype))
    assert_close(out, torch.tensor([[1.0, 0, 0]] * 2, dtype=dtype), rtol=0, atol=0)


@BOTH
def test_a_masked_key_gets_nothing_however_low_the_others_score(attend):
    q, k = torch.full((1, 1), 1e5), torch.tensor([[-1e5], [1e5]])
    out = attend(q, k, torch.tensor([[1.0], [2.0]]), torch.tensor([True, False]))
    assert out.item() == 1.0


sizes = st.integers(1, 6)


@given(sizes, sizes, sizes, sizes, st.integers(0, 2**31), st.booleans())
def test_properties(T, S, d_k, d_v, seed, masked):
    q, k, v = tensors(T=T, S=S, d_k=d_k, d_v=d_v, dtype=torch.float64, seed=seed)
    g = torch.Generator().manual_seed(seed)
    mask = torch.rand(T, S, generator=g) < 0.7 if masked else torch.ones(T, S, dtype=torch.bool)
    out = attention(q, k, v, mask)
    assert_close(fused_attention(q, k, v, mask), out, rtol=0, atol=1e-12)
    assert_close(attention_by_loops(q, k, v, mask), out, rtol=0, atol=1e-12)
    # within the values that may be seen
    seen = mask.any(-1)
    for t in range(T):
        if seen[t]:
            values = v[mask[t]]
            assert (out[t] >= values.amin(0) - 1e-12).all()
            assert (out[t] <= values.amax(0) + 1e-12).all()
    # equivariant in the queries, invariant in the entries
    a, b = torch.randperm(T, generator=g), torch.randperm(S, generator=g)
    shuffled = attention(q[a], k[b], v[b], mask[a][:, b])
    assert_close(shuffled, out[a], rtol=0, atol=1e-12)
    # affine in the values, where there is a key at all
    affine = attention(q, k, 3 * v + 2, mask)
    assert_close(affine[seen], 3 * out[seen] + 2, rtol=0, atol=1e-11)


BAD = [
    (
        ((D_K,), (S, D_K), (S, D_V), None),
        r"q must have at least two axes \(\.\.\., T, d_k\), got \(6,\)",
    ),
    (
        ((T, D_K), (S, 3), (S, D_V), None),
        r"k must have shape \(S, 6\) to fit q \(4, 6\), got \(5, 3\)",
    ),
    (((T, D_K), (D_K,), (S, D_V), None), r"k must have shape \(S, 6\) to fit q .*, got \(6,\)"),
    (((T, D_K), (S, D_K), (S, D_V), (0, S)), r"mask must broadcast to .*, got \(0, 5\)"),
    (((B, T, D_K), (S, D_K), (B, S, D_V), None), r"k must have shape \(2, S, 6\) .* got \(5, 6\)"),
    (
        ((B, T, D_K), (3, S, D_K), (B, S, D_V), None),
        r"k must have shape \(2, S, 6\) .* got \(3, 5, 6\)",
    ),
    (((T, D_K), (S, D_K), (T, D_V), None), r"v must have shape \(5, d_v\), .* got \(4, 7\)"),
    (((T, D_K), (S, D_K), (B, S, D_V), None), r"v must have shape \(5, d_v\), .* got \(2, 5, 7\)"),
    (((T, D_K), (S, D_K), (S, D_V), (S, T)), r"mask must broadcast to .* = \(4, 5\), got \(5, 4\)"),
    (
        ((T, D_K), (S, D_K), (S, D_V), (1, T, S)),
        r"mask must broadcast to .* \(4, 5\), got \(1, 4, 5\)",
    ),
    (((B, H, T, D_K), (B, H, S, D_K), (B, H, S, D_V), (B, T, S)), r"mask must .* got \(2, 4, 5\)"),
]


@BOTH
@pytest.mark.parametrize(("shapes", "message"), BAD)
def test_shapes_that_do_not_fit_are_named(attend, shapes, message, unchecked):
    q, k, v = (torch.zeros(shape) for shape in shapes[:3])
    mask = None if shapes[3] is None else torch.ones(shapes[3], dtype=torch.bool)
    with pytest.raises(ValueError, match=message):
        attend(q, k, v, mask)


@BOTH
@pytest.mark.parametrize("which", [0, 1, 2])
@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.complex64])
def test_what_is_not_floating_point_is_refused(attend, which, dtype, unchecked):
    inputs = tensors()
    inputs[which] = inputs[which].to(dtype)
    with pytest.raises(
        ValueError, match=f"{'qkv'[which]} must hold floating-point numbers, got {dtype}"
    ):
        attend(*inputs)


@BOTH
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.uint8])
def test_a_mask_that_is_not_boolean_is_refused(attend, dtype, unchecked):
    with pytest.raises(ValueError, match=f"mask must be bool with True = may attend, got {dtype}"):
        attend(*tensors(), torch.ones(T, S, dtype=dtype))


def test_annotations_are_enforced():
    q, k, v = tensors()
    with pytest.raises(jaxtyping.TypeCheckError):
        attention(q, k[:, :3], v)
