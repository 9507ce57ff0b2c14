"""Multi-head attention, its key-value cache, and a way to watch it (chapters 5, 10 and 12)."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from transformer.attention import attention_weights, fused_attention
from transformer.checks import check_positive

Queries = Float[Tensor, "B h T d_k"]
Keys = Float[Tensor, "B h S d_k"]  # and values: d_v = d_k


class KeyValueCache:
    """The keys and values of one attention module, kept while a sentence grows; chapter 10.

    Room for ``max_len`` positions is set aside at once, so that a step writes one position and
    copies none.
    """

    def __init__(self, keys: Keys, values: Keys, *, length: int):
        self.keys, self.values = keys, values
        self.length = length

    @classmethod
    def empty(cls, max_len: int, *, like: Keys) -> "KeyValueCache":
        """A cache without positions, of the batch, heads, width, dtype and device of ``like``."""
        B, h, _, d_k = like.shape
        return cls(like.new_empty(B, h, max_len, d_k), like.new_empty(B, h, max_len, d_k), length=0)

    def append(self, k: Keys, v: Keys) -> None:
        """Writes the positions of ``k`` and ``v`` after those held; ValueError past ``max_len``."""
        end = self.length + k.size(2)
        if end > self.keys.size(2):
            raise ValueError(f"the cache holds {self.keys.size(2)} positions, got {end}")
        self.keys[:, :, self.length : end] = k
        self.values[:, :, self.length : end] = v
        self.length = end

    def held(self) -> tuple[Keys, Keys]:
        """The keys and values so far."""
        return self.keys[:, :, : self.length], self.values[:, :, : self.length]

    def select(self, rows: Int[Tensor, " N"]) -> None:
        """Keeps these rows of the batch, in this order; a row may be named more than once."""
        self.keys, self.values = self.keys[rows], self.values[rows]


class MultiHeadAttention(nn.Module):
    """Concat(head_1, …, head_h) W^O, where head_i = attention(Q W_i^Q, K W_i^K, V W_i^V).

    Vaswani et al. (2017), section 3.2.2; chapter 5. W_q holds the W_i^Q of all heads side by side,
    d_k = d_v = d_model / n_heads columns each; W_k and W_v likewise. ``dropout`` falls on the
    attention weights, in training; the paper has none there, and with it the fused kernel is out
    of use. ``rotate(x, start)`` turns queries and keys by their position (chapter 6).

    Raises ValueError if ``n_heads`` does not divide ``d_model``.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        bias: bool = True,
        dropout: float = 0.0,
        rotate: Callable[[Tensor, int], Tensor] | None = None,
    ):
        super().__init__()
        check_positive(d_model=d_model, n_heads=n_heads)
        if d_model % n_heads:
            raise ValueError(f"d_model must be a multiple of n_heads, got {d_model} and {n_heads}")
        self.d_model, self.n_heads, self.d_k = d_model, n_heads, d_model // n_heads
        self.W_q = nn.Linear(d_model, d_model, bias=bias)
        self.W_k = nn.Linear(d_model, d_model, bias=bias)
        self.W_v = nn.Linear(d_model, d_model, bias=bias)
        self.W_o = nn.Linear(d_model, d_model, bias=bias)
        self.dropout = nn.Dropout(dropout)
        self.rotate = rotate
        self.record: Callable[[Tensor], None] | None = None  # set by record_attention

    def forward(
        self,
        query: Float[Tensor, "B T d_model"],
        key: Float[Tensor, "B S d_model"] | None,
        value: Float[Tensor, "B S d_model"] | None,
        mask: Bool[Tensor, "..."] | None = None,
        *,
        cache: KeyValueCache | None = None,
    ) -> Float[Tensor, "B T d_model"]:
        """``mask`` broadcasts to (B, n_heads, T, S), True = may attend.

        With a ``cache``, ``key`` and ``value`` are appended to it and the queries, which stand at
        its end, attend to all that it holds; given None for both, to what it holds already.

        Raises ValueError where shapes do not fit.
        """
        self._check(query, key, value, cache)
        start = 0 if cache is None else cache.length
        q = self.split(self.W_q(query))
        if self.rotate is not None:
            q = self.rotate(q, start)
        if key is not None:
            k, v = self.project(key, value, start=start)
        if cache is not None:
            if key is not None:
                cache.append(k, v)
            k, v = cache.held()
        return self.W_o(self.merge(self.attend(q, k, v, mask)))

    def project(
        self, key: Float[Tensor, "B S d_model"], value: Float[Tensor, "B S d_model"], *, start: int
    ) -> tuple[Keys, Keys]:
        """The keys and values of all heads; the first stands at position ``start``."""
        k, v = self.split(self.W_k(key)), self.split(self.W_v(value))
        return (k if self.rotate is None else self.rotate(k, start)), v

    def attend(self, q: Queries, k: Keys, v: Keys, mask: Tensor | None) -> Queries:
        """Every head at once: the fused kernel, or the reference where weights are wanted."""
        if self.record is None and not (self.training and self.dropout.p):
            return fused_attention(q, k, v, mask)
        weights = attention_weights(q, k, mask)
        if self.record is not None:
            self.record(weights.detach())
        return self.dropout(weights) @ v

    def split(self, x: Float[Tensor, "B T d_model"]) -> Queries:
        """Cuts the last axis into heads; positions stay whole (chapter 5 shows the wrong way)."""
        return x.unflatten(-1, (self.n_heads, self.d_k)).transpose(1, 2)  # (B, h, T, d_k)

    def merge(self, x: Queries) -> Float[Tensor, "B T d_model"]:
        """Lays the heads side by side again."""
        return x.transpose(1, 2).flatten(-2)  # (B, T, d_model)

    def _check(self, query, key, value, cache) -> None:
        if key is None and value is None and cache is not None:
            key = value = query
        for name, x in {"query": query, "key": key, "value": value}.items():
            if x is None:
                raise ValueError(f"{name} must be given, but where a cache holds key and value")
            if x.dim() != 3 or x.size(-1) != self.d_model or x.size(0) != query.size(0):
                wanted = f"(B, length, d_model) = ({len(query)}, length, {self.d_model})"
                raise ValueError(f"{name} must have shape {wanted}, got {tuple(x.shape)}")
        if key.size(1) != value.size(1):
            raise ValueError(
                f"value must be as long as key, {key.size(1)} positions, got {value.size(1)}"
            )


@contextmanager
def record_attention(model: nn.Module) -> Iterator[dict[str, Float[Tensor, "B h T S"]]]:
    """While it lasts, keeps the weights of every attention module of ``model``; chapter 12.

    ``with record_attention(model) as maps``: the name of each module, as ``model.named_modules()``
    gives it, → its weights at its latest call, detached. Raises ValueError if there is no such
    module.
    """
    modules = {n: m for n, m in model.named_modules() if isinstance(m, MultiHeadAttention)}
    if not modules:
        raise ValueError(f"model must hold a MultiHeadAttention, got {type(model).__name__}")
    maps: dict[str, Tensor] = {}
    before = {module: module.record for module in modules.values()}
    for name, module in modules.items():
        module.record = partial(maps.__setitem__, name)
    try:
        yield maps
    finally:
        for module, record in before.items():
            module.record = record
