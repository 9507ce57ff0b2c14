"""A block of the family: chapter 8's layer, and what models of today add (chapters 15 and 16)."""

from collections.abc import Callable
from functools import partial
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from transformer.family.config import FamilyConfig
from transformer.layers import NORMS, Residual
from transformer.model import EncoderLayer
from transformer.multihead import Keys, MultiHeadAttention, Queries
from transformer.positional import Positions, Turned


class NormedAttention(MultiHeadAttention):
    """QK-norm: each query and each key is normalised, in every head, before positions turn it.

    Henry et al. (2020), with gains that all heads share, as in Gemma 3; chapter 15. ``norm(d_k)``
    makes a norm; ``options`` are those of :class:`~transformer.multihead.MultiHeadAttention`.
    """

    def __init__(
        self, d_model: int, n_heads: int, *, norm: Callable[[int], nn.Module], **options: Any
    ):
        super().__init__(d_model, n_heads, **options)
        self.q_norm, self.k_norm = norm(self.d_k), norm(self.d_k)

    def queries(self, query: Float[Tensor, "B T d_model"], start: Turned = 0) -> Queries:
        """The queries of all heads; the first stands at position ``start``."""
        return self.positions.turn(self.q_norm(self.split(self.W_q(query))), start)

    def project(
        self,
        key: Float[Tensor, "B S d_model"],
        value: Float[Tensor, "B S d_model"],
        start: Turned = 0,
    ) -> tuple[Keys, Keys]:
        """The keys and values of all heads; the first stands at position ``start``."""
        k, v = self.split(self.W_k(key)), self.split(self.W_v(value))
        return self.positions.turn(self.k_norm(k), start), v


class Sandwich(Residual):
    """x + Dropout(norm(sublayer(norm(x)))): the sub-layer stands between two norms.

    As in Gemma 3 (Gemma Team, 2025), with RMSNorm for both. The second is ``norm_after``.
    """

    def __init__(self, d_model: int, *, norm_after: nn.Module, **options: Any):
        super().__init__(d_model, norm="pre", **options)
        self.norm_after = norm_after

    def forward(
        self, x: Float[Tensor, "*batch d_model"], sublayer: Callable[[Tensor], Tensor]
    ) -> Float[Tensor, "*batch d_model"]:
        return super().forward(x, lambda x: self.norm_after(sublayer(x)))


def make_block(config: FamilyConfig, *, positions: Positions) -> EncoderLayer:
    """Chapter 8's encoder layer, in which other parts stand where ``config`` asks for them."""
    c, block = config, EncoderLayer(config, positions=positions)
    norm = partial(NORMS[c.norm_kind], eps=c.norm_eps)
    if c.qk_norm or c.head_dim is not None:
        attention = partial(NormedAttention, norm=norm) if c.qk_norm else MultiHeadAttention
        block.self_attention = attention(
            c.d_model,
            c.n_heads,
            n_key_heads=c.n_key_heads,
            d_k=c.d_k,
            bias=c.bias,
            positions=positions,
        )
    if c.sandwich_norm:
        block.residual_1, block.residual_2 = (
            Sandwich(
                c.d_model,
                norm_after=norm(c.d_model),
                dropout=c.dropout,
                kind=c.norm_kind,
                eps=c.norm_eps,
            )
            for _ in range(2)
        )
    return block
