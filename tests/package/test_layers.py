import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

from transformer.layers import Dropout, FeedForward, LayerNorm, Residual

B, T, D, D_FF = 3, 5, 8, 12


def vectors(*shape, seed=0):
    g = torch.Generator().manual_seed(seed)
    return torch.randn(*(shape or (B, T, D)), generator=g, dtype=torch.float64)


def layer_norm():
    norm = LayerNorm(D).double()
    with torch.no_grad():
        norm.weight.copy_(vectors(D, seed=1))
        norm.bias.copy_(vectors(D, seed=2))
    return norm


def test_layer_norm_equals_its_formula_and_torch():
    norm, x = layer_norm(), vectors()
    mean = x.mean(dim=-1, keepdim=True)
    variance = ((x - mean) ** 2).mean(dim=-1, keepdim=True)
    expected = norm.weight * (x - mean) / (variance + 1e-5).sqrt() + norm.bias
    assert_close(norm(x), expected, rtol=0, atol=1e-12)
    theirs = nn.LayerNorm(D).double()
    theirs.load_state_dict(norm.state_dict())
    assert_close(norm(x), theirs(x), rtol=0, atol=1e-12)


def test_layer_norm_begins_as_ones_and_zeros_and_takes_eps():
    norm = LayerNorm(D, eps=1.0).double()
    x = vectors()
    assert_close(norm(x).mean(dim=-1), torch.zeros(B, T).double())
    variance = x.var(dim=-1, correction=0)
    assert_close(norm(x).var(dim=-1, correction=0), variance / (variance + 1.0))


def test_residual_post_and_pre():
    x, f = vectors(), torch.tanh
    for norm, expected in (
        ("post", lambda n: n(x + f(x))),
        ("pre", lambda n: x + f(n(x))),
    ):
        residual = Residual(D, norm=norm).double()
        residual.norm = layer_norm()
        assert_close(residual(x, f), expected(residual.norm), rtol=0, atol=1e-12)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_residual_drops_the_sublayer_and_never_the_residual(norm):
    residual = Residual(D, dropout=0.5, norm=norm).double()
    x = vectors(400, T, D)
    seen = []
    residual.norm.register_forward_hook(lambda _, inputs, out: seen.append((inputs[0], out)))
    out = residual(x, torch.ones_like)
    summed = seen[0][0] if norm == "post" else out
    added = (summed - x).round(decimals=9)
    assert_close(added.unique(), torch.tensor([0.0, 2.0]).double())
    assert 0.45 < (added == 0).double().mean() < 0.55


@pytest.mark.parametrize("p", [0.005, 0.1, 0.3, 0.5, 0.9])
def test_dropout_drops_the_share_p_and_scales_the_rest(p):
    torch.manual_seed(0)
    x = torch.ones(1_000_003)
    out = Dropout(p)(x)
    assert_close((out == 0).float().mean().item(), p, rtol=0, atol=0.003)
    assert_close(out[out != 0].unique(), torch.tensor([1 / (1 - p)]), rtol=1e-4, atol=0)
    assert_close(out.mean().item(), 1.0, rtol=0, atol=0.01)


@pytest.mark.parametrize("p", [0.99999, 0.999999])  # which in 1/65536 would round to one
def test_dropout_near_one_keeps_the_mean_too(p):
    torch.manual_seed(0)
    out = Dropout(p)(torch.ones(20_000_000))
    assert_close(out.mean().item(), 1.0, rtol=0, atol=0.3)


def test_dropout_draws_each_number_by_itself():
    torch.manual_seed(0)
    kept = Dropout(0.5)(torch.ones(100_000, 8)) != 0
    together = torch.corrcoef(kept.double().T)
    assert_close(together, torch.eye(8).double(), rtol=0, atol=0.02)
    again = Dropout(0.5)(torch.ones(100_000, 8)) != 0
    assert 0.49 < (kept == again).double().mean() < 0.51


def test_dropout_is_torchs_own_where_it_is_not_on_a_cpu(monkeypatch):
    calls = []
    monkeypatch.setattr(F, "dropout", lambda x, p: calls.append((x.device.type, p)) or x)
    for device in ("meta", "cpu"):
        Dropout(0.3)(torch.ones(2, 3, device=device))
    assert calls == [("meta", 0.3)]


def test_dropout_is_seeded_by_torch():
    x, drop = torch.ones(7, 9), Dropout(0.4)
    torch.manual_seed(3)
    first = drop(x)
    torch.manual_seed(3)
    assert torch.equal(drop(x), first)
    assert not torch.equal(drop(x), first)


def test_dropout_gradient_falls_where_the_number_stayed():
    torch.manual_seed(0)
    x = vectors().requires_grad_()
    out = Dropout(0.5)(x)
    (gradient,) = torch.autograd.grad(out.sum(), x)
    assert_close(gradient, torch.where(out == 0, 0.0, 2.0).double())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_dropout_keeps_dtype_and_is_off_in_evaluation(dtype):
    x, drop = torch.ones(5, dtype=dtype), Dropout(0.5)
    assert drop(x).dtype == dtype
    assert drop.eval()(x) is x
    assert Dropout(0.0)(x) is x


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LayerNorm(0), "d_model must be positive, got 0"),
        (lambda: FeedForward(8, 0), "d_ff must be positive, got 0"),
        (lambda: Dropout(1), "p must be at least 0 and below 1, got 1"),
        (lambda: Residual(8, dropout=-0.5), "p must be at least 0 and below 1, got -0.5"),
        (lambda: LayerNorm(8)(torch.zeros(2, 7)), r"x must have shape \(..., 8\), got \(2, 7\)"),
        (lambda: FeedForward(8, 9)(torch.zeros(7)), r"x must have shape \(..., 8\), got \(7,\)"),
        (lambda: Residual(8, norm="both"), r"norm must be one of \('post', 'pre'\), got 'both'"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_refuses(make, message):
    with pytest.raises(ValueError, match=message):
        make()
