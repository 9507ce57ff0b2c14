"""Attention: the readable reference, its fused twin, and other scores (chapters 2 to 4)."""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn


def attention_weights(
    q: Float[Tensor, "*batch T d_k"],
    k: Float[Tensor, "*batch S d_k"],
    mask: Bool[Tensor, "..."] | None = None,
) -> Float[Tensor, "*batch T S"]:
    """softmax(q kᵀ / √d_k): how much each of T queries takes from each of S keys.

    The softmax of Vaswani et al. (2017), Eq. 1; chapter 3. Each row sums to one. ``mask``
    broadcasts to the result, True = may attend; a row without True is all zeros (chapter 4).
    ``q`` and ``k`` are finite, masked or not.

    Raises ValueError where the shapes of ``q``, ``k`` and ``mask`` do not fit.
    """
    _check_queries_and_keys(q, k, mask)
    # q is scaled rather than the product, which in half precision would overflow √d_k times sooner.
    scores = (q / math.sqrt(q.size(-1))) @ k.transpose(-2, -1)  # (*batch, T, S)
    return masked_softmax(scores, mask)


def masked_softmax(
    scores: Float[Tensor, "*batch T S"], mask: Bool[Tensor, "..."] | None = None
) -> Float[Tensor, "*batch T S"]:
    """softmax over the keys that ``mask`` admits; chapter 4. A row without any is all zeros."""
    if mask is None:
        return scores.softmax(dim=-1)
    no_key = ~mask.any(dim=-1, keepdim=True)
    scores = scores.masked_fill(~mask, -math.inf).masked_fill(no_key, 0.0)  # softmax(-∞, …) is NaN
    return scores.softmax(dim=-1).masked_fill(~mask, 0.0)


def attention(
    q: Float[Tensor, "*batch T d_k"],
    k: Float[Tensor, "*batch S d_k"],
    v: Float[Tensor, "*batch S d_v"],
    mask: Bool[Tensor, "..."] | None = None,
) -> Float[Tensor, "*batch T d_v"]:
    """softmax(q kᵀ / √d_k) v: for each of T queries, an average of the S values.

    Vaswani et al. (2017), Eq. 1; chapter 3. ``mask`` broadcasts to the (T, S) weights, True = may
    attend; a query whose keys are all masked gets zeros. All numbers are finite, masked or not.

    Raises ValueError where the shapes of ``q``, ``k``, ``v`` and ``mask`` do not fit.
    """
    weights = attention_weights(q, k, mask)
    _check_values(k, v)
    return weights @ v


def fused_attention(
    q: Float[Tensor, "*batch T d_k"],
    k: Float[Tensor, "*batch S d_k"],
    v: Float[Tensor, "*batch S d_v"],
    mask: Bool[Tensor, "..."] | None = None,
) -> Float[Tensor, "*batch T d_v"]:
    """:func:`attention` by PyTorch's fused kernels, which never store the (T, S) weights.

    Dao et al. (2022); chapter 13. Arguments, result and errors are those of :func:`attention`.
    """
    _check_queries_and_keys(q, k, mask)
    _check_values(k, v)
    if mask is None:
        return fused_kernel(q, k, v, None)
    mask = torch.atleast_2d(mask)  # the kernels want two axes, and the last one in full
    mask = mask.expand(*mask.shape[:-1], k.size(-2))
    no_key = ~mask.any(dim=-1, keepdim=True)
    if not _seen_to_be_empty(no_key):
        q = q.masked_fill(no_key, 0.0)  # whose scores might overflow, and are not used
        return fused_kernel(q, k, v, mask | no_key).masked_fill(no_key, 0.0)
    return fused_kernel(q, k, v, mask)


def _seen_to_be_empty(no_key: Tensor) -> bool:
    """Whether no query is without keys; on a GPU, where to look is to wait, it is left open."""
    return no_key.device.type == "cpu" and not torch.compiler.is_compiling() and not no_key.any()


def fused_kernel(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    """PyTorch's kernel, unchecked: each query has a key; a ``mask`` of numbers is added."""
    if q.device.type == "cpu" and q.itemsize < 4:  # a CPU's kernel is fast in float32 only
        if mask is not None and mask.is_floating_point():
            mask = mask.float()
        with torch.autocast("cpu", enabled=False):
            return fused_kernel(q.float(), k.float(), v.float(), mask).to(q.dtype)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


class DotScore(nn.Module):
    """q · k, Luong et al. (2015), section 3.1, first form; chapter 2. It has no parameters.

    As in the classes below, ``forward(query, project_key(key))`` scores every query against every
    key; ``project_key`` is the part that is the same at each step of a decoder.
    """

    def project_key(self, key: Float[Tensor, "*batch S d"]) -> Float[Tensor, "*batch S d"]:
        return key

    def forward(
        self, query: Float[Tensor, "*batch T d"], projected: Float[Tensor, "*batch S d"]
    ) -> Float[Tensor, "*batch T S"]:
        return query @ projected.transpose(-2, -1)


class GeneralScore(DotScore):
    """q · W k, Luong et al. (2015), section 3.1, second form; chapter 2."""

    def __init__(self, d_query: int, d_key: int):
        super().__init__()
        self.W = nn.Linear(d_key, d_query, bias=False)

    def project_key(self, key: Float[Tensor, "*batch S d_key"]) -> Float[Tensor, "*batch S d"]:
        return self.W(key)


class AdditiveScore(nn.Module):
    """v · tanh(W q + U k), Bahdanau et al. (2015), appendix A.1.2; chapter 2."""

    def __init__(self, d_query: int, d_key: int, *, d_hidden: int):
        super().__init__()
        self.W = nn.Linear(d_query, d_hidden, bias=False)
        self.U = nn.Linear(d_key, d_hidden, bias=False)
        self.v = nn.Linear(d_hidden, 1, bias=False)

    def project_key(self, key: Float[Tensor, "*batch S d_key"]) -> Float[Tensor, "*batch S d"]:
        return self.U(key)

    def forward(
        self, query: Float[Tensor, "*batch T d_query"], projected: Float[Tensor, "*batch S d"]
    ) -> Float[Tensor, "*batch T S"]:
        pairs = self.W(query).unsqueeze(-2) + projected.unsqueeze(-3)  # (*batch, T, S, d_hidden)
        return self.v(pairs.tanh()).squeeze(-1)


def _check_queries_and_keys(q: Tensor, k: Tensor, mask: Tensor | None) -> None:
    _check_numbers(q=q, k=k)
    if q.dim() < 2:
        raise ValueError(f"q must have at least two axes (..., T, d_k), got {_shape(q)}")
    if k.dim() != q.dim() or k.shape[:-2] != q.shape[:-2] or k.size(-1) != q.size(-1):
        wanted = _shape((*q.shape[:-2], "S", q.size(-1)))
        raise ValueError(f"k must have shape {wanted} to fit q {_shape(q)}, got {_shape(k)}")
    if mask is None:
        return
    if mask.dtype != torch.bool:
        raise ValueError(f"mask must be bool with True = may attend, got {mask.dtype}")
    scores = (*q.shape[:-1], k.size(-2))
    if mask.dim() > len(scores) or any(
        m not in (1, s) for m, s in zip(reversed(mask.shape), reversed(scores), strict=False)
    ):
        raise ValueError(
            f"mask must broadcast to (..., T, S) = {_shape(scores)}, got {_shape(mask)}"
        )


def _check_values(k: Tensor, v: Tensor) -> None:
    _check_numbers(v=v)
    if v.shape[:-1] != k.shape[:-1]:
        wanted = _shape((*k.shape[:-1], "d_v"))
        raise ValueError(f"v must have shape {wanted}, one value per key, got {_shape(v)}")


def _check_numbers(**tensors: Tensor) -> None:
    for name, tensor in tensors.items():
        if not tensor.is_floating_point():
            raise ValueError(f"{name} must hold floating-point numbers, got {tensor.dtype}")


def _shape(of: Tensor | tuple) -> str:
    sizes = of.shape if isinstance(of, Tensor) else of
    return f"({', '.join(map(str, sizes))}{',' if len(sizes) == 1 else ''})"
