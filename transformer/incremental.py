"""The decoder one token at a time, without what a single step does not need (chapter 10).

The layers of chapter 8 could take a single step too, through forty calls of modules; on short
sentences those calls cost more than the arithmetic. Here the same sums stand in a row.
"""

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from transformer.attention import fused_kernel
from transformer.layers import Dropout, FeedForward, LayerNorm, Residual
from transformer.multihead import KeyValueCache, MultiHeadAttention
from transformer.positional import RotaryPositions

Affine = tuple[Tensor, Tensor | None]  # the weight and the bias of a linear layer
Norm = tuple[Tensor, Tensor, float]  # γ, β, eps
Vectors = Float[Tensor, "B d_model"]  # one position of each sentence


_PARTS = (nn.ModuleList, nn.Linear, nn.Dropout, Dropout, LayerNorm)
_PARTS += (FeedForward, MultiHeadAttention, Residual, RotaryPositions)


class _Weights(NamedTuple):
    """Those of a decoder layer, in the order in which a step needs them."""

    qkv: Affine  # the three projections of the self-attention, as one product
    self_out: Affine
    cross_q: Affine
    cross_out: Affine
    hidden: Affine
    out: Affine
    norm_1: Norm
    norm_2: Norm
    norm_3: Norm


class DecodingState:
    """What a decoder keeps between steps: of each layer the past, and the memory, projected.

    Chapter 10. A step computes what ``Decoder.forward`` does for the last position: the earlier
    ones cannot have changed, since none of them sees it. For the same reason it masks nothing but
    the padding of the source. It has no gradients.

    Raises ValueError for a decoder with a part, or a hook, that is not this package's: a step,
    which reads the weights alone, would miss what that does.
    """

    def __init__(
        self,
        decoder: nn.Module,
        memory: Float[Tensor, "B S d_model"],
        src_mask: Bool[Tensor, "B 1 1 S"],
        *,
        max_len: int,
    ):
        _check_parts(decoder)
        first = decoder.layers[0].self_attention
        self.heads, self.rotate = (first.n_heads, 1, first.d_k), first.rotate
        self.norm, self.pre = decoder.norm, decoder.layers[0].residual_1.pre
        self.weights = [_weights(layer) for layer in decoder.layers]
        no_key = ~src_mask.any(dim=-1, keepdim=True)  # their values are made zeros
        self.memories, self.pasts = [], []
        for layer in decoder.layers:
            k, v = layer.cross_attention.project(memory, memory)  # (B, h, S, d_k)
            kv = torch.stack([k, v.masked_fill(no_key, 0.0)], dim=1)
            self.memories.append(KeyValueCache(kv, length=kv.size(3)))
            B, two, h, _, d_k = kv.shape
            self.pasts.append(KeyValueCache(kv.new_empty(B, two, h, max_len, d_k)))
        self.bias = torch.zeros_like(src_mask, dtype=kv.dtype)  # added to the scores
        self.bias.masked_fill_(~(src_mask | no_key), -math.inf)

    @property
    def length(self) -> int:
        """The number of positions decoded so far."""
        return self.pasts[0].length

    def select(self, rows: Int[Tensor, " N"]) -> None:
        """Keeps these sentences, in this order; one may be named more than once."""
        self.bias = self.bias[rows]
        for cache in (*self.pasts, *self.memories):
            cache.select(rows)

    def step(self, x: Vectors) -> Vectors:
        """The decoder's output for one more position, whose embedding is ``x``."""
        for w, past, memory in zip(self.weights, self.pasts, self.memories, strict=True):
            if self.pre:
                x = x + self._look_back(_norm(x, w.norm_1), w, past)
                x = x + self._look_across(_norm(x, w.norm_2), w, memory)
                x = x + _feed_forward(_norm(x, w.norm_3), w)
            else:
                x = _norm(x + self._look_back(x, w, past), w.norm_1)
                x = _norm(x + self._look_across(x, w, memory), w.norm_2)
                x = _norm(x + _feed_forward(x, w), w.norm_3)
        return self.norm(x)

    def _look_back(self, x: Tensor, w: _Weights, past: KeyValueCache) -> Tensor:
        qkv = F.linear(x, *w.qkv).view(len(x), 3, *self.heads)  # (B, 3, h, 1, d_k)
        if self.rotate is not None:
            turned = self.rotate(qkv[:, :2].flatten(0, 1), past.length)
            qkv = torch.cat([turned.unflatten(0, (len(x), 2)), qkv[:, 2:]], dim=1)
        past.append(qkv[:, 1:])
        out = fused_kernel(qkv.select(1, 0), *past.held(), None)  # (B, h, 1, d_k)
        return F.linear(out.reshape(x.shape), *w.self_out)

    def _look_across(self, x: Tensor, w: _Weights, memory: KeyValueCache) -> Tensor:
        q = F.linear(x, *w.cross_q).view(len(x), *self.heads)  # (B, h, 1, d_k)
        out = fused_kernel(q, *memory.held(), self.bias)
        return F.linear(out.reshape(x.shape), *w.cross_out)


def _check_parts(decoder: nn.Module) -> None:
    for name, part in decoder.layers.named_modules(prefix="layers"):
        ours = type(part) in _PARTS or type(part).__module__ == "transformer.model"
        if not ours or part._forward_hooks or "forward" in vars(part):
            raise ValueError(
                "decoder must have the package's own parts, without hooks, for cached steps, got "
                f"{type(part).__name__} as {name}; use_cache=False decodes with any"
            )


def _feed_forward(x: Tensor, w: _Weights) -> Tensor:
    return F.linear(F.linear(x, *w.hidden).relu_(), *w.out)


def _norm(x: Tensor, norm: Norm) -> Tensor:
    return torch.layer_norm(x, x.shape[1:], *norm)


def _weights(layer: nn.Module) -> _Weights:
    own, cross, forward = layer.self_attention, layer.cross_attention, layer.feed_forward
    linear = (own.W_o, cross.W_q, cross.W_o, forward.W_1, forward.W_2)
    norms = (layer.residual_1.norm, layer.residual_2.norm, layer.residual_3.norm)
    return _Weights(
        _stacked(own),
        *((m.weight, m.bias) for m in linear),
        *((m.weight, m.bias, m.eps) for m in norms),
    )


def _stacked(attention: MultiHeadAttention) -> Affine:
    three = (attention.W_q, attention.W_k, attention.W_v)
    bias = None if attention.W_q.bias is None else torch.cat([m.bias for m in three])
    return torch.cat([m.weight for m in three]), bias
