"""What only a GPU can show; skipped, with the reason, where there is none."""

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.testing import assert_close

from tests.copying import copy_batch
from transformer.attention import attention
from transformer.config import TransformerConfig
from transformer.decoding import beam_search, greedy_decode
from transformer.fused import fused_attention
from transformer.masks import causal_mask, padding_mask
from transformer.model import Transformer
from transformer.runtime import Timer
from transformer.training import fit, smoothed_cross_entropy, warmup_schedule

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


def model(**changes):
    torch.manual_seed(0)
    sizes = {"d_model": 32, "d_ff": 64, "max_len": 32, "dropout": 0.0, "share_embeddings": False}
    return Transformer(TransformerConfig.tiny(20, 20, **{**sizes, **changes}))


def sentences(i=0):
    g = torch.Generator().manual_seed(i)
    return copy_batch(16, 20, min_len=3, max_len=9, generator=g)


@pytest.mark.parametrize("position", ["sinusoidal", "learned", "rotary", "none"])
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_the_model_and_its_decoding_are_those_of_the_cpu(norm, position):
    made, (src, tgt) = model(norm=norm, position=position).double(), sentences()
    src[3] = 0
    on_cpu = made(src, tgt)
    ids = {"bos_id": 1, "eos_id": 2, "max_len": 12}
    expected = greedy_decode(made, src, **ids), beam_search(made, src, **ids)
    made = made.cuda()
    assert_close(made(src.cuda(), tgt.cuda()).cpu(), on_cpu, rtol=0, atol=1e-10)
    assert torch.equal(greedy_decode(made, src.cuda(), **ids).cpu(), expected[0])
    tokens, log_p = beam_search(made, src.cuda(), **ids)
    assert torch.equal(tokens.cpu(), expected[1][0])
    assert_close(log_p.cpu(), expected[1][1], rtol=0, atol=1e-4)
    uncached = greedy_decode(made, src.cuda(), use_cache=False, **ids)
    assert torch.equal(uncached.cpu(), expected[0])


def test_ids_outside_the_vocabulary_are_a_clear_error_here_too():
    made, (src, tgt) = model().cuda(), sentences()
    wrong = src.clone()
    wrong[0, 0] = 20
    with pytest.raises(ValueError, match="src must hold ids from 0 to 19, got 20"):
        made(wrong.cuda(), tgt.cuda())
    assert made(src.cuda(), tgt.cuda()).isfinite().all()  # the device still works


@pytest.mark.parametrize("precision", ["fp32", "fp16", "auto"])
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.usefixtures("unchecked")
def test_trains_in_every_precision_and_resumes(precision, compiled, tmp_path):
    options = {"schedule": warmup_schedule(1e-2, warmup=20), "progress": False}
    options |= {"precision": precision, "compiled": compiled, "smoothing": 0.0}
    made = model(dropout=0.1)
    first = fit(made, sentences, n_steps=60, run=tmp_path, **options)
    assert first.losses[-1] < first.losses[0] - 0.5
    assert next(made.parameters()).is_cuda
    again = fit(model(dropout=0.1), sentences, n_steps=80, run=tmp_path, **options)
    assert again.losses[:60] == first.losses
    assert sum(again.losses[-10:]) < sum(first.losses[-10:])


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_half_precision_stays_finite(norm):
    made, (src, tgt) = model(norm=norm).cuda(), sentences()
    src[2] = 0
    for dtype in (torch.float16, torch.bfloat16):
        with torch.autocast("cuda", dtype):
            loss = smoothed_cross_entropy(made(src.cuda(), tgt[:, :-1].cuda()), tgt[:, 1:].cuda())
            tokens = greedy_decode(made, src.cuda(), bos_id=1, eos_id=2, max_len=5)
        grads = torch.autograd.grad(loss, list(made.parameters()))
        assert all(g.isfinite().all() for g in grads)
        assert tokens.shape[0] == len(src)


def test_timer_waits_for_the_gpu():
    x = torch.randn(4096, 4096, device="cuda")
    torch.cuda.synchronize()
    with Timer() as timer:
        for _ in range(20):
            x @ x
    assert timer.seconds > 20 * 2 * 4096**3 / 1e15  # no GPU does 10^15 float32 operations a second
