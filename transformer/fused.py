"""PyTorch's fast kernels behind the signatures of this package (chapter 13)."""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from transformer.attention import masked_softmax
from transformer.checks import check_queries_and_keys, check_values, has_values
from transformer.masks import note_of


def fused_attention(
    q: Float[Tensor, "*batch T d_k"],
    k: Float[Tensor, "*batch S d_k"],
    v: Float[Tensor, "*batch S d_v"],
    mask: Bool[Tensor, "..."] | None = None,
) -> Float[Tensor, "*batch T d_v"]:
    """:func:`~transformer.attention.attention` without ever storing the (T, S) weights.

    Dao et al. (2022); chapter 13. Arguments, result and errors are those of the reference. PyTorch
    has first derivatives of its kernels only: for second ones take the reference, or in a model
    ``record_attention``, or ``torch.nn.attention.sdpa_kernel(SDPBackend.MATH)``.
    """
    check_queries_and_keys(q, k, mask)
    check_values(k, v)
    return fused_heads(q, k, v, mask)


def fused_heads(
    q: Float[Tensor, "*batch T d_k"],
    k: Float[Tensor, "*keys S d_k"],
    v: Float[Tensor, "*keys S d_v"],
    mask: Bool[Tensor, "..."] | None = None,
    bias: Float[Tensor, "..."] | None = None,
) -> Float[Tensor, "*batch T d_v"]:
    """:func:`fused_attention`, unchecked, with a ``bias`` that is added to the scaled scores.

    Of four axes (B, heads, length, d_k), the heads of k and v may be fewer, for groups of heads of
    q. What is noted on the mask (:mod:`transformer.masks`) is believed.
    """
    if q.device.type == "mps":  # whose kernels gave wrong numbers: pytorch#174861, pytorch#195910
        k, v = _repeated(q, k, v)
        scores = (q / math.sqrt(q.size(-1))) @ k.mT
        scores = scores if bias is None else scores + bias.to(q.dtype)
        return masked_softmax(scores, mask) @ v
    note = None if mask is None else note_of(mask)
    if mask is None or note == "full":
        return _kernel(q, k, v, bias)
    if note == "causal" and bias is None and q.size(-2) == k.size(-2):
        return _kernel(q, k, v, is_causal=True)
    mask = torch.atleast_2d(mask)  # the kernels want two axes, and the last one in full
    mask = mask.expand(*mask.shape[:-1], k.size(-2))
    if note is not None:
        return _kernel(q, k, v, _added(mask, bias))
    no_key = ~mask.any(dim=-1, keepdim=True)
    if _seen_to_be_empty(no_key):
        return _kernel(q, k, v, _added(mask, bias))
    q = q.masked_fill(no_key, 0.0)  # whose scores might overflow, and are not used
    return _kernel(q, k, v, _added(mask | no_key, bias)).masked_fill(no_key, 0.0)


def _seen_to_be_empty(no_key: Tensor) -> bool:
    """Whether no query is without keys; on a GPU, where to look is to wait, it is left open."""
    return no_key.device.type == "cpu" and has_values(no_key) and not no_key.any()


def _added(mask: Tensor, bias: Tensor | None) -> Tensor:
    """One mask of both, as the kernels take it: booleans, or numbers to add."""
    return mask if bias is None else torch.where(mask, bias, -math.inf)


def _kernel(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, *, is_causal: bool = False
) -> Tensor:
    if q.device.type == "cpu" and q.itemsize < 4:  # a CPU's kernel is fast in float32 only
        with torch.autocast("cpu", enabled=False):
            q, k, v, dtype = q.float(), k.float(), v.float(), q.dtype
            return _kernel(q, k, v, mask, is_causal=is_causal).to(dtype)
    if mask is not None and mask.is_floating_point():
        mask = mask.to(q.dtype)
    if mask is not None:  # no fast kernel takes a mask and groups of heads
        if q.dim() == 4 and q.size(2) == 1 and (mask.dim() == 2 or mask.size(-3) == 1):
            # in a step the queries of a group are so many queries of its one head of keys
            rows = q.reshape(q.size(0), k.size(1), q.size(1) // k.size(1), q.size(3))
            return F.scaled_dot_product_attention(rows, k, v, mask).reshape(*q.shape[:3], v.size(3))
        k, v = _repeated(q, k, v)
    grouped = q.dim() == 4 and k.size(1) < q.size(1)
    return F.scaled_dot_product_attention(
        q, k, v, attn_mask=mask, is_causal=is_causal, enable_gqa=grouped
    )


def _repeated(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Keys and values for each head of ``q``."""
    if q.dim() != 4 or k.size(1) == q.size(1):
        return k, v
    n = q.size(1) // k.size(1)
    return k.repeat_interleave(n, dim=1), v.repeat_interleave(n, dim=1)


def fused_dropout(x: Float[Tensor, "*shape"], p: float) -> Float[Tensor, "*shape"]:
    """``x`` with numbers that are zero with probability ``p``, or divided by 1 - p; chapter 7.

    On a CPU it draws 16 random bits for each number, four numbers at a time, which takes half as
    long as ``F.dropout`` and makes ``p`` exact to 1/65536; elsewhere, when compiled and under
    ``vmap``, it is ``F.dropout``.
    """
    if x.device.type != "cpu" or not has_values(x):
        return F.dropout(x, p)
    words = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(-(2**63), None)
    bits = words.view(torch.int16)[: x.numel()].view(x.shape)  # uniform from -2¹⁵ to 2¹⁵ - 1
    dropped = min(round(p * 2**16), 2**16 - 1)  # of the 2¹⁶ values, the lowest
    keep = torch.empty_like(x)  # 1 or 0; a comparison that made booleans would cost five times
    torch.ge(bits, dropped - 2**15, out=keep)
    return x * keep.div_(1 - dropped / 2**16)
