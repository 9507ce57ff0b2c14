"""The parts around attention: LayerNorm, the feed-forward network, Add & Norm (chapter 7)."""

from collections.abc import Callable
from typing import Literal, get_args

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from transformer.checks import check_choice, check_positive, check_share, check_width
from transformer.fused import fused_dropout

NormOrder = Literal["post", "pre"]


class LayerNorm(nn.Module):
    """γ (x - mean) / √(var + eps) + β, mean and variance over the features of each token.

    Ba et al. (2016), Eq. 4; chapter 7 computes it by hand. The variance divides by d_model.
    """

    def __init__(self, d_model: int, *, eps: float = 1e-5):
        super().__init__()
        check_positive(d_model=d_model)
        self.weight = nn.Parameter(torch.ones(d_model))  # γ
        self.bias = nn.Parameter(torch.zeros(d_model))  # β
        self.eps = eps

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        check_width(x, self.weight.size(0), name="x")
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.eps)


class FeedForward(nn.Module):
    """max(0, x W_1 + b_1) W_2 + b_2 for each token; Vaswani et al. (2017), Eq. 2; chapter 7."""

    def __init__(self, d_model: int, d_ff: int):
        super().__init__()
        check_positive(d_model=d_model, d_ff=d_ff)
        self.W_1 = nn.Linear(d_model, d_ff)
        self.W_2 = nn.Linear(d_ff, d_model)

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        check_width(x, self.W_1.in_features, name="x")
        return self.W_2(self.W_1(x).relu_())


class Dropout(nn.Module):
    """In training, sets each number to zero with probability ``p`` and divides the others by 1 - p.

    Srivastava et al. (2014); chapter 7.

    Raises ValueError if ``p`` is not at least 0 and below 1.
    """

    def __init__(self, p: float):
        super().__init__()
        check_share(p=p)
        self.p = p

    def forward(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return fused_dropout(x, self.p) if self.training and self.p > 0 else x


class Residual(nn.Module):
    """Add & Norm around a sub-layer; Vaswani et al. (2017), sections 3.1 and 5.4; chapter 7.

    post, the paper's: LayerNorm(x + Dropout(sublayer(x))); pre, Xiong et al. (2020):
    x + Dropout(sublayer(LayerNorm(x))).
    """

    def __init__(self, d_model: int, *, dropout: float = 0.0, norm: NormOrder = "post"):
        super().__init__()
        check_choice(get_args(NormOrder), norm=norm)
        self.norm = LayerNorm(d_model)
        self.dropout = Dropout(dropout)
        self.pre = norm == "pre"

    def forward(
        self, x: Float[Tensor, "*batch d_model"], sublayer: Callable[[Tensor], Tensor]
    ) -> Float[Tensor, "*batch d_model"]:
        if self.pre:
            return x + self.dropout(sublayer(self.norm(x)))
        return self.norm(x + self.dropout(sublayer(x)))
