import pytest
import torch
from torch import nn
from torch.testing import assert_close

from tests.test_model import B, D, S, T, config, shaken, vectors
from transformer.incremental import DecodingState
from transformer.masks import causal_mask, padding_mask
from transformer.model import Decoder

SRC = torch.ones(B, S, dtype=torch.long)
SRC[1, 3:] = 0
SRC[2] = 0  # an empty source


def decoder(**changes):
    return shaken(Decoder(config(**changes)))


def steps(made, x, memory, mask):
    state = DecodingState(made, memory, mask, max_len=x.size(1))
    return torch.stack([state.step(row) for row in x.unbind(1)], dim=1)


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("position", ["sinusoidal", "rotary"])
def test_steps_equal_the_decoder_on_the_whole(position, norm):
    made, x, memory = decoder(norm=norm, position=position), vectors(T), vectors(S, seed=5)
    mask = padding_mask(SRC)
    with torch.no_grad():
        whole = made(x, memory, causal_mask(T), mask)
        assert_close(steps(made, x, memory, mask), whole, rtol=0, atol=1e-12)


def test_without_biases_and_with_another_eps():
    made, x, memory = decoder(), vectors(T), vectors(S, seed=5)
    for layer in made.layers:
        for attention in (layer.self_attention, layer.cross_attention):
            for linear in (attention.W_q, attention.W_k, attention.W_v, attention.W_o):
                linear.bias = None
        layer.residual_2.norm.eps = 0.5
    mask = padding_mask(SRC)
    with torch.no_grad():
        whole = made(x, memory, causal_mask(T), mask)
        assert_close(steps(made, x, memory, mask), whole, rtol=0, atol=1e-12)


def test_selected_rows_go_on_as_they_would_have():
    made, x, memory = decoder(), vectors(T), vectors(S, seed=5)
    rows = torch.tensor([1, 2, 1, 0])
    mask = padding_mask(SRC)
    with torch.no_grad():
        state = DecodingState(made, memory, mask, max_len=T)
        state.step(x[:, 0])
        state.select(rows)
        assert state.length == 1
        got = state.step(x[rows, 1])
        whole = made(x[:, :2], memory, causal_mask(2), mask)
    assert_close(got, whole[rows, 1], rtol=0, atol=1e-12)


def test_an_empty_source_leaves_finite_numbers_in_every_dtype():
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        made = decoder().to(dtype)
        x, memory = (v.detach().to(dtype) * 100 for v in (vectors(T), vectors(S, seed=5)))
        with torch.no_grad():
            assert steps(made, x, memory, padding_mask(SRC)).isfinite().all()


def test_the_state_reads_the_weights_when_it_is_made():
    made, x, memory = decoder(), vectors(1), vectors(S, seed=5)
    mask = padding_mask(SRC)
    with torch.no_grad():
        before = steps(made, x, memory, mask)
        nn.init.zeros_(made.layers[0].self_attention.W_v.weight)
        after = steps(made, x, memory, mask)
        assert not torch.allclose(before, after)
        assert_close(after, made(x, memory, None, mask), rtol=0, atol=1e-12)
    assert after.shape == (B, 1, D)


def odd_parts():
    class Other(nn.Linear):
        pass

    def exchanged(made):
        made.layers[1].feed_forward.W_1 = Other(D, 24)

    def hooked(made):
        made.layers[1].feed_forward.W_1.register_forward_hook(lambda *_: None)

    def patched(made):
        made.layers[1].feed_forward.W_1.forward = torch.zeros_like

    return [exchanged, hooked, patched]


@pytest.mark.parametrize("change", odd_parts())
def test_refuses_what_a_step_would_not_see(change):
    made = decoder()
    change(made)
    with pytest.raises(ValueError, match=r"as layers\.1\.feed_forward\.W_1; use_cache=False"):
        DecodingState(made, vectors(S), padding_mask(SRC), max_len=3)
