"""Chapter 8: the checks of its turns and exercises, with the mistakes that people make."""

import math

import torch
from torch import nn

from transformer.config import TransformerConfig
from transformer.layers import FeedForward, LayerNorm
from transformer.masks import causal_mask
from transformer.model import DecoderLayer, Transformer
from transformer.multihead import MultiHeadAttention
from transformer_book.turns import drawn
from transformer_book.your_turn import Question, YourTurn


class _SmallLayer(nn.Module):
    """The page's MyDecoderLayer at a width of 4, with three norms that can be told apart."""

    def __init__(self, seed):
        torch.manual_seed(seed)
        super().__init__()
        self.self_attention = MultiHeadAttention(4, 2)
        self.cross_attention = MultiHeadAttention(4, 2)
        self.feed_forward = FeedForward(4, 7)
        self.norm_1, self.norm_2, self.norm_3 = (LayerNorm(4) for _ in range(3))
        for i, norm in enumerate((self.norm_1, self.norm_2, self.norm_3)):
            for own in norm.parameters():  # else one norm could stand for another
                own.data += i * torch.arange(4.0)

    def __repr__(self):
        return "a decoder layer of width 4"


def _their_name(name):  # norm_1.weight is residual_1.norm.weight in the package
    is_norm = "norm" in name
    return name.replace("norm_", "residual_").replace(".", ".norm.", 1) if is_norm else name


def _layer_by_package(layer, y, memory, tgt_mask, src_mask):
    config = TransformerConfig(9, 9, d_model=4, n_heads=2, d_ff=7, dropout=0.0)
    theirs = DecoderLayer(config)
    theirs.load_state_dict({_their_name(n): w for n, w in layer.state_dict().items()})
    return theirs(y, memory, tgt_mask, src_mask)


def _wrong_layer(order="post", asks="y", reads="memory", masks="right"):
    def run(layer, y, memory, tgt_mask, src_mask):
        if masks == "none":
            tgt_mask = None
        first = layer.self_attention(y, y, y, tgt_mask)
        z = layer.norm_1(first if order == "no sum" else y + first)
        who = y if asks == "old" else z
        source = memory if reads == "memory" else z
        key_mask = src_mask if reads == "memory" else tgt_mask
        key_mask = None if masks == "no src" else key_mask
        z = layer.norm_2(z + layer.cross_attention(who, source, source, key_mask))
        return layer.norm_3(z + layer.feed_forward(z))

    return run


def _normed_first(layer, y, memory, tgt_mask, src_mask):
    z = layer.norm_1(y)
    y = y + layer.self_attention(z, z, z, tgt_mask)
    y = y + layer.cross_attention(layer.norm_2(y), memory, memory, src_mask)
    return y + layer.feed_forward(layer.norm_3(y))


def _layer_example(B, T, S):
    y, memory = drawn(T, (B, T, 4), (B, S, 4))
    words = torch.ones(B, 1, 1, T, dtype=torch.bool)
    words[1:, ..., -1] = False  # the second target ends with padding
    src_mask = (torch.arange(S) < S - 1).expand(B, 1, 1, S)  # the last one is padding
    return _SmallLayer(T), y, memory, words & causal_mask(T), src_mask


_misread = "cross-attention's queries come from after the first Add & Norm"
check_layer = YourTurn(
    "Your turn 8.1",
    _layer_by_package,
    [_layer_example(1, 2, 3), _layer_example(2, 3, 5)],
    mistakes={
        "the first attention needs tgt_mask": _wrong_layer(masks="none"),
        _misread: _wrong_layer(asks="old"),
        "cross-attention's keys and values come from the memory": _wrong_layer(reads="itself"),
        "the first sum is missing: y + …": _wrong_layer(order="no sum"),
        "cross-attention needs src_mask": _wrong_layer(masks="no src"),
        "here the norm comes after the sum (post-LN)": _normed_first,
    },
)


def _count_by_package(V, d, d_ff, N):
    sizes = {"d_model": d, "d_ff": d_ff, "n_encoder_layers": N, "n_decoder_layers": N}
    with torch.device("meta"):
        model = Transformer(TransformerConfig(V, V, **sizes, n_heads=2))
    return sum(parameter.numel() for parameter in model.parameters())


def _count_wrong(n_norms=5, n_attentions=3, n_tables=1):
    def count(V, d, d_ff, N):
        A, F = 4 * (d * d + d), 2 * d * d_ff + d_ff + d
        return n_tables * V * d + N * (n_attentions * A + 2 * F + n_norms * 2 * d)

    return count


check_count = YourTurn(
    "Your turn 8.2",
    _count_by_package,
    [(5, 2, 3, 1), (9, 4, 7, 2), (37_000, 512, 2048, 6)],
    mistakes={
        "a decoder layer has two attentions": _count_wrong(n_attentions=2),
        "there is a LayerNorm after each sublayer: 2 and 3 a layer": _count_wrong(n_norms=4),
        "the LayerNorms are missing": _count_wrong(n_norms=0),
        "the shared table is one tensor": _count_wrong(n_tables=3),
    },
)

check_8_1 = Question(
    "Exercise 8.1",
    214.2,
    mistakes={213: "the paper says 213; what does Equation 8.5 say?", 218.3: "37,000 tokens"},
    within=0.0005,
)
check_8_2 = Question(
    "Exercise 8.2",
    6,
    mistakes={2.4: "0.17 is after the factor √512", 22.6: "the table itself is 6 times too small"},
    within=0.05,
)


def _by_differences(f, y):
    found = torch.zeros(len(y), len(y), dtype=torch.bool)
    for s in range(len(y)):
        changed = y.clone()
        changed[s] += 0.5
        found[:, s] = (f(changed) - f(y)).abs().amax(dim=-1) > 1e-6
    return found


_rows_to_rows = (
    lambda y: y.cumsum(dim=0),
    lambda y: y.flip(0)[:, 1:],
    lambda y: y + y[:1] * y,
)
check_8_3 = YourTurn(
    "Exercise 8.3",
    _by_differences,
    [(f, 1 + torch.arange(2.0 * n).view(n, 2)) for n, f in enumerate(_rows_to_rows, 2)],
    mistakes={
        "a row for each output, a column for each input": lambda f, y: _by_differences(f, y).T
    },
)
check_8_4 = Question(
    "Exercise 8.4",
    0,
    mistakes={
        4: "count again with the last LayerNorm of pre-LN, chapter 7",
        2: "a weight and a bias",
    },
)
check_8_5 = Question(
    "Exercise 8.5",
    math.log(316) + 1 / 2,
    mistakes={math.log(316): "this is without σ", math.log(316) + 1: "half of σ²"},
    within=0.002,
)
