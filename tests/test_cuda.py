"""What only a GPU can show; skipped, with the reason, where there is none."""

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.testing import assert_close

from transformer.attention import attention, fused_attention
from transformer.masks import causal_mask, padding_mask

pytestmark = pytest.mark.cuda
TOLERANCE = {torch.float32: 1e-5, torch.float16: 5e-3, torch.bfloat16: 3e-2}


def on_gpu(dtype, T=33, S=65, seed=0):
    """Made on the CPU and moved, so that the numbers are those of every other machine."""
    g = torch.Generator().manual_seed(seed)
    shapes = ((2, 4, T, 32), (2, 4, S, 32), (2, 4, S, 32))
    return [torch.randn(*shape, generator=g).to("cuda", dtype) for shape in shapes]


def masks(T=33, S=65):
    tokens = torch.ones(2, S, dtype=torch.long)
    tokens[1, 40:] = 0
    causal = causal_mask(S)[:T]
    nothing = causal.clone()
    nothing[0] = False
    return [None, padding_mask(tokens), padding_mask(tokens) & causal, nothing]


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("which", range(4))
@pytest.mark.parametrize("attend", [attention, fused_attention])
def test_gpu_equals_cpu(attend, which, dtype):
    mask = masks()[which]
    q, k, v = on_gpu(dtype)
    out = attend(q, k, v, None if mask is None else mask.cuda())
    expected = attention(q.cpu().double(), k.cpu().double(), v.cpu().double(), mask)
    assert_close(out.cpu().double(), expected, rtol=0, atol=TOLERANCE[dtype])


@pytest.mark.parametrize("backend", [SDPBackend.MATH, SDPBackend.EFFICIENT_ATTENTION])
def test_a_query_without_keys_gets_zeros_from_every_kernel(backend):
    # the memory-efficient kernel is the one that a T4 has
    q, k, v = (t.requires_grad_() for t in on_gpu(torch.float16))
    mask = masks()[3].cuda()
    with sdpa_kernel(backend):
        out = fused_attention(q, k, v, mask)
        out.float().square().sum().backward()
    assert (out[..., 0, :] == 0).all()
    assert all(t.grad.isfinite().all() for t in (q, k, v))
