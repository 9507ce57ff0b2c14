import pytest
import torch

from transformer.checks import check_positive, check_shape, check_tokens


def test_what_fits_passes():
    check_positive(d_model=1, n_heads=8)
    check_shape(torch.zeros(2, 0, 4), "B", "S", 4, name="x")
    check_shape(torch.zeros(3), 3, name="x")
    for dtype in (torch.int64, torch.int32):
        check_tokens(torch.tensor([[0, 11]], dtype=dtype), 12, name="src")
    check_tokens(torch.zeros(0, 3, dtype=torch.long), 12, name="src")


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
