"""What only a GPU can show, CUDA's or another; skipped, with the reason, where there is none.

``python -m pytest -n 0 tests/package/soft_cuda/check.py`` runs this file on GPUs of software.
"""

import copy

import pytest
import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.testing import assert_close

from tests.package.copying import copy_batch
from tests.package.test_decoder_only import CONFIGS, prompts
from tests.package.test_model import SRC, TGT, config, shaken
from transformer.attention import attention
from transformer.config import TransformerConfig
from transformer.decoding import beam_search, greedy_decode, sample
from transformer.family import DecoderOnly, EncoderOnly, FamilyConfig
from transformer.family.encoder_only import Pooler
from transformer.family.masking import mask_words
from transformer.fused import fused_attention
from transformer.masks import causal_mask, padding_mask
from transformer.model import Transformer
from transformer.multihead import record_attention
from transformer.recurrent import AttentionSeq2Seq, Seq2Seq
from transformer.runtime import Timer, default_device, seed_everything
from transformer.training import evaluate_loss, fit, smoothed_cross_entropy, warmup_schedule
from transformer.training.checkpoint import average_checkpoints, checkpoints, load_transformer

pytestmark = pytest.mark.cuda
GPU = torch.device(default_device().type, 0)
DOUBLE = GPU.type != "mps"  # which has no float64
TOLERANCE = {torch.float32: 1e-5, torch.float16: 5e-3, torch.bfloat16: 3e-2}
RNN = {"d_model": 8, "hidden_size": 8}
MAKERS = {
    "sinusoidal, post": lambda: Transformer(config()),
    "learned, pre": lambda: Transformer(config(position="learned", norm="pre")),
    "rotary, post": lambda: Transformer(config(position="rotary")),
    "none, pre": lambda: Transformer(config(position="none", norm="pre")),
    "a code": lambda: Seq2Seq(20, 25, **RNN),
    "additive": lambda: AttentionSeq2Seq(20, 25, score="additive", **RNN),
    "general": lambda: AttentionSeq2Seq(20, 25, score="general", **RNN),
    "dot": lambda: AttentionSeq2Seq(20, 25, score="dot", **RNN),
}
MODELS = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
ENDS = {"bos_id": 1, "eos_id": 2, "max_len": 8}


def on_both(make):
    """The same model on the CPU and on the GPU, in double precision where that has it."""
    torch.manual_seed(0)
    model = shaken(make()) if DOUBLE else shaken(make()).float()
    return model, copy.deepcopy(model).to(GPU)


def same(on_gpu, on_cpu, tolerance=1e-10 if DOUBLE else 1e-5):
    assert on_gpu.device == GPU
    if not on_cpu.is_floating_point():
        assert torch.equal(on_gpu.cpu(), on_cpu)
        return
    assert_close(on_gpu.cpu(), on_cpu, rtol=0, atol=tolerance * max(1, on_cpu.abs().max().item()))


@MODELS
@pytest.mark.usefixtures("unchecked")
def test_outputs_losses_and_gradients_are_those_of_the_cpu(make):
    on_cpu, on_gpu = on_both(make)
    logits = {model: model(SRC.to(d), TGT.to(d)) for model, d in ((on_cpu, "cpu"), (on_gpu, GPU))}
    same(logits[on_gpu], logits[on_cpu])
    losses = [smoothed_cross_entropy(each, TGT.to(each.device)) for each in logits.values()]
    same(losses[1], losses[0])
    for loss in losses:
        loss.backward()
    for mine, wanted in zip(on_gpu.parameters(), on_cpu.parameters(), strict=True):
        assert (mine.grad is None) == (wanted.grad is None)
        if wanted.grad is not None:
            same(mine.grad, wanted.grad)


@MODELS
@pytest.mark.parametrize("use_cache", [True, False])
@pytest.mark.usefixtures("unchecked")
def test_decoding_is_that_of_the_cpu(make, use_cache):
    on_cpu, on_gpu = on_both(make)
    how = ENDS | {"use_cache": use_cache}
    greedy = greedy_decode(on_cpu, SRC, **how)
    same(greedy_decode(on_gpu, SRC.to(GPU), **how), greedy)
    same(sample(on_gpu, SRC.to(GPU), top_k=1, **how), greedy)
    here = beam_search(on_gpu, SRC.to(GPU), beam_size=3, **how)
    for mine, wanted in zip(here, beam_search(on_cpu, SRC, beam_size=3, **how), strict=True):
        same(mine, wanted, tolerance=1e-4)  # log-probabilities are float32


@pytest.mark.usefixtures("unchecked")
def test_samples_are_drawn_by_a_generator_of_the_gpu():
    _, model = on_both(MAKERS["sinusoidal, post"])
    draws = [
        sample(model, SRC.to(GPU), generator=torch.Generator(GPU).manual_seed(seed), **ENDS)
        for seed in (3, 3, 4)
    ]
    same(draws[0], draws[1].cpu())
    assert draws[0].shape != draws[2].shape or (draws[0] != draws[2]).any()
    with pytest.raises(RuntimeError, match="generator"):
        sample(model, SRC.to(GPU), generator=torch.Generator(), **ENDS)


@pytest.mark.parametrize("kind", CONFIGS)
@pytest.mark.usefixtures("unchecked")
def test_a_model_without_a_source_is_that_of_the_cpu(kind):
    on_cpu, on_gpu = on_both(lambda: DecoderOnly(CONFIGS[kind]))
    prompt = prompts()
    same(on_gpu(prompt.to(GPU)), on_cpu(prompt))
    for use_cache in (True, False):
        how = ENDS | {"use_cache": use_cache}
        same(greedy_decode(on_gpu, prompt.to(GPU), **how), greedy_decode(on_cpu, prompt, **how))


def test_an_encoder_alone_and_its_masked_words_are_those_of_the_cpu():
    sizes = {"d_model": 16, "n_heads": 4, "n_layers": 2, "d_ff": 24, "max_len": 20}
    on_cpu, on_gpu = on_both(lambda: EncoderOnly(FamilyConfig.bert(20, **sizes)).eval())
    pooler = Pooler(16).double() if DOUBLE else Pooler(16)
    segments = (torch.arange(SRC.size(1)) > 1).long().expand_as(SRC)
    same(on_gpu(SRC.to(GPU), segments.to(GPU)), on_cpu(SRC, segments))
    vectors = on_cpu.encode(SRC)
    same(copy.deepcopy(pooler).to(GPU)(on_gpu.encode(SRC.to(GPU))), pooler(vectors))
    masked = mask_words(SRC.to(GPU), vocab_size=20, mask_id=19)
    assert {tensor.device for tensor in masked} == {GPU}


@pytest.mark.parametrize("position", ["sinusoidal", "rotary"])
def test_recorded_attention_is_that_of_the_cpu(position):
    on_cpu, on_gpu = on_both(lambda: Transformer(config(position=position)))
    with record_attention(on_cpu) as wanted, record_attention(on_gpu) as maps:
        on_cpu(SRC, TGT), on_gpu(SRC.to(GPU), TGT.to(GPU))
    assert maps.keys() == wanted.keys()
    for name, weights in maps.items():
        same(weights, wanted[name])


def test_a_seed_settles_what_the_gpu_draws():
    draws = []
    for seed in (3, 3, 4):
        seed_everything(seed)
        draws.append(torch.rand(9, device=GPU))
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])


def test_dropout_draws_from_the_generator_of_the_gpu_alone():
    before = torch.get_rng_state()
    dropped = nn.functional.dropout(torch.ones(10_000, device=GPU), 0.25)
    assert torch.equal(torch.get_rng_state(), before)
    assert {round(x, 5) for x in dropped.unique().tolist()} == {0.0, 1.33333}
    assert 0.22 < (dropped == 0).float().mean() < 0.28


MIXED = {
    "a sum": lambda: torch.ones(2, device=GPU) + torch.ones(2),
    "a product": lambda: torch.ones(3, 2, device=GPU) @ torch.ones(2, 3),
    "a list": lambda: torch.cat([torch.ones(2, device=GPU), torch.ones(2)]),
    "an index": lambda: torch.ones(4, device=GPU).gather(0, torch.zeros(1, dtype=torch.long)),
    "a result": lambda: torch.add(torch.ones((), device=GPU), 1, out=torch.ones(())),
    "a loss": lambda: nn.functional.cross_entropy(
        torch.ones(3, 4, device=GPU), torch.zeros(3, dtype=torch.long)
    ),
    "a generator": lambda: torch.rand(2, device=GPU, generator=torch.Generator()),
}


@pytest.mark.parametrize("mix", MIXED.values(), ids=MIXED)
def test_devices_do_not_mix(mix):
    with pytest.raises(RuntimeError, match="device"):
        mix()


def test_what_lies_on_the_gpu_is_not_numpys():
    with pytest.raises(TypeError, match="cpu"):
        torch.ones(2, device=GPU).numpy()


def on_gpu(dtype, T=33, S=65, seed=0):
    """Made on the CPU and moved, so that the numbers are those of every other machine."""
    g = torch.Generator().manual_seed(seed)
    shapes = ((2, 4, T, 32), (2, 4, S, 32), (2, 4, S, 32))
    return [torch.randn(*shape, generator=g).to(GPU, dtype) for shape in shapes]


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
    out = attend(q, k, v, None if mask is None else mask.to(GPU))
    expected = attention(q.cpu().double(), k.cpu().double(), v.cpu().double(), mask)
    assert_close(out.cpu().double(), expected, rtol=0, atol=TOLERANCE[dtype])


@pytest.mark.parametrize("backend", [SDPBackend.MATH, SDPBackend.EFFICIENT_ATTENTION])
def test_a_query_without_keys_gets_zeros_from_every_kernel(backend):
    # the memory-efficient kernel is the one that a T4 has
    q, k, v = (t.requires_grad_() for t in on_gpu(torch.float16))
    mask = masks()[3].to(GPU)
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


def test_ids_outside_the_vocabulary_are_a_clear_error_here_too():
    made, (src, tgt) = model().to(GPU), sentences()
    wrong = src.clone()
    wrong[0, 0] = 20
    with pytest.raises(ValueError, match="src must hold ids from 0 to 19, got 20"):
        made(wrong.to(GPU), tgt.to(GPU))
    assert made(src.to(GPU), tgt.to(GPU)).isfinite().all()  # the device still works


@pytest.mark.parametrize("precision", ["fp32", "fp16", "bf16", "auto"])
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.usefixtures("unchecked")
def test_trains_in_every_precision_and_resumes(precision, compiled, tmp_path, monkeypatch):
    if precision == "fp16" and GPU.type != "cuda":
        pytest.skip(f"float16 is refused on {GPU.type}")
    if precision == "bf16":  # which an older GPU emulates
        monkeypatch.setattr("torch.cuda.get_device_capability", lambda device: (8, 0))
    options = {"schedule": warmup_schedule(1e-2, warmup=20), "progress": False}
    options |= {"precision": precision, "compiled": compiled, "smoothing": 0.0}
    made = model(dropout=0.1)
    first = fit(made, sentences, n_steps=40, run=tmp_path, **options)
    assert first.losses[-1] < first.losses[0] - 0.5
    assert next(made.parameters()).device == GPU
    again = fit(model(dropout=0.1), sentences, n_steps=50, run=tmp_path, **options)
    assert again.losses[:40] == first.losses
    assert sum(again.losses[-10:]) < sum(first.losses[-10:])


OPTIONS = {"schedule": warmup_schedule(1e-2, warmup=20), "progress": False, "smoothing": 0.1}


@pytest.mark.usefixtures("unchecked")
def test_a_loss_is_evaluated_as_on_the_cpu():
    evaluated = [evaluate_loss(model().to(d), [sentences(1)]) for d in ("cpu", GPU)]
    assert abs(evaluated[0] - evaluated[1]) < 1e-4


@pytest.mark.usefixtures("unchecked")
def test_a_run_that_was_stopped_has_the_losses_of_one_that_was_not(tmp_path):
    def run(name, n_steps):
        folder = tmp_path / name
        return fit(model(dropout=0.1), sentences, n_steps=n_steps, run=folder, **OPTIONS).losses

    whole, _ = run("whole", 12), run("stopped", 6)
    assert max(abs(a - b) for a, b in zip(run("stopped", 12), whole, strict=True)) < 1e-4


@pytest.mark.usefixtures("unchecked")
def test_what_an_optimizer_remembers_before_the_first_step_goes_along_to_the_device():
    m = model()
    optimizer = torch.optim.Adagrad(m.parameters())
    fit(m, sentences, n_steps=1, optimizer=optimizer, device=GPU, **OPTIONS)
    assert {state["sum"].device for state in optimizer.state.values()} == {GPU}


@pytest.mark.usefixtures("unchecked")
def test_checkpoints_go_from_one_device_to_the_other(tmp_path):
    def train(n_steps, device):
        how = OPTIONS | {"precision": "fp32", "run": tmp_path, "save_every": 2}
        return fit(model(), sentences, n_steps=n_steps, device=device, **how).losses

    train(4, GPU)
    here, there = (load_transformer(checkpoints(tmp_path)[-1], device=d) for d in ("cpu", GPU))
    src, tgt = sentences(9)
    same(there(src.to(GPU), tgt.to(GPU)), here(src, tgt), tolerance=1e-5)
    averaged = average_checkpoints(checkpoints(tmp_path), device=GPU)
    assert {p.device for p in averaged.parameters()} == {GPU}
    train(8, "cpu")
    by_turns = train(12, GPU)
    on_cpu = fit(model(), sentences, n_steps=12, device="cpu", **OPTIONS).losses
    assert max(abs(a - b) for a, b in zip(by_turns, on_cpu, strict=True)) < 1e-4


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_half_precision_stays_finite(norm):
    made, (src, tgt) = model(norm=norm).to(GPU), sentences()
    src[2] = 0
    for dtype in (torch.float16, torch.bfloat16):
        with torch.autocast(GPU.type, dtype):
            loss = smoothed_cross_entropy(
                made(src.to(GPU), tgt[:, :-1].to(GPU)), tgt[:, 1:].to(GPU)
            )
            tokens = greedy_decode(made, src.to(GPU), bos_id=1, eos_id=2, max_len=5)
        grads = torch.autograd.grad(loss, list(made.parameters()))
        assert all(g.isfinite().all() for g in grads)
        assert tokens.shape[0] == len(src)


def test_timer_waits_for_the_gpu():
    x = torch.randn(4096, 4096, device=GPU)
    torch.accelerator.synchronize()
    with Timer() as timer:
        for _ in range(20):
            x @ x
    assert timer.seconds > 20 * 2 * 4096**3 / 1e15  # no GPU does 10^15 float32 operations a second
