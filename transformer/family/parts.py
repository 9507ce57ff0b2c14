"""What changed in the layers since 2017: norms, feed-forward networks, keys (chapter 14)."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from transformer import positional
from transformer.checks import check_finite_and_positive, check_positive, check_width
from transformer.layers import FeedForward
from transformer.multihead import MultiHeadAttention, Queries

SharedKeys = Float[Tensor, "B n_key_heads S d_k"]  # and values


class RMSNorm(nn.Module):
    """γ x / √(mean(x²) + eps), the mean over the features of each token.

    Zhang and Sennrich (2019), Eq. 4; chapter 14. LayerNorm without the mean and without β.
    """

    def __init__(self, d_model: int, *, eps: float = 1e-5):
        super().__init__()
        check_positive(d_model=d_model)
        self.weight = nn.Parameter(torch.ones(d_model))  # γ
        self.eps = eps

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        check_width(x, self.weight.size(0), name="x")
        return F.rms_norm(x, self.weight.shape, self.weight.to(x.dtype), self.eps)


class ActivatedFeedForward(FeedForward):
    """activation(x W_1 + b_1) W_2 + b_2 for each token; with max(0, ·) it is chapter 7's.

    Hendrycks and Gimpel (2016) for GELU, x Φ(x); chapter 14. Without ``bias``, b_1 = b_2 = 0.
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        *,
        activation: Callable[[Tensor], Tensor] = F.gelu,
        bias: bool = True,
    ):
        super().__init__(d_model, d_ff)
        self.W_1 = nn.Linear(d_model, d_ff, bias=bias)
        self.W_2 = nn.Linear(d_ff, d_model, bias=bias)
        self.activation = activation

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        check_width(x, self.W_1.in_features, name="x")
        return self.W_2(self.activation(self.W_1(x)))


class GatedFeedForward(nn.Module):
    """SwiGLU: (silu(x W_1) ⊙ x W_3) W_2 for each token, silu(z) = z / (1 + e⁻ᶻ).

    Shazeer (2020), Eq. 6; chapter 14. W_1 makes the gates, W_3 what goes through them. Three
    matrices are as many parameters as chapter 7's two with a ``d_ff`` of two thirds.
    """

    def __init__(self, d_model: int, d_ff: int, *, bias: bool = False):
        super().__init__()
        check_positive(d_model=d_model, d_ff=d_ff)
        self.W_1 = nn.Linear(d_model, d_ff, bias=bias)
        self.W_3 = nn.Linear(d_model, d_ff, bias=bias)
        self.W_2 = nn.Linear(d_ff, d_model, bias=bias)

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        check_width(x, self.W_1.in_features, name="x")
        return self.W_2(F.silu(self.W_1(x)) * self.W_3(x))


class GroupedQueryAttention(MultiHeadAttention):
    """Multi-head attention whose heads share keys and values, a group of them each.

    Ainslie et al. (2023), section 2.2; chapter 14. With one group it is the multi-query attention
    of Shazeer (2019). W_k and W_v have ``n_key_heads`` · d_k columns, and a cache keeps as many
    numbers of a token; query head i reads the keys of head i // (n_heads / n_key_heads).

    Raises ValueError if ``n_heads`` does not divide ``d_model``, or ``n_key_heads`` ``n_heads``.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        n_key_heads: int,
        *,
        bias: bool = True,
        positions: positional.Positions | None = None,
    ):
        super().__init__(d_model, n_heads, bias=bias, positions=positions)
        check_positive(n_key_heads=n_key_heads)
        if n_heads % n_key_heads:
            raise ValueError(
                f"n_heads must be a multiple of n_key_heads, got {n_heads} and {n_key_heads}"
            )
        self.group = n_heads // n_key_heads
        self.W_k = nn.Linear(d_model, n_key_heads * self.d_k, bias=bias)
        self.W_v = nn.Linear(d_model, n_key_heads * self.d_k, bias=bias)

    def attend(
        self,
        q: Queries,
        k: SharedKeys,
        v: SharedKeys,
        mask: Tensor | None,
        bias: Tensor | None = None,
    ) -> Queries:
        """Each head of keys and values once for every head of queries in its group."""
        k, v = (x.repeat_interleave(self.group, dim=1) for x in (k, v))  # (B, h, S, d_k)
        return super().attend(q, k, v, mask, bias)


class RotaryPositions(positional.RotaryPositions):
    """Chapter 6's, by the angle position / θ^(2i/d_k), where θ is ``theta``; chapter 14.

    A larger base than Su et al.'s 10,000 turns slower, for longer texts: 500,000 in Llama 3.
    """

    def __init__(self, max_len: int, d_k: int, *, theta: float = 10_000.0):
        super().__init__(max_len, d_k)
        check_finite_and_positive(theta=theta)
        pairs = torch.arange(0, d_k, 2, dtype=torch.float64)  # 2i
        angles = torch.arange(max_len)[:, None] / theta ** (pairs / d_k)
        angles = angles.repeat_interleave(2, dim=-1)  # (max_len, d_k)
        self.cos, self.sin = angles.cos().float(), angles.sin().float()
