import json

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch

from transformer_book import claim, close, figures, minimise, show
from transformer_book.claims import Claim, claims_of


@pytest.mark.parametrize("holds", [True, np.bool_(True), torch.tensor(True)])
def test_a_claim_that_holds_shows_one_line(holds, capsys):
    assert claim("one is odd", holds, "theorem") is None
    assert capsys.readouterr().out == "✓ one is odd\n"


@pytest.mark.parametrize("holds", [False, np.bool_(False), torch.tensor(False)])
def test_a_claim_that_does_not_hold_raises_with_its_text(holds, capsys):
    with pytest.raises(AssertionError, match=r"^one is even$"):
        claim("one is even", holds, "theorem")
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    "holds",
    [
        *(1, 0, "no", [False], None, lambda: False, np.array([True]), np.ones(2) > 0),
        *(torch.tensor([True]), torch.tensor([True, True]), torch.tensor(1), torch.tensor(1.0)),
    ],
)
def test_a_claim_needs_a_truth_value(holds, unchecked):
    with pytest.raises(TypeError, match="holds must be one truth value, got"):
        claim("one is odd", holds, "theorem")


@pytest.mark.parametrize("text", ["", "  ", "two\nlines", "two\rlines", None])
def test_a_claim_needs_one_line_of_text(text, unchecked):
    with pytest.raises(ValueError, match="text must be one line that states the claim, got"):
        claim(text, True, "theorem")


@pytest.mark.parametrize(
    ("kind", "budget", "wrong"),
    [
        (None, {}, "kind must be one of identity, theorem, experiment, got ''"),
        ("proof", {}, "kind must be one of identity, theorem, experiment, got 'proof'"),
        ("theorem", {"seeds": 3}, "kind must be experiment where seeds are given, got theorem"),
        ("experiment", {"seeds": 0}, "seeds must be a positive number of seeds, got 0"),
        ("experiment", {"steps": 0.5}, "steps must be a positive number of steps, got 0.5"),
        ("experiment", {"models": True}, "models must be a positive number of models, got True"),
    ],
)
def test_a_claim_says_of_what_kind_it_is(kind, budget, wrong, unchecked):
    with pytest.raises(ValueError, match=f"^{wrong}$"):
        claim("one is odd", False, kind, **budget)


@pytest.fixture
def shown(monkeypatch):
    """What cells show, as a notebook stores it."""
    outputs = []

    def store(made):
        outputs.append({"output_type": "display_data", "data": made._repr_mimebundle_()})

    monkeypatch.setattr("transformer_book.claims.display", store)
    return outputs


def test_what_is_claimed_is_read_as_it_was_written(shown):
    claim("one is odd", True, "theorem")
    shown.append({"output_type": "stream", "text": "✓ two is even"})
    shown.append({"output_type": "display_data", "data": {"text/plain": "✓ three is odd"}})
    claim("four is even", True, seeds=3, steps=2000)
    claim("five is odd", True, "experiment", models=10)
    claim("six is even", True, seeds=1)
    assert claims_of(json.loads(json.dumps(shown))) == [
        Claim("one is odd", "theorem"),
        Claim("four is even", "experiment", seeds=3, steps=2000),
        Claim("five is odd", "experiment", models=10),
        Claim("six is even", "experiment", seeds=1),
    ]
    assert [made.description for made in claims_of(shown)] == [
        "theorem",
        "experiment, 3 seeds, 2,000 steps",
        "experiment, 10 models",
        "experiment, 1 seed",
    ]
    assert shown[0]["data"]["text/plain"] == "✓ one is odd"


def test_a_claim_is_reached_by_its_words():
    made = Claim("W_Q Kᵀ, for 3 seeds: √64 ≤ 8, from τ = 0.1: log V + σ²/2", "theorem")
    assert made.anchor == "claim-w-q-k-for-3-seeds-64-8-from-0-1-log-v-2"


def test_close_is_equality_up_to_rounding():
    a = torch.tensor([1e-9, 1.0, 1e4])
    assert close(a, a + torch.tensor([9e-6, 9e-6, 0.9]))
    assert not close(a, a + torch.tensor([2e-5, 0.0, 0.0]))
    assert not close(a, a + torch.tensor([0.0, 0.0, 1.2]))
    nothing = torch.full((3,), torch.nan)
    assert not close(a, nothing)
    assert not close(nothing, nothing)
    assert close(a, a + 0.9e-2, tolerance=1e-2)


def test_close_does_not_broadcast():
    with pytest.raises(ValueError, match=r"b must have the shape of a, \(3, 1\), got \(3,\)"):
        close(torch.ones(3, 1), torch.ones(3))


def test_minimise_is_adam_on_the_losses_of_its_steps():
    w, twin = (torch.tensor([3.0, -2.0], requires_grad=True) for _ in range(2))
    losses = minimise(
        lambda step: (w - step).square().sum(), [w], n_steps=4, lr=lambda i: 0.1 / (i + 1)
    )
    adam, by_hand = torch.optim.Adam([twin]), []
    for step in range(4):
        adam.param_groups[0]["lr"] = 0.1 / (step + 1)
        adam.zero_grad()
        loss = (twin - step).square().sum()
        loss.backward()
        adam.step()
        by_hand.append(loss.item())
    assert losses == pytest.approx(by_hand, rel=1e-6)  # its one call rounds otherwise
    torch.testing.assert_close(w, twin, rtol=1e-6, atol=1e-6)


def test_minimise_cuts_gradients_that_are_too_long(monkeypatch):
    lengths = []
    step = torch.optim.Adam.step

    def spy(self):
        lengths.append(w.grad.norm().item())
        return step(self)

    monkeypatch.setattr(torch.optim.Adam, "step", spy)
    w = torch.tensor([30.0, 40.0], requires_grad=True)
    minimise(lambda _: w.square().sum() / 2, [w], n_steps=1, lr=0.1)
    minimise(lambda _: w.square().sum() / 2, [w], n_steps=1, lr=0.1, clip_norm=2.0)
    assert lengths == pytest.approx([50.0, 2.0], rel=1e-3)


@pytest.mark.parametrize("thing", [torch.nn.Linear, torch.softmax, "x", lambda: 0, 3])
def test_show_refuses_what_is_not_the_packages(thing, unchecked):
    with pytest.raises(ValueError, match="thing must be a function or class of the package, got"):
        show(thing)


@pytest.fixture
def axes():
    plt.switch_backend("agg")
    figures.use_style()
    figure, axes = plt.subplots()
    yield axes
    figure.canvas.draw()
    plt.close(figure)


def test_heatmap_writes_each_value_in_its_cell(axes):
    figures.heatmap(axes, torch.tensor([[0.0, 1.0], [0.25, -0.001]]), ["a", "b"], ["c", "d"])
    assert [t.get_text() for t in axes.texts] == ["0.00", "1.00", "0.25", "0.00"]
    assert [t.get_text() for t in axes.get_yticklabels()] == ["a", "b"]
    assert [t.get_text() for t in axes.get_xticklabels()] == ["c", "d"]


def test_heatmap_has_a_row_for_each_query(axes):
    matrix = torch.tensor([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], requires_grad=True)
    figures.heatmap(axes, matrix.bfloat16(), digits=0, aspect="equal")
    assert axes.images[0].get_array().tolist() == matrix.tolist()
    assert [t.get_position() for t in axes.texts] == [(s, t) for t in range(2) for s in range(3)]


def test_heatmap_can_leave_the_numbers_out(axes):
    figures.heatmap(axes, torch.eye(3), digits=None)
    assert not axes.texts
