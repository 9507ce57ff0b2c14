"""The parts around attention: LayerNorm, the feed-forward network, Add & Norm (chapter 7)."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from transformer.checks import check_positive, check_width
from transformer.config import Norm


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
        check_width(x, len(self.weight), name="x")
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

    Srivastava et al. (2014). On a CPU it draws 16 random bits for each number, four numbers at a
    time, which takes half as long as ``F.dropout`` and makes ``p`` exact to 1/65536; elsewhere, and
    when compiled, it is ``F.dropout``.

    Raises ValueError if ``p`` is not at least 0 and below 1.
    """

    def __init__(self, p: float):
        super().__init__()
        if not 0 <= p < 1:
            raise ValueError(f"p must be at least 0 and below 1, got {p}")
        self.p = p

    def forward(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        if not self.training or self.p == 0:
            return x
        if x.device.type != "cpu" or torch.compiler.is_compiling():
            return F.dropout(x, self.p)
        words = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(-(2**63), None)
        bits = words.view(torch.int16)[: x.numel()].view(x.shape)  # uniform from -2¹⁵ to 2¹⁵ - 1
        dropped = min(round(self.p * 2**16), 2**16 - 1)  # of the 2¹⁶ values, the lowest
        keep = torch.empty_like(x)  # 1 or 0; a comparison that made booleans would cost five times
        torch.ge(bits, dropped - 2**15, out=keep)
        return x * keep.div_(1 - dropped / 2**16)


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Without dropout and without gradients; each module's mode is restored."""
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, mode in modes.items():
            module.training = mode


class Residual(nn.Module):
    """Add & Norm around a sub-layer; Vaswani et al. (2017), sections 3.1 and 5.4; chapter 7.

    post, the paper's: LayerNorm(x + Dropout(sublayer(x))); pre, Xiong et al. (2020):
    x + Dropout(sublayer(LayerNorm(x))).
    """

    def __init__(self, d_model: int, *, dropout: float = 0.0, norm: Norm = "post"):
        super().__init__()
        if norm not in ("post", "pre"):
            raise ValueError(f"norm must be 'post' or 'pre', got {norm!r}")
        self.norm = LayerNorm(d_model)
        self.dropout = Dropout(dropout)
        self.pre = norm == "pre"

    def forward(
        self, x: Float[Tensor, "*batch d_model"], sublayer: Callable[[Tensor], Tensor]
    ) -> Float[Tensor, "*batch d_model"]:
        if self.pre:
            return x + self.dropout(sublayer(self.norm(x)))
        return self.norm(x + self.dropout(sublayer(x)))
