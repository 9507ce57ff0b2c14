import math

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from transformer.checks import (
    check_choice,
    check_finite_and_positive,
    check_heads,
    check_mask,
    check_pad_id,
    check_positive,
    check_shape,
    check_share,
    check_tokens,
    check_width,
    has_values,
    shape_text,
)


@pytest.mark.parametrize(
    ("sizes", "error", "message"),
    [
        ({"d_model": 1, "n_heads": 0}, ValueError, "n_heads must be positive, got 0"),
        ({"d_model": -2}, ValueError, "d_model must be positive, got -2"),
        ({"d_model": True}, TypeError, "d_model must be an integer, got True"),
        ({"d_model": 2.0}, TypeError, "d_model must be an integer, got 2.0"),
        ({"d_model": "8"}, TypeError, "d_model must be an integer, got '8'"),
    ],
)
def test_sizes_that_no_model_can_have_are_refused(sizes, error, message, unchecked):
    with pytest.raises(error, match=message):
        check_positive(**sizes)


@pytest.mark.parametrize(
    ("check", "error", "message"),
    [
        (lambda: check_share(p=1), ValueError, "p must be at least 0 and below 1, got 1"),
        (lambda: check_share(p=-1e-9), ValueError, "p must be at least 0 and below 1, got -1e-09"),
        (lambda: check_share(a=0.5, p=math.nan), ValueError, "p must be at least 0 .* got nan"),
        (lambda: check_share(p="0.1"), TypeError, "p must be a number, got '0.1'"),
        (lambda: check_share(p=False), TypeError, "p must be a number, got False"),
        (
            lambda: check_choice(["post", "pre"], norm="both"),
            ValueError,
            r"norm must be one of \('post', 'pre'\), got 'both'",
        ),
        (lambda: check_pad_id(9, 9, 10), ValueError, "pad_id must be an id of both .* got 9"),
        (lambda: check_pad_id(9, 10, 9), ValueError, "pad_id must be an id of both .* got 9"),
        (lambda: check_pad_id(-1, 9, 9), ValueError, "pad_id must be an id of both .* got -1"),
        (lambda: check_pad_id(True, 9, 9), TypeError, "pad_id must be an integer, got True"),
        (lambda: check_heads(10, 4), ValueError, "multiple of n_heads, got 10 and 4"),
        (
            lambda: check_width(torch.zeros(3, 2), 3, name="x"),
            ValueError,
            r"x must have shape \(..., 3\), got \(3, 2\)",
        ),
        (lambda: check_width(torch.zeros(()), 3, name="x"), ValueError, r"x must .* got \(\)"),
        (lambda: check_finite_and_positive(lr=0.0), ValueError, "lr must be positive .* got 0.0"),
        (
            lambda: check_finite_and_positive(lr=math.inf),
            ValueError,
            "lr must be positive and finite, got inf",
        ),
        (lambda: check_finite_and_positive(lr=math.nan), ValueError, "lr must .*, got nan"),
    ],
)
def test_numbers_out_of_their_range_are_refused(check, error, message, unchecked):
    with pytest.raises(error, match=message):
        check()


@pytest.mark.parametrize("shape", [(2,), (0,), (4,), (2, 1), (3, 3), (1, 2, 3)])
def test_masks_that_do_not_broadcast_are_refused(shape):
    got = shape_text(shape).replace("(", r"\(").replace(")", r"\)")
    with pytest.raises(ValueError, match=rf"mask must broadcast to .* = \(4, 3\), got {got}"):
        check_mask(torch.ones(shape, dtype=torch.bool), (4, 3))


def test_shapes_are_written_as_python_writes_them():
    assert shape_text(()) == "()"
    assert shape_text(torch.zeros(7).shape) == "(7,)"
    assert shape_text(("B", "S", 4)) == "(B, S, 4)"


def test_python_may_look_at_numbers_unless_there_are_none():
    assert has_values(torch.zeros(3))
    assert not has_values(torch.zeros(3, device="meta"))
    with FakeTensorMode():
        fake = torch.zeros(3)
    assert not has_values(fake)


@pytest.mark.parametrize(
    ("shape", "wanted", "message"),
    [
        ((2, 3), ("B", "S", 4), r"x must have shape \(B, S, 4\), got \(2, 3\)"),
        ((2, 3, 5), ("B", "S", 4), r"x must have shape \(B, S, 4\), got \(2, 3, 5\)"),
        ((2,), (3,), r"x must have shape \(3,\), got \(2,\)"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(shape, wanted, message):
    with pytest.raises(ValueError, match=message):
        check_shape(torch.zeros(shape), *wanted, name="x")


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (torch.tensor([1, 2]), r"src must have two axes \(B, length\), got shape \(2,\)"),
        (torch.zeros(1, 2, 3).long(), r"src must have two axes .* got shape \(1, 2, 3\)"),
        (torch.zeros(1, 2), "src must hold integer ids, got torch.float32"),
        (torch.zeros(1, 2).bool(), "src must hold integer ids, got torch.bool"),
        (torch.zeros(1, 2).cfloat(), "src must hold integer ids, got torch.complex64"),
        (torch.zeros(4, 0).long(), r"src must have at least one position, got \(4, 0\)"),
        (torch.tensor([[3, 12]]), "src must hold ids from 0 to 11, got 12"),
        (torch.tensor([[3], [-1]]), "src must hold ids from 0 to 11, got -1"),
    ],
)
def test_tokens_that_are_no_tokens_are_refused(tokens, message):
    with pytest.raises(ValueError, match=message):
        check_tokens(tokens, 12, name="src")


@pytest.mark.usefixtures("unchecked")
def test_tokens_that_are_no_tensor_are_refused():
    with pytest.raises(TypeError, match="src must be a tensor of ids, got list"):
        check_tokens([[1, 2]], 12, name="src")
    with pytest.raises(ValueError, match=r"src must hold integer ids, got torch.uint8; want int64"):
        check_tokens(torch.ones(1, 2, dtype=torch.uint8), 12, name="src")
