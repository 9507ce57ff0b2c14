"""Slow, plain answers that the package is held against."""

import math

import torch
from torch import Tensor


def attention_by_loops(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """Equation 3.3 one number at a time, in float64; a query without keys gets zeros."""
    *batch, T, d_k = q.shape
    S, d_v = v.shape[-2:]
    allowed = (
        torch.ones(*batch, T, S, dtype=torch.bool) if mask is None else mask.expand(*batch, T, S)
    )
    out = torch.zeros(math.prod(batch), T, d_v, dtype=torch.float64)
    flat = [t.reshape(-1, *t.shape[-2:]).double() for t in (q, k, v)]
    for b, (q_b, k_b, v_b, may) in enumerate(zip(*flat, allowed.reshape(-1, T, S), strict=True)):
        for t in range(T):
            keys = [s for s in range(S) if may[t, s]]
            scores = [sum((q_b[t] * k_b[s]).tolist()) / math.sqrt(d_k) for s in keys]
            largest = max(scores, default=0.0)
            total = sum(math.exp(score - largest) for score in scores)
            for s, score in zip(keys, scores, strict=True):
                out[b, t] += math.exp(score - largest) / total * v_b[s]
    return out.reshape(*batch, T, d_v)
