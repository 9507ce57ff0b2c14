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
    """The keys and values of one attention module, from one step of decoding to the next.

    Chapter 10. Room for all positions is set aside at once: a step writes one and copies none.
    """

    def __init__(self, room: Float[Tensor, "B 2 h S d_k"], *, length: int = 0):
        self.room = room  # keys and values, side by side
        self.length = length  # how many positions are held

    def append(self, kv: Float[Tensor, "B 2 h T d_k"]) -> None:
        """Writes the positions of ``kv`` after those held; ValueError past the room."""
        T, S = kv.size(3), self.room.size(3)
        if self.length + T > S:
            raise ValueError(f"the cache has room for {S} positions, got {self.length + T}")
        self.room.narrow(3, self.length, T).copy_(kv)
        self.length += T

    def held(self) -> tuple[Keys, Keys]:
        """The keys and the values so far."""
        return self.room.narrow(3, 0, self.length).unbind(1)

    def select(self, rows: Int[Tensor, " N"]) -> None:
        """Keeps these rows of the batch, in this order; a row may be named more than once."""
        self.room = self.room[rows]


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
        key: Float[Tensor, "B S d_model"],
        value: Float[Tensor, "B S d_model"],
        mask: Bool[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "B T d_model"]:
        """``mask`` is (T, S) or broadcasts to (B, n_heads, T, S); True = may attend.

        Raises ValueError where shapes do not fit.
        """
        self._check(query, key, value, mask)
        q = self.split(self.W_q(query))
        if self.rotate is not None:
            q = self.rotate(q, 0)
        k, v = self.project(key, value)
        return self.W_o(self.merge(self.attend(q, k, v, mask)))

    def project(
        self, key: Float[Tensor, "B S d_model"], value: Float[Tensor, "B S d_model"]
    ) -> tuple[Keys, Keys]:
        """The keys and values of all heads."""
        k, v = self.split(self.W_k(key)), self.split(self.W_v(value))
        return (k if self.rotate is None else self.rotate(k, 0)), v

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

    def __getstate__(self) -> dict:
        return self.__dict__ | {"record": None}  # a copy made while this one is watched is not

    def _check(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> None:
        B = query.size(0) if query.dim() == 3 else "B"
        for name, x in {"query": query, "key": key, "value": value}.items():
            if x.dim() != 3 or x.size(-1) != self.d_model or x.size(0) != B:
                wanted = f"(B, length, d_model) = ({B}, length, {self.d_model})"
                raise ValueError(f"{name} must have shape {wanted}, got {tuple(x.shape)}")
        if mask is not None and mask.dim() not in (2, 4):
            wanted = f"(T, S) or (B, 1 or {self.n_heads}, T, S)"  # of three, which is the first?
            raise ValueError(f"mask must have the axes {wanted}, got shape {tuple(mask.shape)}")
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
