"""The reader's weights in the book's own parts, by the names of the table in the exam's page.

Where a class has other names, its method ``book_names`` says which of its own is which: it returns
a dictionary, the book's name -> a layer, a tensor, or a pair of tensors (weight, bias), the weight
of a linear layer as ``nn.Linear`` has it, (out, in).
"""

from collections.abc import Iterator
from itertools import combinations, product
from typing import Any, get_args

import torch
from torch import Tensor, nn

from transformer.config import TransformerConfig
from transformer.layers import LayerNorm, NormOrder
from transformer.model import Decoder, DecoderLayer, EncoderLayer, Transformer
from transformer.multihead import MultiHeadAttention
from transformer_book.exam.report import NotThereYet, Wrong

SIZES = {"d_model": 8, "n_heads": 2, "d_ff": 12}
N_LAYERS, N_SRC, N_TGT = 2, 9, 7
HEADS = ("W_q", "W_k", "W_v", "W_o")
NAMES = {*HEADS, "self_attention", "cross_attention", "feed_forward", "W_1", "W_2"}
NAMES |= {"norm_1", "norm_2", "norm_3", "src_embedding", "tgt_embedding", "rows", "output"}
NAMES |= {"encoder", "decoder", "encoder_norm", "decoder_norm", "weight", "bias"}
BookLayer = EncoderLayer | DecoderLayer


def unnamed(name: str, module: nn.Module) -> NotThereYet:
    """The message for a weight that is not where the table says: which, and in what."""
    return NotThereYet(
        f"right in all that shows from outside. To compare the numbers with the book's, the "
        f"exam looks for {name} in your {type(module).__name__}. Call it so, or say in "
        "book_names which of yours it is, in that class or the one that it is a part of (the "
        "exam's page shows how)"
    )


def renamed(module: Any) -> dict[str, Any]:
    """What ``book_names`` of the reader's module says."""
    names = module.book_names() if hasattr(module, "book_names") else {}
    for name in names:
        if name not in NAMES:
            what = f"book_names of your {type(module).__name__}"
            raise Wrong(f"{what} names {name!r}, which is not in the table of the exam's page")
    return names


def has_part(module: nn.Module, name: str) -> bool:
    return name in renamed(module) or getattr(module, name, None) is not None


def part_of(module: nn.Module, name: str) -> Any:
    """What is called ``name`` in the reader's module. Raises NotThereYet where nothing is."""
    if not has_part(module, name):
        raise unnamed(name, module)
    names = renamed(module)
    return names[name] if name in names else getattr(module, name)


def copy_weights(book: Any, module: nn.Module, name: str) -> None:
    """Into ``book`` goes what ``name`` says of the module's; no bias is one of zeros.

    Which way round a matrix is used that is no ``nn.Linear``, only ``book_names`` can tell, the
    module's or its own.
    """
    thing, is_linear = part_of(module, name), isinstance(book, nn.Linear)
    kind = nn.Linear if is_linear else nn.Module
    if name not in renamed(module) and not isinstance(thing, kind) and not renamed(thing):
        raise unnamed(f"an nn.Linear called {name}" if is_linear else name, module)
    match thing:
        case (weight, bias):
            pass
        case Tensor():
            weight, bias = thing, None
        case _:
            weight = part_of(thing, "weight")
            bias = part_of(thing, "bias") if has_part(thing, "bias") else None
    bias = weight.new_zeros(len(weight)) if bias is None else bias
    _copy(book.weight, weight, f"{name}.weight")
    _copy(book.bias, bias, f"{name}.bias")


@torch.no_grad()
def _copy(into: Tensor, weight: Tensor, name: str) -> None:
    if weight.shape != into.shape:
        raise Wrong(f"{name} has the shape {tuple(weight.shape)}; {tuple(into.shape)} is wanted")
    into.copy_(weight)


def _fill_heads(book: MultiHeadAttention, heads: nn.Module) -> None:
    for name in HEADS:
        copy_weights(getattr(book, name), heads, name)


def _fill_layer(book: BookLayer, layer: nn.Module) -> None:
    """Raises Wrong where two parts of the layer are one and the same."""
    attentions = ("self_attention", "cross_attention")[: 1 + isinstance(book, DecoderLayer)]
    norms = ("norm_1", "norm_2", "norm_3")[: 1 + len(attentions)]
    for name in attentions:
        _fill_heads(getattr(book, name), part_of(layer, name))
    feed_forward = part_of(layer, "feed_forward") if has_part(layer, "feed_forward") else layer
    for name in ("W_1", "W_2"):
        copy_weights(getattr(book.feed_forward, name), feed_forward, name)
    for name in norms:
        copy_weights(getattr(book, name.replace("norm", "residual")).norm, layer, name)
    for names, look in (
        (attentions, "Self-attention and the look at the memory need weights of their own (section "
         "8.3)"),
        (norms, "Each sub-layer has its own, with a gain and a bias (section 7.4)"),
    ):  # fmt: skip
        for one, other in combinations(names, 2):
            if part_of(layer, one) is part_of(layer, other):
                raise Wrong(f"{one} and {other} are one and the same", look)


def _fill_model(book: Transformer, model: nn.Module) -> None:
    """Where the reader has no last norm, there is none."""
    for name in ("src_embedding", "tgt_embedding"):
        table = part_of(model, name)
        if isinstance(table, nn.Module) and not isinstance(table, nn.Embedding):
            table = part_of(table, "rows")
        weight = table if isinstance(table, Tensor) else table.weight
        _copy(getattr(book, name).tokens.weight, weight, f"{name}.rows.weight")
    inside, n_named = set[int](), 0  # weights in layers, and vectors of last norms
    for name in ("encoder", "decoder"):
        layers, stack = part_of(model, name), getattr(book, name)
        if not isinstance(layers, nn.ModuleList | nn.Sequential | list | tuple):
            raise unnamed(f"a list of layers called {name}", model)
        if len(layers) != N_LAYERS:
            raise Wrong(f"{name} holds {len(layers)} layers, and n_layers is {N_LAYERS}")
        for book_layer, layer in zip(stack.layers, layers, strict=True):
            _fill_layer(book_layer, layer)
        inside |= {id(p) for layer in layers for p in layer.parameters()}
        stack.norm = nn.Identity()
        if has_part(model, f"{name}_norm"):
            stack.norm = LayerNorm(SIZES["d_model"])
            copy_weights(stack.norm, model, f"{name}_norm")
            n_named += 2
    outside = [p for p in model.parameters() if id(p) not in inside]
    if sum(p.shape == (SIZES["d_model"],) for p in outside) > n_named:
        raise unnamed("the last norms, encoder_norm and decoder_norm,", model)
    book.output = nn.Linear(SIZES["d_model"], N_TGT)
    copy_weights(book.output, model, "output")


def book_heads(heads: nn.Module, d_model: int, n_heads: int) -> MultiHeadAttention:
    """The package's heads with the reader's weights.

    Raises NotThereYet where a weight has another name, as those below do.
    """
    book = MultiHeadAttention(d_model, n_heads)
    _fill_heads(book, heads)
    return book.eval()


def book_layers(layer: nn.Module, kind: type[BookLayer]) -> Iterator[BookLayer]:
    """The package's layers, post-LN and pre-LN, with the weights of the reader's."""
    for order in get_args(NormOrder):
        book = kind(_config(order))
        _fill_layer(book, layer)
        yield book.eval()


def book_models(model: nn.Module) -> Iterator[Transformer]:
    """The package's models with the reader's weights, encoder and decoder in either norm order."""
    for encoder, decoder in product(get_args(NormOrder), repeat=2):
        book = Transformer(_config(encoder))
        book.decoder = Decoder(_config(decoder))
        _fill_model(book, model)
        yield book.eval()


def _config(order: NormOrder) -> TransformerConfig:
    sizes: dict[str, Any] = {"n_encoder_layers": N_LAYERS, "n_decoder_layers": N_LAYERS} | SIZES
    return TransformerConfig(N_SRC, N_TGT, **sizes, dropout=0.0, norm=order, share_embeddings=False)
