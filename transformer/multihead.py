"""Multi-head attention, and a way to watch it (chapters 5 and 12).

The steps of :meth:`MultiHeadAttention.forward`, with the shapes that they go through::

    query, key, value   (B, T, d_model), (B, S, d_model), (B, S, d_model)
      W_q, W_k, W_v     three matrices, one for each role
      split             d_model columns become h heads of d_k:  (B, h, T, d_k), (B, h, S, d_k)
      positions.turn    rotary positions turn queries and keys; others leave them as they are
      cache             in decoding, the keys and values of earlier steps are put before the new
      attend            softmax(q kᵀ / √d_k) v, every head by itself:  (B, h, T, d_k)
      merge             the heads lie side by side again:  (B, T, d_model)
      W_o               mixes them
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from jaxtyping import Bool, Float
from torch import Tensor, nn

from transformer.attention import attention_weights, masked_softmax
from transformer.cache import AttentionCache, MemoryCache
from transformer.checks import check_heads, check_mask, check_positive, shape_text
from transformer.fused import fused_heads
from transformer.positional import Positions, Turned

Queries = Float[Tensor, "B h T d_k"]
Keys = Float[Tensor, "B n_key_heads S d_k"]  # and values: d_v = d_k


class MultiHeadAttention(nn.Module):
    """Concat(head_1, …, head_h) W^O, where head_i = attention(Q W_i^Q, K W_i^K, V W_i^V).

    Vaswani et al. (2017), section 3.2.2; chapter 5. W_q holds the W_i^Q of all heads side by side,
    d_k = d_v columns each, d_model / n_heads unless ``d_k`` says otherwise; W_k and W_v likewise.
    ``positions`` may turn queries and keys, and bias their scores (chapter 6).

    With ``n_key_heads`` there are fewer heads of keys and values, which groups of heads share:
    Ainslie et al. (2023), section 2.2; chapter 15. Query head i reads the keys of head
    i // (n_heads / n_key_heads), and a cache keeps n_key_heads · d_k numbers of a token.

    Raises ValueError if ``n_heads`` does not divide ``d_model``, or ``n_key_heads`` ``n_heads``.
    """

    takes_cache = True  # what decoding asks of every attention; see transformer.cache

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        n_key_heads: int | None = None,
        d_k: int | None = None,
        bias: bool = True,
        positions: Positions | None = None,
    ):
        super().__init__()
        check_heads(d_model, n_heads, n_key_heads)
        d_k = d_model // n_heads if d_k is None else d_k
        check_positive(d_k=d_k)
        self.d_model, self.n_heads, self.d_k = d_model, n_heads, d_k
        self.n_key_heads = n_heads if n_key_heads is None else n_key_heads
        d_queries, d_keys = n_heads * d_k, self.n_key_heads * d_k  # most often both are d_model
        self.W_q = nn.Linear(d_model, d_queries, bias=bias)
        self.W_k = nn.Linear(d_model, d_keys, bias=bias)
        self.W_v = nn.Linear(d_model, d_keys, bias=bias)
        self.W_o = nn.Linear(d_queries, d_model, bias=bias)
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
        # where the first of the new positions stands, or that of each row
        start = 0 if cache is None else cache.length
        q = self.queries(query, start)
        if isinstance(cache, MemoryCache) and cache.kept is not None:
            k, v = cache.kept  # a memory never changes: its keys and values are made once
        else:
            k, v = self.project(key, value, start)
            if cache is not None:
                k, v = cache.update(k, v)  # from now on those of all positions so far
        # Some kinds of positions add a number to each score instead of turning q and k (ALiBi).
        bias = self.positions.bias(q.size(2), k.size(2))
        return self.W_o(self.merge(self.attend(q, k, v, mask, bias)))

    def queries(self, query: Float[Tensor, "B T d_model"], start: Turned = 0) -> Queries:
        """The queries of all heads; the first stands at position ``start``."""
        # one product with W_q makes the queries of all heads; then the heads are cut apart
        return self.positions.turn(self.split(self.W_q(query)), start)

    def project(
        self,
        key: Float[Tensor, "B S d_model"],
        value: Float[Tensor, "B S d_model"],
        start: Turned = 0,
    ) -> tuple[Keys, Keys]:
        """The keys and values of all heads; the first stands at position ``start``."""
        # Only keys are turned: positions decide where to look, not what is found there.
        k, v = self.split(self.W_k(key)), self.split(self.W_v(value))
        return self.positions.turn(k, start), v

    def attend(
        self, q: Queries, k: Keys, v: Keys, mask: Tensor | None, bias: Tensor | None = None
    ) -> Queries:
        """Every head at once: the fused kernel, or the reference where weights are wanted."""
        if self.record is None:
            return fused_heads(q, k, v, mask, bias)
        # Somebody watches. The fused kernel never stores the (T, S) weights, so that they are
        # computed here in the plain way, which gives the same result more slowly.
        if self.n_key_heads < self.n_heads:
            # each head of keys and values once for every head of queries in its group
            group = self.n_heads // self.n_key_heads
            k, v = (x.repeat_interleave(group, dim=1) for x in (k, v))  # (B, h, S, d_k)
        if bias is None:
            weights = attention_weights(q, k, mask)
        else:
            scores = (q / math.sqrt(self.d_k)) @ k.mT + bias.to(q.dtype)
            weights = masked_softmax(scores, mask)
        self.record(weights.detach())
        return weights @ v

    def split(self, x: Float[Tensor, "B T columns"]) -> Float[Tensor, "B heads T d_k"]:
        """Cuts the last axis into heads; positions stay whole (chapter 5 shows the wrong way)."""
        # (B, T, h · d_k) → (B, T, h, d_k): columns 0 … d_k - 1 are those of the first head. Then
        # the heads change places with the positions, for a head is to see all positions at once.
        return x.unflatten(-1, (-1, self.d_k)).transpose(1, 2)  # (B, h, T, d_k)

    def merge(self, x: Queries) -> Float[Tensor, "B T columns"]:
        """Lays the heads side by side again."""
        return x.transpose(1, 2).flatten(-2)  # (B, T, h · d_k)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"record": None}  # a copy made while this one is watched is not

    def _check(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> None:
        # all three (B, length, d_model), of one batch
        B = query.size(0) if query.dim() == 3 else "B"
        for name, x in {"query": query, "key": key, "value": value}.items():
            if x.dim() != 3 or x.size(-1) != self.d_model or x.size(0) != B:
                wanted = f"(B, length, d_model) = ({B}, length, {self.d_model})"
                raise ValueError(f"{name} must have shape {wanted}, got {shape_text(x.shape)}")
        # a value for each key
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
        check_mask(mask, (query.size(0), self.n_heads, T, S))


@contextmanager
def record_attention(model: nn.Module) -> Iterator[dict[str, Float[Tensor, "B h T S"]]]:
    """While it lasts, keeps the weights of every attention module of ``model``; chapter 12.

    ``with record_attention(model) as maps``: the name of each module, as ``model.named_modules()``
    gives it, → its weights at its latest call, detached; in cached decoding that is one row, of
    the newest token. Where the beams of a search share a memory, the maps of the attention to it
    have a batch of sources and a row for each beam. Raises ValueError if there is no such module.
    """
    modules = {n: m for n, m in model.named_modules() if isinstance(m, MultiHeadAttention)}
    if not modules:
        raise ValueError(f"model must hold a MultiHeadAttention, got {type(model).__name__}")
    maps: dict[str, Tensor] = {}
    # Each module is given a function to call with its weights. Those that it had before come back
    # in the end, whatever happens: one recording may stand within another.
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
