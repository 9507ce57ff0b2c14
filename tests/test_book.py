import functools

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch

from transformer.attention import attention
from transformer.book import claim, figures, show


@pytest.mark.parametrize("holds", [True, np.bool_(True), torch.tensor(True)])
def test_a_claim_that_holds_prints_one_line(holds, capsys):
    assert claim("one is odd", holds) is None
    assert capsys.readouterr().out == "✓ one is odd\n"


@pytest.mark.parametrize("holds", [False, np.bool_(False), torch.tensor(False)])
def test_a_claim_that_does_not_hold_raises_with_its_text(holds, capsys):
    with pytest.raises(AssertionError, match=r"^one is even$"):
        claim("one is even", holds)
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
        claim("one is odd", holds)


@pytest.mark.parametrize("text", ["", "  ", "two\nlines", "two\rlines", None])
def test_a_claim_needs_one_line_of_text(text, unchecked):
    with pytest.raises(ValueError, match="text must be one line that states the claim, got"):
        claim(text, True)


def test_show_displays_the_source_on_disk(monkeypatch):
    shown = []
    monkeypatch.setattr("transformer.book.source.display", shown.append)
    show(attention, figures.heatmap)
    first, second = (markdown.data for markdown in shown)
    assert first.startswith("```python\n# transformer/attention.py\ndef attention(\n")
    assert first.endswith("    return weights @ v\n```")
    assert "def heatmap(" in second


@functools.wraps(attention)
def pretends_to_be_attention():
    pass


def from_elsewhere():
    pass


from_elsewhere.__module__ = "transformers.models"


@pytest.mark.parametrize(
    "thing",
    [torch.nn.Linear, torch.softmax, "x", lambda: 0, 3, pretends_to_be_attention, from_elsewhere],
)
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


def test_heatmap_writes_each_value_in_a_colour_that_can_be_read(axes):
    figures.heatmap(axes, torch.tensor([[0.0, 1.0], [0.25, -0.001]]), ["a", "b"], ["c", "d"])
    assert [t.get_text() for t in axes.texts] == ["0.00", "1.00", "0.25", "0.00"]
    assert [t.get_color() for t in axes.texts] == ["black", "white", "black", "black"]
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


def test_matrices_are_drawn_to_scale_and_named(axes):
    figures.matrices(axes, ("Q", ("T", 3), ("d", 2)), "→", ("A", ("T", 3), ("S", 5)))
    boxes = [(p.get_height(), p.get_width()) for p in axes.patches]
    assert boxes == [(3, 2), (3, 5)]
    assert {t.get_text() for t in axes.texts} == {"Q", "A", "T", "S", "d", "→"}


def test_figures_stay_white_and_their_colours_differ():
    figures.use_style()
    assert plt.rcParams["figure.facecolor"] == "white"
    colours = plt.rcParams["axes.prop_cycle"].by_key()["color"]
    assert len(set(colours)) == len(colours) >= 6
