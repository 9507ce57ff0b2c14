"""Where a token stands: sinusoidal, learned and rotary positions (chapter 6)."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from transformer.checks import check_positive, check_width


def sinusoidal_encoding(length: int, d_model: int) -> Float[Tensor, "{length} {d_model}"]:
    """PE(pos, 2i) = sin(pos / 10000^(2i/d_model)), PE(pos, 2i+1) = cos(the same).

    Vaswani et al. (2017), section 3.5; chapter 6. Sine and cosine alternate along the columns.

    Raises ValueError if ``d_model`` is odd or a size is not positive.
    """
    check_positive(length=length, d_model=d_model)
    if d_model % 2:
        raise ValueError(f"d_model must be even, a sine and a cosine each, got {d_model}")
    angles = _angles(length, d_model)  # (length, d_model / 2)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2).float()


class SinusoidalPositions(nn.Module):
    """x + PE: the fixed encoding of Vaswani et al. (2017), section 3.5; chapter 6.

    A module that is turned into half precision rounds its table, for good.
    """

    def __init__(self, max_len: int, d_model: int):
        super().__init__()
        self.register_buffer("table", sinusoidal_encoding(max_len, d_model), persistent=False)

    def forward(
        self, x: Float[Tensor, "B T d_model"], start: int = 0
    ) -> Float[Tensor, "B T d_model"]:
        """Adds positions ``start``, ``start`` + 1, … ValueError past ``max_len``."""
        check_width(x, self.table.size(1), name="x")
        return x + _rows(self.table, start, x.size(1))


class LearnedPositions(nn.Module):
    """x + P, a trained row for each position; Vaswani et al. (2017), Table 3 (E); chapter 6."""

    def __init__(self, max_len: int, d_model: int):
        super().__init__()
        check_positive(max_len=max_len, d_model=d_model)
        self.table = nn.Parameter(torch.randn(max_len, d_model) * d_model**-0.5)

    def forward(
        self, x: Float[Tensor, "B T d_model"], start: int = 0
    ) -> Float[Tensor, "B T d_model"]:
        """Adds positions ``start``, ``start`` + 1, … ValueError past ``max_len``."""
        check_width(x, self.table.size(1), name="x")
        return x + _rows(self.table, start, x.size(1))


class RotaryPositions(nn.Module):
    """Turns each pair of channels (2i, 2i+1) by the angle position / 10000^(2i/d_k).

    Su et al. (2021), Eq. 34; chapter 6. Queries and keys are turned, so that their dot product
    depends on the distance between them alone.

    Raises ValueError if ``d_k`` is odd or a size is not positive.
    """

    def __init__(self, max_len: int, d_k: int):
        super().__init__()
        check_positive(max_len=max_len, d_k=d_k)
        if d_k % 2:
            raise ValueError(f"d_k must be even, to be turned in pairs, got {d_k}")
        angles = _angles(max_len, d_k).repeat_interleave(2, dim=-1)  # (max_len, d_k)
        self.register_buffer("cos", angles.cos().float(), persistent=False)
        self.register_buffer("sin", angles.sin().float(), persistent=False)

    def forward(self, x: Float[Tensor, "B h T d_k"], start: int = 0) -> Float[Tensor, "B h T d_k"]:
        """Turns by positions ``start``, ``start`` + 1, … ValueError past ``max_len``."""
        check_width(x, self.cos.size(1), name="x")
        cos, sin = (_rows(table, start, x.size(2)).to(x.dtype) for table in (self.cos, self.sin))
        turned = torch.stack([-x[..., 1::2], x[..., 0::2]], dim=-1).flatten(-2)  # by 90°
        return x * cos + turned * sin


def _angles(length: int, width: int) -> Float[Tensor, "length half"]:
    # in float64: at position 10,000 a float32 angle is off by 1e-3
    pairs = torch.arange(0, width, 2, dtype=torch.float64)  # 2i
    return torch.arange(length, dtype=torch.float64)[:, None] / 10_000 ** (pairs / width)


def _rows(table: Tensor, start: int, length: int) -> Tensor:
    if start < 0:
        raise ValueError(f"start must not be negative, got {start}")
    if start + length > table.size(0):
        raise ValueError(
            f"a sequence must be no longer than max_len = {table.size(0)}, got {start + length}"
        )
    return table[start : start + length]
