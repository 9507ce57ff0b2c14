import math

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from torch.testing import assert_close

from transformer.recurrent import LSTM, RNN, Bidirectional

B, S, D, H = 4, 5, 3, 6  # all different, so that no swapped axis goes unseen
LENGTHS = [5, 1, 3, 4]
MASK = torch.arange(S) < torch.tensor(LENGTHS)[:, None]
TOLERANCE = {torch.float32: 1e-6, torch.float64: 1e-12}
TORCH = {RNN: nn.RNN, LSTM: nn.LSTM}
CELLS = pytest.mark.parametrize("cell", TORCH)


def make(cell, *, seed=0, dtype=torch.float64, **options):
    torch.manual_seed(seed)
    return cell(D, H, **options).to(dtype)


def random(*shape, seed=1, dtype=torch.float64):
    g = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=g, dtype=torch.float64).to(dtype).requires_grad_()


def weights(ours, suffix=""):
    """By PyTorch's names. It has two biases, of which only the sum matters; one is zero here."""
    named = {"weight_ih_l0": ours.W_x.weight, "weight_hh_l0": ours.W_h.weight}
    if ours.W_x.bias is not None:
        named |= {"bias_ih_l0": ours.W_x.bias, "bias_hh_l0": torch.zeros_like(ours.W_x.bias)}
    return {name + suffix: weight for name, weight in named.items()}


def torch_twin(ours):
    bias = ours.W_x.bias is not None
    theirs = TORCH[type(ours)](D, H, batch_first=True, bias=bias).to(ours.W_x.weight.dtype)
    theirs.load_state_dict(weights(ours))
    return theirs


def both_ways(cell):
    """Two of ours, and PyTorch's bidirectional module with their weights."""
    ours = Bidirectional(make(cell), make(cell, seed=1))
    theirs = TORCH[cell](D, H, batch_first=True, bidirectional=True).double()
    theirs.load_state_dict(weights(ours.forward_rnn) | weights(ours.backward_rnn, "_reverse"))
    return ours, theirs


def torch_state(state):
    """As PyTorch takes it: (1, B, H), for the LSTM a pair of these."""
    parts = [part.contiguous()[None] for part in state.split(H, dim=-1)]
    return parts[0] if len(parts) == 1 else tuple(parts)


def our_state(theirs):
    return torch.cat(theirs, dim=-1)[0] if isinstance(theirs, tuple) else theirs[0]


def gradients(results, inputs):
    """Of a random weighting of all numbers in ``results``."""
    loss = sum((r * random(*r.shape, seed=3, dtype=r.dtype).detach()).sum() for r in results)
    return torch.autograd.grad(loss, inputs)


@CELLS
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_equals_torch_forward_and_backward(cell, bias, dtype):
    ours = make(cell, bias=bias, dtype=dtype)
    theirs = torch_twin(ours)
    x, state = random(B, S, D, dtype=dtype), random(B, ours.state_size, seed=2, dtype=dtype)
    found = ours(x, state)
    outputs, last = theirs(x, torch_state(state))
    wanted = outputs, our_state(last)
    assert_close(found, wanted, rtol=0, atol=TOLERANCE[dtype])

    mine = [ours.W_x.weight, ours.W_h.weight, *([ours.W_x.bias] if bias else [])]
    his = [getattr(theirs, name) for name in weights(ours) if name != "bias_hh_l0"]
    found, wanted = gradients(found, [x, state, *mine]), gradients(wanted, [x, state, *his])
    assert_close(found, wanted, rtol=TOLERANCE[dtype], atol=3 * TOLERANCE[dtype])


@CELLS
def test_steps_are_the_whole_one_by_one(cell):
    ours, x = make(cell), random(B, S, D)
    outputs, last = ours(x)
    state = None
    for t in range(S):
        h, state = ours.step(x[:, t], state)
        assert_close(h, outputs[:, t], rtol=0, atol=1e-12)
    assert_close(state, last, rtol=0, atol=1e-12)


@CELLS
def test_padding_leaves_the_state_alone(cell):
    ours, x, start = make(cell), random(B, S, D), random(B, make(cell).state_size, seed=2)
    outputs, last = ours(x, start, MASK)
    for b, length in enumerate(LENGTHS):
        alone, end = ours(x[b : b + 1, :length], start[b : b + 1])
        assert_close(outputs[b : b + 1, :length], alone, rtol=0, atol=1e-12)
        assert_close(last[b : b + 1], end, rtol=0, atol=1e-12)
        assert (outputs[b, length:] == outputs[b, length - 1]).all()
    (grad,) = gradients([outputs, last], [x])
    assert (grad[~MASK] == 0).all()
    assert (grad[MASK] != 0).all()


@CELLS
def test_padding_may_stand_anywhere(cell):
    ours, x = make(cell), random(1, S, D)
    words = torch.tensor([False, True, False, True, True])
    outputs, last = ours(x, mask=words[None])
    alone, end = ours(x[:, words])
    assert_close((outputs[:, words], last), (alone, end), rtol=0, atol=1e-12)
    assert (outputs[:, 0] == 0).all()


@CELLS
def test_the_inputs_of_all_steps_are_one_product(cell):
    ours, x, shapes = make(cell), random(B, S, D), []
    ours.W_x.register_forward_hook(lambda _, inputs, __: shapes.append(inputs[0].shape))
    ours(x, mask=MASK)
    assert shapes == [(B, S, D)]


@CELLS
def test_weights_start_as_torchs_do(cell):
    torch.manual_seed(0)
    ours = cell(50, 100)
    for weight in ours.parameters():
        assert weight.abs().max() <= 0.1
        assert weight.std().item() == pytest.approx(0.1 / math.sqrt(3), rel=0.2)


def test_forget_bias_is_the_forget_gates():
    torch.manual_seed(0)
    plain = LSTM(D, H).W_x.bias.reshape(4, H)
    torch.manual_seed(0)
    remembering = LSTM(D, H, forget_bias=2.5).W_x.bias.reshape(4, H)
    assert (remembering[1] == 2.5).all()  # i, f, g, o
    assert_close(remembering[[0, 2, 3]], plain[[0, 2, 3]], rtol=0, atol=0)
    assert (LSTM(D, H, forget_bias=0.0).W_x.bias.reshape(4, H)[1] == 0).all()


@CELLS
def test_bidirectional_equals_torch_on_packed_ragged_rows(cell):
    ours, theirs = both_ways(cell)
    x = random(B, S, D)
    packed = pack_padded_sequence(x, LENGTHS, batch_first=True, enforce_sorted=False)
    wanted, _ = pad_packed_sequence(theirs(packed)[0], batch_first=True)  # zeros at padding
    found = ours(x, MASK)
    assert found.shape == (B, S, 2 * H)
    assert_close(found[MASK], wanted[MASK], rtol=0, atol=1e-12)

    mine = [w for rnn in (ours.forward_rnn, ours.backward_rnn) for w in weights(rnn).values()]
    mine = [w for w in mine if w.requires_grad]
    his = [w for name, w in theirs.named_parameters() if "bias_hh" not in name]
    found, wanted = gradients([found[MASK]], [x, *mine]), gradients([wanted[MASK]], [x, *his])
    assert_close(found, wanted, rtol=1e-12, atol=1e-12)


def test_a_row_of_padding_only_is_zero_with_harmless_gradients():
    ours, x = both_ways(LSTM)[0], random(2, S, D)
    out = ours(x, torch.tensor([[False] * S, [True] * S]))
    assert (out[0] == 0).all()
    assert all(grad.isfinite().all() for grad in gradients([out], [x, *ours.parameters()]))


X = torch.zeros(B, S, D)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: LSTM(D, H)(X[0]), r"x must have shape \(B, S, 3\), got \(5, 3\)"),
        (lambda: LSTM(D, H)(X[..., :2]), r"x must have shape \(B, S, 3\), got \(4, 5, 2\)"),
        (lambda: LSTM(D, H)(X[:, :0]), r"x must have at least one step, got shape \(4, 0, 3\)"),
        (lambda: LSTM(D, H)(X, mask=MASK[0]), r"mask must have shape \(4, 5\), got \(5,\)"),
        (lambda: LSTM(D, H)(X, mask=MASK[:, :1]), r"mask must have shape \(4, 5\), got \(4, 1\)"),
        (lambda: RNN(D, H)(X, mask=MASK.float()), "mask must be bool with True = a word, got .*32"),
        (lambda: RNN(D, H).step(X), r"x_t must have shape \(B, 3\), got \(4, 5, 3\)"),
        (
            lambda: RNN(D, H).step(X[:, 0], torch.zeros(B, 2 * H)),
            r"state must have shape \(4, 6\), got \(4, 12\)",
        ),
        (lambda: Bidirectional(RNN(3, 2), RNN(4, 2)), "must share input_size, got 3 and 4"),
        (
            lambda: LSTM(2, 3, bias=False, forget_bias=1.0),
            r"forget_bias must be None where bias is False, got 1\.0",
        ),
    ],
)
def test_what_does_not_fit_is_refused(call, message, unchecked):
    with pytest.raises(ValueError, match=message):
        call()
