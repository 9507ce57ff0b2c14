"""Attention, readable: the reference that the fused kernels are held against (chapters 3, 4)."""

import math

from jaxtyping import Bool, Float
from torch import Tensor

from transformer.checks import check_queries_and_keys, check_values


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
    check_queries_and_keys(q, k, mask)
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
    check_values(k, v)
    return weights @ v
