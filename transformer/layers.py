"""The parts around attention: norms, feed-forward networks, Add & Norm (chapters 7, 14 and 15)."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Literal, get_args

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from transformer.checks import check_choice, check_positive, check_share, check_width
from transformer.fused import fused_dropout

NormOrder = Literal["post", "pre"]
NormKind = Literal["layer", "rms"]
FeedForwardKind = Literal["relu", "gelu", "gelu_tanh", "swiglu", "geglu_tanh"]
Activation = Callable[[Tensor], Tensor]


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


class RMSNorm(nn.Module):
    """γ x / √(mean(x²) + eps), the mean over the features of each token.

    Zhang and Sennrich (2019), Eq. 4; chapter 15. LayerNorm without the mean and without β.
    """

    def __init__(self, d_model: int, *, eps: float = 1e-5):
        super().__init__()
        check_positive(d_model=d_model)
        self.weight = nn.Parameter(torch.ones(d_model))  # γ
        self.eps = eps

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        check_width(x, self.weight.size(0), name="x")
        return F.rms_norm(x, self.weight.shape, self.weight.to(x.dtype), self.eps)


class FeedForward(nn.Module):
    """max(0, x W_1 + b_1) W_2 + b_2 for each token; Vaswani et al. (2017), Eq. 2; chapter 7.

    Another ``activation`` may stand in the place of max(0, ·), such as the GELU x Φ(x) of Hendrycks
    and Gimpel (2016); chapter 14. Without ``bias``, b_1 = b_2 = 0.
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        *,
        activation: Activation = torch.relu,
        bias: bool = True,
    ):
        super().__init__()
        check_positive(d_model=d_model, d_ff=d_ff)
        self.W_1 = nn.Linear(d_model, d_ff, bias=bias)
        self.W_2 = nn.Linear(d_ff, d_model, bias=bias)
        self.activation = activation

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        check_width(x, self.W_1.in_features, name="x")
        return self.W_2(self.activation(self.W_1(x)))


class GatedFeedForward(nn.Module):
    """SwiGLU: (silu(x W_1) ⊙ x W_3) W_2 for each token, silu(z) = z / (1 + e⁻ᶻ).

    Shazeer (2020), Eq. 6; chapter 15. W_1 makes the gates, W_3 what goes through them. Three
    matrices are as many parameters as chapter 7's two with a ``d_ff`` of two thirds. Another
    ``activation`` may stand in the place of silu, such as GELU in Gemma 3's GeGLU.
    """

    def __init__(
        self, d_model: int, d_ff: int, *, activation: Activation = F.silu, bias: bool = False
    ):
        super().__init__()
        check_positive(d_model=d_model, d_ff=d_ff)
        self.W_1 = nn.Linear(d_model, d_ff, bias=bias)
        self.W_3 = nn.Linear(d_model, d_ff, bias=bias)
        self.W_2 = nn.Linear(d_ff, d_model, bias=bias)
        self.activation = activation

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        check_width(x, self.W_1.in_features, name="x")
        return self.W_2(self.activation(self.W_1(x)) * self.W_3(x))


# The words of a configuration, and what they stand for.
NORMS: Mapping[NormKind, type[LayerNorm | RMSNorm]] = {"layer": LayerNorm, "rms": RMSNorm}
ACTIVATIONS: Mapping[FeedForwardKind, Activation] = {
    "relu": torch.relu,
    "gelu": F.gelu,  # x Φ(x), exactly
    "gelu_tanh": partial(F.gelu, approximate="tanh"),  # GPT-2's
    "swiglu": F.silu,
    "geglu_tanh": partial(F.gelu, approximate="tanh"),
}
FEED_FORWARDS: Mapping[FeedForwardKind, Callable[..., nn.Module]] = {
    "relu": FeedForward,
    "gelu": partial(FeedForward, activation=ACTIVATIONS["gelu"]),
    "gelu_tanh": partial(FeedForward, activation=ACTIVATIONS["gelu_tanh"]),
    "swiglu": GatedFeedForward,
    "geglu_tanh": partial(GatedFeedForward, activation=ACTIVATIONS["geglu_tanh"]),
}


class Dropout(nn.Module):
    """Sets, in training, each number to 0 with probability ``p``, and divides the others by 1 - p.

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
    x + Dropout(sublayer(LayerNorm(x))). ``kind`` may put RMSNorm in LayerNorm's place (chapter 15).
    """

    def __init__(
        self,
        d_model: int,
        *,
        dropout: float = 0.0,
        norm: NormOrder = "post",
        kind: NormKind = "layer",
        eps: float = 1e-5,
    ):
        super().__init__()
        check_choice(get_args(NormOrder), norm=norm)
        check_choice(NORMS, kind=kind)
        self.norm = NORMS[kind](d_model, eps=eps)
        self.dropout = Dropout(dropout)
        self.pre = norm == "pre"

    def forward(
        self, x: Float[Tensor, "*batch d_model"], sublayer: Callable[[Tensor], Tensor]
    ) -> Float[Tensor, "*batch d_model"]:
        if self.pre:
            return x + self.dropout(sublayer(self.norm(x)))
        return self.norm(x + self.dropout(sublayer(x)))


def initialise(module: nn.Module) -> None:
    """Sets the weights of a linear layer as Glorot and Bengio (2010), Eq. 16, and its bias to zero.

    Chapter 8: every model begins with it. ``model.apply(initialise)`` reaches all of them.
    """
    if isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        if module.bias is not None:
            nn.init.zeros_(module.bias)
