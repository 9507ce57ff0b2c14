"""Slow, plain answers that the package is held against."""

import copy
import math

import torch
from torch import Tensor, nn

from transformer.layers import LayerNorm
from transformer.model import Decoder, DecoderLayer, Encoder, EncoderLayer, Transformer
from transformer.multihead import MultiHeadAttention


def attention_by_loops(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    bias: Tensor | None = None,
) -> Tensor:
    """Equation 3.3 one number at a time, in float64; a query without keys gets zeros.

    ``bias`` is added to the scores.
    """
    *batch, T, d_k = q.shape
    S, d_v = v.shape[-2:]
    allowed = (
        torch.ones(*batch, T, S, dtype=torch.bool) if mask is None else mask.expand(*batch, T, S)
    )
    added = torch.zeros(T, S) if bias is None else bias
    out = torch.zeros(math.prod(batch), T, d_v, dtype=torch.float64)
    flat = [t.reshape(-1, *t.shape[-2:]).double() for t in (q, k, v)]
    flat += [t.expand(*batch, T, S).reshape(-1, T, S) for t in (allowed, added.double())]
    for b, (q_b, k_b, v_b, may, add) in enumerate(zip(*flat, strict=True)):
        for t in range(T):
            keys = [s for s in range(S) if may[t, s]]
            scores = [
                sum((q_b[t] * k_b[s]).tolist()) / math.sqrt(d_k) + add[t, s].item() for s in keys
            ]
            largest = max(scores, default=0.0)
            total = sum(math.exp(score - largest) for score in scores)
            for s, score in zip(keys, scores, strict=True):
                out[b, t] += math.exp(score - largest) / total * v_b[s]
    return out.reshape(*batch, T, d_v)


def torch_attention(ours: MultiHeadAttention) -> nn.MultiheadAttention:
    """PyTorch's module with the weights of ours."""
    bias = ours.W_q.bias is not None
    theirs = nn.MultiheadAttention(ours.d_model, ours.n_heads, bias=bias, batch_first=True)
    three = (ours.W_q, ours.W_k, ours.W_v)
    weights = {"in_proj_weight": torch.cat([m.weight for m in three])}
    weights["out_proj.weight"] = ours.W_o.weight
    if bias:
        weights["in_proj_bias"] = torch.cat([m.bias for m in three])
        weights["out_proj.bias"] = ours.W_o.bias
    theirs.to(ours.W_q.weight.dtype).load_state_dict(weights)
    return theirs


def torch_layer(ours: EncoderLayer | DecoderLayer) -> nn.Module:
    """PyTorch's encoder or decoder layer with the weights of ours, without dropout."""
    attention, feed_forward = ours.self_attention, ours.feed_forward
    decoder = isinstance(ours, DecoderLayer)
    kind = nn.TransformerDecoderLayer if decoder else nn.TransformerEncoderLayer
    theirs = kind(
        attention.d_model,
        attention.n_heads,
        feed_forward.W_1.out_features,
        dropout=0.0,
        batch_first=True,
        norm_first=ours.residual_1.pre,
    ).to(attention.W_q.weight.dtype)
    parts = {"self_attn": torch_attention(attention)}
    if decoder:
        parts["multihead_attn"] = torch_attention(ours.cross_attention)
        parts["norm3"] = ours.residual_3.norm
    parts |= {"linear1": feed_forward.W_1, "linear2": feed_forward.W_2}
    parts |= {"norm1": ours.residual_1.norm, "norm2": ours.residual_2.norm}
    weights = {f"{name}.{k}": v for name, m in parts.items() for k, v in m.state_dict().items()}
    theirs.load_state_dict(weights)
    return theirs


def torch_stack(ours: Encoder | Decoder) -> nn.Module:
    """PyTorch's encoder or decoder with the weights of ours."""
    decoder = isinstance(ours, Decoder)
    layers = [torch_layer(layer) for layer in ours.layers]
    norm = None
    if isinstance(ours.norm, LayerNorm):
        norm = nn.LayerNorm(len(ours.norm.weight)).to(ours.norm.weight.dtype)
        norm.load_state_dict(ours.norm.state_dict())
    if decoder:
        stack = nn.TransformerDecoder(layers[0], len(layers), norm)
    else:
        stack = nn.TransformerEncoder(layers[0], len(layers), norm, enable_nested_tensor=False)
    stack.layers = nn.ModuleList(layers)
    return stack


class TorchTransformer(nn.Module):
    """torch.nn.Transformer between an embedding and an output layer, with the weights of ours."""

    def __init__(self, ours: Transformer):
        super().__init__()
        c = ours.config
        self.embed, self.pad_id = [ours.src_embedding, ours.tgt_embedding], c.pad_id
        self.transformer = nn.Transformer(c.d_model, c.n_heads, 1, 1, 1, batch_first=True)
        self.transformer.encoder = torch_stack(ours.encoder)  # here: __init__ would reset weights
        self.transformer.decoder = torch_stack(ours.decoder)
        self.output = ours.output

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        vectors = []
        for tokens, embed in zip((src, tgt), self.embed, strict=True):
            table = embed.tokens.weight
            x = torch.stack([table[row] for row in tokens]) * math.sqrt(table.size(1))
            vectors.append(x + position_by_loops(*x.shape[1:]).float().to(x))
        T = tgt.size(1)
        future = torch.ones(T, T, dtype=torch.bool).triu(1)  # PyTorch's True = may not attend
        out = self.transformer(
            *vectors,
            tgt_mask=future,
            src_key_padding_mask=src == self.pad_id,
            tgt_key_padding_mask=tgt == self.pad_id,
            memory_key_padding_mask=src == self.pad_id,
        )
        return out @ self.output.weight.T


def position_by_loops(length: int, d_model: int) -> Tensor:
    """Vaswani et al. (2017), section 3.5, one number at a time."""
    table = torch.empty(length, d_model, dtype=torch.float64)
    for pos in range(length):
        for column in range(d_model):
            angle = pos / 10_000 ** (2 * (column // 2) / d_model)
            table[pos, column] = math.cos(angle) if column % 2 else math.sin(angle)
    return table


def gradients(module: nn.Module, loss: Tensor) -> dict[str, Tensor]:
    """d loss / d each parameter, by name."""
    named = dict(module.named_parameters())
    return dict(zip(named, torch.autograd.grad(loss, named.values()), strict=True))


def torch_gradients(ours: Transformer, grads: dict[str, Tensor]) -> dict[str, Tensor]:
    """The gradients of our parameters under the names and in the shapes of PyTorch's modules."""
    carrier = copy.deepcopy(ours)
    with torch.no_grad():
        for name, p in carrier.named_parameters():
            p.copy_(grads[name])
    return dict(TorchTransformer(carrier).named_parameters())
