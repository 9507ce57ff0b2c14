"""The CUDA path rehearsed without CUDA: shapes and devices of fake tensors, no numbers.

Under PyTorch's ``FakeTensorMode`` a tensor may claim to lie on a GPU that is not there, and an
operation that mixes devices raises. So a table, a mask or a cache that is left on the CPU fails
here. Backward and the optimizer need a real device: tests/test_cuda.py runs where there is one.
"""

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor

from tests.fake_gpu import GPU, fake_gpu, moved
from tests.test_decoder_only import CONFIGS
from tests.test_model import SRC, TGT, config
from transformer.data.batches import make_batch
from transformer.decoding import beam_search, greedy_decode, sample
from transformer.family import DecoderOnly, EncoderOnly, FamilyConfig
from transformer.family.encoder_only import Pooler
from transformer.masks import causal_mask, padding_mask
from transformer.model import Transformer
from transformer.multihead import record_attention
from transformer.positional import RotaryPositions
from transformer.recurrent import AttentionSeq2Seq, Seq2Seq
from transformer.training import smoothed_cross_entropy

pytestmark = pytest.mark.skipif(
    torch.__version__ < (2, 9), reason="before 2.9 fake tensors did not move without a driver"
)
T = 3
ENDS = {"bos_id": 1, "eos_id": 2, "max_len": T}


@pytest.fixture(autouse=True)
def _fake():
    with fake_gpu():
        yield


def words(tokens: torch.Tensor) -> torch.Tensor:
    return torch.ones(tokens.shape, dtype=torch.long, device=GPU)


SIZES = {"d_model": 8, "hidden_size": 8}
MAKERS = {
    "sinusoidal, post": lambda: Transformer(config(dropout=0.1)),
    "learned, pre": lambda: Transformer(config(position="learned", norm="pre")),
    "rotary, post": lambda: Transformer(config(position="rotary")),
    "none, pre": lambda: Transformer(config(position="none", norm="pre")),
    "a code": lambda: Seq2Seq(20, 25, **SIZES),
    "additive": lambda: AttentionSeq2Seq(20, 25, score="additive", **SIZES),
    "general": lambda: AttentionSeq2Seq(20, 25, score="general", **SIZES),
}
MODELS = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


@MODELS
def test_the_model_and_its_loss_stay_on_the_gpu(make):
    model, src, tgt = moved(make()).train(), words(SRC), words(TGT)
    logits = model(src, tgt)
    assert logits.device == GPU
    assert logits.shape == (*TGT.shape, 25)
    assert smoothed_cross_entropy(logits, tgt).device == GPU


@MODELS
def test_cached_steps_and_the_choice_of_sentences_stay_on_the_gpu(make):
    model, src = moved(make()), words(SRC)
    state = model.start_decoding(src, max_len=T)
    for t in range(T):
        logits = model.decode_next(words(src[:, 0]), state)
        assert logits.device == GPU
        if t == 1:
            state.select(torch.zeros(2, dtype=torch.long, device=GPU))
            src = src[:2]
        assert logits.size(0) == len(src) + (t == 1)


@MODELS
@pytest.mark.parametrize("use_cache", [True, False])
@pytest.mark.usefixtures("unchecked")
def test_decoding_from_end_to_end_stays_on_the_gpu(make, use_cache):
    model, src = moved(make()), words(SRC)
    assert greedy_decode(model, src, use_cache=use_cache, **ENDS).device == GPU
    assert sample(model, src, top_k=3, top_p=0.9, use_cache=use_cache, **ENDS).device == GPU
    tokens, log_p = beam_search(model, src, beam_size=3, use_cache=use_cache, **ENDS)
    assert (tokens.device, log_p.device) == (GPU, GPU)
    assert tokens.shape == (3, T)


def test_masks_are_made_on_the_gpu():
    assert causal_mask(T, device=GPU).device == GPU
    assert padding_mask(words(SRC)).device == GPU


@pytest.mark.parametrize("position", ["sinusoidal", "rotary"])
def test_recorded_attention_stays_on_the_gpu(position):
    model = moved(Transformer(config(position=position)))
    with record_attention(model) as maps:
        model(words(SRC), words(TGT))
    assert {weights.device for weights in maps.values()} == {GPU}


@pytest.mark.parametrize("kind", ["gpt2", "modern"])
def test_a_model_without_a_source_stays_on_the_gpu(kind):
    model, prompt = moved(DecoderOnly(CONFIGS[kind])), words(SRC)
    logits = model(prompt)
    assert logits.device == GPU
    assert smoothed_cross_entropy(logits, prompt).device == GPU
    state = model.start_decoding(prompt, max_len=T)
    for _ in range(T):
        assert model.decode_next(words(prompt[:, 0]), state).device == GPU
    state.select(torch.zeros(2, dtype=torch.long, device=GPU))
    assert (state.words.device, len(state.words)) == (GPU, 2)
    for use_cache in (True, False):
        assert greedy_decode(model, prompt, use_cache=use_cache, **ENDS).device == GPU


def test_a_prompt_on_the_cpu_is_found():
    model, prompt = moved(DecoderOnly(CONFIGS["modern"])), words(SRC)
    state = model.start_decoding(prompt, max_len=T)
    state.words = state.words.to("cpu")
    with pytest.raises(RuntimeError, match="device"):
        model.decode_next(words(prompt[:, 0]), state)


def test_an_encoder_alone_stays_on_the_gpu():
    sizes = {"d_model": 16, "n_heads": 4, "n_layers": 2, "d_ff": 24, "max_len": 20}
    encoder = EncoderOnly(FamilyConfig.bert(20, **sizes))
    encoder.pooler = Pooler(16)
    model, tokens = moved(encoder).train(), words(SRC)
    assert model(tokens).device == GPU
    vectors = model.encode(tokens, words(SRC))
    assert (vectors.device, model.pooler(vectors).device) == (GPU, GPU)


def test_a_batch_moves_whole():
    batch = make_batch([([5, 2], [1, 6, 2]), ([7, 8, 2], [1, 9, 2])]).to(GPU)
    assert {tensor.device for tensor in batch} == {GPU}


@pytest.mark.parametrize("precision", [torch.float16, torch.bfloat16])
def test_half_precision_stays_on_the_gpu(precision):
    model = moved(Transformer(config(position="rotary")), precision)
    logits = model(words(SRC), words(TGT))
    assert logits.device == GPU
    assert logits.dtype == precision


def left_on_the_cpu(model):
    """Four things that a careless edit would leave behind."""
    own = model.decoder.layers[0].self_attention

    def table():
        own.positions.cos = own.positions.cos.to("cpu")

    def bias():
        own.positions.bias = lambda T, S: torch.zeros(4, T, S, dtype=torch.float32)

    def parameter():
        own.W_q.weight = nn.Parameter(own.W_q.weight.to("cpu"))

    def plain_attribute():
        own.positions = Unregistered(12, 4)

    return [table, bias, parameter, plain_attribute]


class Unregistered(RotaryPositions):
    """Its tables are plain attributes, so that no move of the model takes them along."""

    def __init__(self, max_len, d_k):
        super().__init__(max_len, d_k)
        cos, sin = self._buffers.pop("cos"), self._buffers.pop("sin")
        self.cos, self.sin = cos, sin


@pytest.mark.parametrize("which", range(4))
@pytest.mark.usefixtures("unchecked")
def test_what_stays_on_the_cpu_is_found(which):
    model = moved(Transformer(config(position="rotary")))
    left_on_the_cpu(model)[which]()
    with pytest.raises(RuntimeError, match="device"):
        model(words(SRC), words(TGT))
    state = model.start_decoding(words(SRC), max_len=T)
    with pytest.raises(RuntimeError, match="device"):
        model.decode_next(words(SRC)[:, 0], state)


@pytest.mark.usefixtures("unchecked")
def test_a_mask_or_a_cache_on_the_cpu_is_found(monkeypatch):
    model, src, tgt = moved(Transformer(config())), words(SRC), words(TGT)
    memory = model.encode(src)
    with pytest.raises(RuntimeError, match="device"):
        model.decode(tgt, memory._replace(mask=memory.mask.to("cpu")))
    state = model.start_decoding(src, max_len=T)
    model.decode_next(words(src[:, 0]), state)
    with pytest.raises(RuntimeError, match="device"):
        state.select(torch.zeros(2, dtype=torch.long))
    monkeypatch.setattr("transformer.model.causal_mask", lambda T, device: causal_mask(T))
    with pytest.raises(RuntimeError, match="device"):
        model(src, tgt)


def test_the_tensors_here_are_fake_and_do_not_mix():
    assert isinstance(moved(nn.Linear(2, 2)).weight, FakeTensor)
    with pytest.raises(RuntimeError, match="device"):
        torch.ones(2, device=GPU) + torch.ones(2)
