"""Where a token stands: sinusoidal, learned and rotary positions (chapter 6)."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from transformer.checks import check_finite_and_positive, check_positive, check_width

Start = int | Int[Tensor, "B T"]  # where the first token stands, or each of them
Turned = Start | Int[Tensor, "B 1"] | Int[Tensor, ""]  # or the first of each text; or a tensor


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


class Positions(nn.Module):
    """Where tokens stand, and the three places at which that can be told; this one tells nothing.

    Chapter 6. A kind overrides what it does: :meth:`embed` acts on the embeddings, :meth:`turn` and
    :meth:`bias` within self-attention. It also says how it is made for each of the two, of those
    sizes that it needs (``**_`` takes the others). A kind that has buffers which no ``state_dict``
    holds says in :meth:`reset_buffers` what stands in them.
    """

    @classmethod
    def at_embedding(cls, *, max_len: int, d_model: int) -> "Positions":
        """The module that an embedding keeps: this kind, if it acts there."""
        return Positions()

    @classmethod
    def in_attention(
        cls, *, max_len: int, d_k: int, n_heads: int, theta: float = 10_000.0
    ) -> "Positions":
        """The module that all self-attentions of a stack share: this kind, if it acts there."""
        return Positions()

    def embed(
        self, x: Float[Tensor, "B T d_model"], start: Start = 0
    ) -> Float[Tensor, "B T d_model"]:
        """The embeddings of tokens at positions ``start``, ``start`` + 1, …

        A tensor (B, T) says of each token where it stands (chapter 14: texts padded on the left).
        """
        return x

    def turn(self, x: Float[Tensor, "B h T d_k"], start: Turned = 0) -> Float[Tensor, "B h T d_k"]:
        """Queries or keys of tokens at positions ``start``, ``start`` + 1, …

        A tensor (B, 1) says of each text where its first token stands, (B, T) of each token: texts
        of different lengths that are decoded together (chapter 17).
        """
        return x

    def bias(self, T: int, S: int) -> Float[Tensor, "h T S"] | None:
        """The numbers that are added to the scaled scores of the last T of S tokens against all S.

        Only how it differs from key to key counts: softmax ignores what it adds to a whole row. So
        a bias by the distance between two tokens, which S ends on the right, is right also where a
        cache holds the last keys alone, or rows of different lengths (chapters 16 and 17). Encoders
        see keys on both sides: by the size of the distance alone, no word knows left from right.
        """
        return None

    def reset_buffers(self) -> None:
        """Fills the buffers that no ``state_dict`` holds; this one has none."""

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Any:
        # to_empty forgets the buffers, which no state_dict brings back; and it comes once for each
        # layer that shares this module
        before = dict(self.named_buffers())
        super()._apply(fn, recurse)
        if any(buffer.is_meta for buffer in before.values()):
            self.reset_buffers()
        else:
            for name, buffer in self.named_buffers():
                buffer.copy_(before[name])
        return self


class AddedPositions(Positions):
    """x + table: a row for each position, added to the embeddings; chapter 6."""

    table: Tensor  # (max_len, d_model)

    @classmethod
    def at_embedding(cls, *, max_len: int, d_model: int) -> Positions:
        return cls(max_len, d_model)

    def embed(
        self, x: Float[Tensor, "B T d_model"], start: Start = 0
    ) -> Float[Tensor, "B T d_model"]:
        """Adds rows ``start``, ``start`` + 1, … ValueError past ``max_len``.

        Places given one by one are not looked at: whoever counts them knows the longest text.
        """
        check_width(x, self.table.size(1), name="x")
        if isinstance(start, Tensor):
            return x + F.embedding(start, self.table).to(x.dtype)  # a row for each token
        return x + _rows(self.table, start, x.size(1)).to(x.dtype)


class SinusoidalPositions(AddedPositions):
    """x + PE: the fixed encoding of Vaswani et al. (2017), section 3.5; chapter 6.

    A module that is turned into half precision rounds its table, for good.
    """

    def __init__(self, max_len: int, d_model: int):
        super().__init__()
        self.register_buffer("table", sinusoidal_encoding(max_len, d_model), persistent=False)

    def reset_buffers(self) -> None:
        self.table.copy_(sinusoidal_encoding(*self.table.shape))


class LearnedPositions(AddedPositions):
    """x + P, a trained row for each position; Vaswani et al. (2017), Table 3 (E); chapter 6."""

    def __init__(self, max_len: int, d_model: int):
        super().__init__()
        check_positive(max_len=max_len, d_model=d_model)
        self.table = nn.Parameter(torch.randn(max_len, d_model) * d_model**-0.5)


class RotaryPositions(Positions):
    """Turns each pair of channels (2i, 2i+1) by the angle position / 10000^(2i/d_k).

    Su et al. (2021), Eq. 34; chapter 6. Queries and keys are turned, so that their dot product
    depends on the distance between them alone. ``theta`` stands in the place of 10000: a larger one
    turns slower, for longer texts, such as 500,000 in Llama 3 (chapter 15).

    Raises ValueError if ``d_k`` is odd, or a size or ``theta`` is not positive.
    """

    cos: Tensor  # (max_len, d_k), each angle twice
    sin: Tensor

    def __init__(self, max_len: int, d_k: int, *, theta: float = 10_000.0):
        super().__init__()
        check_positive(max_len=max_len, d_k=d_k)
        check_finite_and_positive(theta=theta)
        if d_k % 2:
            raise ValueError(f"d_k must be even, to be turned in pairs, got {d_k}")
        self.theta = theta
        for name in ("cos", "sin"):
            table = torch.empty(max_len, d_k, dtype=torch.float32)
            self.register_buffer(name, table, persistent=False)
        self.reset_buffers()

    def reset_buffers(self) -> None:
        max_len, d_k = self.cos.shape
        angles = _angles(max_len, d_k, self.theta).repeat_interleave(2, dim=-1)
        self.cos.copy_(angles.cos())
        self.sin.copy_(angles.sin())

    @classmethod
    def in_attention(
        cls, *, max_len: int, d_k: int, n_heads: int, theta: float = 10_000.0
    ) -> Positions:
        return cls(max_len, d_k, theta=theta)

    def turn(self, x: Float[Tensor, "B h T d_k"], start: Turned = 0) -> Float[Tensor, "B h T d_k"]:
        """Turns by positions ``start``, ``start`` + 1, … ValueError past ``max_len``.

        Places in a tensor are not looked at: see :meth:`AddedPositions.embed`.
        """
        check_width(x, self.cos.size(1), name="x")
        # (T, d_k) or, of each text, (B, T, d_k): the same for all of its heads
        rows = (_rows(table, start, x.size(2)) for table in (self.cos, self.sin))
        cos, sin = (row.unsqueeze(-3).to(x.dtype) for row in rows)
        turned = torch.stack([-x[..., 1::2], x[..., 0::2]], dim=-1).flatten(-2)  # by 90°
        return x * cos + turned * sin


# The word in a configuration, and what it stands for.
POSITIONS: dict[str, type[Positions]] = {
    "sinusoidal": SinusoidalPositions,
    "learned": LearnedPositions,
    "rotary": RotaryPositions,
    "none": Positions,
}


def _angles(length: int, width: int, theta: float = 10_000.0) -> Float[Tensor, "length half"]:
    # in float64: at position 10,000 a float32 angle is off by 1e-3
    pairs = torch.arange(0, width, 2, dtype=torch.float64)  # 2i
    return torch.arange(length)[:, None] / theta ** (pairs / width)


def _rows(table: Tensor, start: int | Tensor, length: int) -> Tensor:
    if isinstance(start, Tensor):  # not looked at: see AddedPositions.embed
        if start.dim() == 2 and start.size(1) == length:
            return table[start]  # of each token
        return table[start + torch.arange(length, device=start.device)]
    if start < 0:
        raise ValueError(f"start must not be negative, got {start}")
    if start + length > table.size(0):
        raise ValueError(
            f"a sequence must be no longer than max_len = {table.size(0)}, got {start + length}"
        )
    return table[start : start + length]
