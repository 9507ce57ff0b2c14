"""Scaled dot-product attention: the readable reference and its fused twin (chapters 3 and 4)."""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor


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
        return F.scaled_dot_product_attention(q, k, v)
    mask = torch.atleast_2d(mask)  # the kernels want two axes, and the last one in full
    mask = mask.expand(*mask.shape[:-1], k.size(-2))
    no_key = ~mask.any(dim=-1, keepdim=True)
    q = q.masked_fill(no_key, 0.0)  # whose scores might overflow, and are not used
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask | no_key)
    return out.masked_fill(no_key, 0.0)


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
