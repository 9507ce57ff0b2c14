"""Multi-head attention, and a way to watch it (chapters 5 and 12)."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from jaxtyping import Bool, Float
from torch import Tensor, nn

from transformer.attention import attention_weights, masked_softmax
from transformer.cache import AttentionCache
from transformer.checks import check_heads, check_mask, shape_text
from transformer.fused import fused_heads
from transformer.positional import Positions

Queries = Float[Tensor, "B h T d_k"]
Keys = Float[Tensor, "B h S d_k"]  # and values: d_v = d_k


class MultiHeadAttention(nn.Module):
    """Concat(head_1, …, head_h) W^O, where head_i = attention(Q W_i^Q, K W_i^K, V W_i^V).

    Vaswani et al. (2017), section 3.2.2; chapter 5. W_q holds the W_i^Q of all heads side by side,
    d_k = d_v = d_model / n_heads columns each; W_k and W_v likewise. ``positions`` may turn queries
    and keys, and bias their scores (chapter 6).

    Raises ValueError if ``n_heads`` does not divide ``d_model``.
    """

    def __init__(
        self, d_model: int, n_heads: int, *, bias: bool = True, positions: Positions | None = None
    ):
        super().__init__()
        check_heads(d_model, n_heads)
        self.d_model, self.n_heads, self.d_k = d_model, n_heads, d_model // n_heads
        self.W_q = nn.Linear(d_model, d_model, bias=bias)
        self.W_k = nn.Linear(d_model, d_model, bias=bias)
        self.W_v = nn.Linear(d_model, d_model, bias=bias)
        self.W_o = nn.Linear(d_model, d_model, bias=bias)
        self.positions = positions or Positions()
        self.record: Callable[[Tensor], None] | None = None  # set by record_attention

    def forward(
        self,
        query: Float[Tensor, "B T d_model"],
        key: Float[Tensor, "B S d_model"],
        value: Float[Tensor, "B S d_model"],
        mask: Bool[Tensor, "..."] | None = None,
        *,
        cache: AttentionCache | None = None,
    ) -> Float[Tensor, "B T d_model"]:
        """``mask`` is (T, S) or broadcasts to (B, n_heads, T, S); True = may attend.

        With a ``cache`` (chapter 10), ``key`` and ``value`` are of new positions only, S counts
        those before as well, and nothing is checked. Raises ValueError where shapes do not fit.
        """
        if cache is None:
            self._check(query, key, value, mask)
            q, (k, v) = self.queries(query), self.project(key, value)
        else:
            q, (k, v) = self.queries(query, cache.length), cache.extend(self.project, key, value)
        bias = self.positions.bias(q.size(2), k.size(2))
        return self.W_o(self.merge(self.attend(q, k, v, mask, bias)))

    def queries(self, query: Float[Tensor, "B T d_model"], start: int = 0) -> Queries:
        """The queries of all heads; the first stands at position ``start``."""
        return self.positions.turn(self.split(self.W_q(query)), start)

    def project(
        self,
        key: Float[Tensor, "B S d_model"],
        value: Float[Tensor, "B S d_model"],
        start: int = 0,
    ) -> tuple[Keys, Keys]:
        """The keys and values of all heads; the first stands at position ``start``."""
        k, v = self.split(self.W_k(key)), self.split(self.W_v(value))
        return self.positions.turn(k, start), v

    def attend(
        self, q: Queries, k: Keys, v: Keys, mask: Tensor | None, bias: Tensor | None = None
    ) -> Queries:
        """Every head at once: the fused kernel, or the reference where weights are wanted."""
        if self.record is None:
            return fused_heads(q, k, v, mask, bias)
        if bias is None:
            weights = attention_weights(q, k, mask)
        else:
            scores = (q / math.sqrt(self.d_k)) @ k.mT + bias.to(q.dtype)
            weights = masked_softmax(scores, mask)
        self.record(weights.detach())
        return weights @ v

    def split(self, x: Float[Tensor, "B T d_model"]) -> Queries:
        """Cuts the last axis into heads; positions stay whole (chapter 5 shows the wrong way)."""
        return x.unflatten(-1, (-1, self.d_k)).transpose(1, 2)  # (B, h, T, d_k)

    def merge(self, x: Queries) -> Float[Tensor, "B T d_model"]:
        """Lays the heads side by side again."""
        return x.transpose(1, 2).flatten(-2)  # (B, T, d_model)

    def __getstate__(self) -> dict:
        return self.__dict__ | {"record": None}  # a copy made while this one is watched is not

    def _check(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> None:
        B = query.size(0) if query.dim() == 3 else "B"
        for name, x in {"query": query, "key": key, "value": value}.items():
            if x.dim() != 3 or x.size(-1) != self.d_model or x.size(0) != B:
                wanted = f"(B, length, d_model) = ({B}, length, {self.d_model})"
                raise ValueError(f"{name} must have shape {wanted}, got {shape_text(x.shape)}")
        T, S = query.size(1), key.size(1)
        if value.size(1) != S:
            raise ValueError(f"value must be as long as key, {S} positions, got {value.size(1)}")
        if mask is None:
            return
        if mask.dim() not in (2, 4):  # (B, T, S) could be read as (n_heads, T, S), too
            wanted = f"(T, S) or (B, 1 or {self.n_heads}, T, S)"
            raise ValueError(
                f"mask must have the axes {wanted}, got shape {shape_text(mask.shape)}"
            )
        check_mask(mask, (len(query), self.n_heads, T, S))


@contextmanager
def record_attention(model: nn.Module) -> Iterator[dict[str, Float[Tensor, "B h T S"]]]:
    """While it lasts, keeps the weights of every attention module of ``model``; chapter 12.

    ``with record_attention(model) as maps``: the name of each module, as ``model.named_modules()``
    gives it, → its weights at its latest call, detached; in cached decoding that is one row, of
    the newest token. Raises ValueError if there is no such module.
    """
    modules = {n: m for n, m in model.named_modules() if isinstance(m, MultiHeadAttention)}
    if not modules:
        raise ValueError(f"model must hold a MultiHeadAttention, got {type(model).__name__}")
    maps: dict[str, Tensor] = {}
    before = {module: module.record for module in modules.values()}
    for name, module in modules.items():
        module.record = partial(_keep, maps, name)
    try:
        yield maps
    finally:
        for module, record in before.items():
            module.record = record


def _keep(maps: dict[str, Tensor], name: str, weights: Tensor) -> None:
    maps[name] = weights
