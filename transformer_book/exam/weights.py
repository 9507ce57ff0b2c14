"""The reader's weights in the book's own parts, by the names of the table in the exam's page.

Where a class has other names, its method ``book_names`` says which of its own is which: it returns
a dictionary, the book's name -> a layer, a tensor, or a pair of tensors (weight, bias), the weight
of a linear layer as ``nn.Linear`` has it, (out, in).
"""

import re
from collections.abc import Iterator
from itertools import product
from typing import Any, TypeVar, get_args

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
# the package's names, where they are others than the table's
RENAMED = {r"norm_(\d)": r"residual_\1.norm", r"\.rows": ".tokens"}
RENAMED |= {r"coder\.(\d)": r"coder.layers.\1", "coder_norm": "coder.norm"}
State = dict[str, Tensor]
BookLayer = EncoderLayer | DecoderLayer
Book = TypeVar("Book", bound=nn.Module)


class Unnamed(NotThereYet):
    """A weight that is not where the table says; which, and in what."""

    def __init__(self, name: str, module: nn.Module):
        super().__init__(
            f"right in all that shows from outside. To compare the numbers with the book's, the "
            f"exam looks for {name} in your {type(module).__name__}. Call it so, or say in "
            "book_names which of yours it is, in that class or the one that it is a part of (the "
            "exam's page shows how)"
        )


def renamed(module: nn.Module) -> dict[str, Any]:
    """What ``book_names`` of the reader's module says."""
    book_names: Any = getattr(module, "book_names", None)
    if book_names is None:
        return {}
    what = f"book_names of your {type(module).__name__}"
    try:
        names = book_names()
    except Exception as error:  # the reader's, whatever it is: it is told
        raise Wrong(f"{what} stopped with {type(error).__name__}: {error}") from error
    if not isinstance(names, dict):
        raise Wrong(f"{what} gives a {type(names).__name__}, and a dictionary is wanted")
    for name in names:
        if name not in NAMES:
            raise Wrong(f"{what} names {name!r}, which is not in the table of the exam's page")
    return names


def part_of(module: nn.Module, name: str) -> Any:
    """What is called ``name`` in the reader's module. Raises Unnamed where nothing is."""
    names = renamed(module)
    thing = names[name] if name in names else getattr(module, name, None)
    if thing is None:
        raise Unnamed(name, module)
    return thing


def has_part(module: nn.Module, name: str) -> bool:
    return name in renamed(module) or getattr(module, name, None) is not None


def weight_and_bias(module: nn.Module, name: str, kind: type = nn.Module) -> State:
    """Those of the layer called ``name``; a bias that the reader does without is zero.

    Which way round a matrix is used that is no ``nn.Linear``, only ``book_names`` can tell, the
    module's or its own.
    """
    thing = part_of(module, name)
    by_the_table = name not in renamed(module)
    if by_the_table and not isinstance(thing, kind) and not renamed(thing):
        raise Unnamed(f"an nn.Linear called {name}" if kind is nn.Linear else name, module)
    match thing:
        case (weight, bias):
            pass
        case Tensor():
            weight, bias = thing, None
        case _:
            weight = part_of(thing, "weight")
            bias = part_of(thing, "bias") if has_part(thing, "bias") else None
    return {"weight": weight, "bias": weight.new_zeros(len(weight)) if bias is None else bias}


def under(prefix: str, state: State) -> State:
    return {f"{prefix}.{name}": value for name, value in state.items()}


def heads_state(heads: nn.Module) -> State:
    state: State = {}
    for name in HEADS:
        state |= under(name, weight_and_bias(heads, name, nn.Linear))
    return state


def layer_state(layer: nn.Module, kind: type[BookLayer]) -> State:
    """Raises Wrong where two parts of the layer are one and the same."""
    attentions = ("self_attention", "cross_attention")[: 1 + (kind is DecoderLayer)]
    norms = ("norm_1", "norm_2", "norm_3")[: 1 + len(attentions)]
    state: State = {}
    for name in attentions:
        state |= under(name, heads_state(part_of(layer, name)))
    feed_forward = part_of(layer, "feed_forward") if has_part(layer, "feed_forward") else layer
    for name in ("W_1", "W_2"):
        state |= under(f"feed_forward.{name}", weight_and_bias(feed_forward, name, nn.Linear))
    for name in norms:
        state |= under(name, weight_and_bias(layer, name))
    look = "Self-attention and the look at the memory need weights of their own (section 8.3)"
    _are_several(layer, attentions, look)
    _are_several(layer, norms, "Each sub-layer has its own, with a gain and a bias (section 7.4)")
    return state


def _are_several(layer: nn.Module, names: tuple[str, ...], look: str) -> None:
    parts = [part_of(layer, name) for name in names]
    for i, name in enumerate(names):
        for other, thing in zip(names[:i], parts, strict=False):
            if thing is parts[i]:
                raise Wrong(f"{other} and {name} are one and the same", look)


def model_state(model: nn.Module) -> State:
    state: State = {}
    inside, n_named = set[int](), 0  # weights in layers, and vectors of last norms
    for name in ("src_embedding", "tgt_embedding"):
        table = part_of(model, name)
        if isinstance(table, nn.Module):
            table = table if isinstance(table, nn.Embedding) else part_of(table, "rows")
        state[f"{name}.rows.weight"] = table if isinstance(table, Tensor) else table.weight
    for name, kind in (("encoder", EncoderLayer), ("decoder", DecoderLayer)):
        layers = part_of(model, name)
        if not isinstance(layers, nn.ModuleList | nn.Sequential | list | tuple):
            raise Unnamed(f"a list of layers called {name}", model)
        if len(layers) != N_LAYERS:
            raise Wrong(f"{name} holds {len(layers)} layers, and n_layers is {N_LAYERS}")
        for i, layer in enumerate(layers):
            state |= under(f"{name}.{i}", layer_state(layer, kind))
        inside |= {id(p) for layer in layers for p in layer.parameters()}
        if has_part(model, f"{name}_norm"):
            state |= under(f"{name}_norm", weight_and_bias(model, f"{name}_norm"))
            n_named += 2
    outside = [p for p in model.parameters() if id(p) not in inside]
    if sum(p.shape == (SIZES["d_model"],) for p in outside) > n_named:
        raise Unnamed("the last norms, encoder_norm and decoder_norm,", model)
    return state | under("output", weight_and_bias(model, "output", nn.Linear))


def book_heads(heads: nn.Module, d_model: int, n_heads: int) -> MultiHeadAttention:
    """The package's heads with the reader's weights; raises Unnamed, like those below."""
    return _filled(MultiHeadAttention(d_model, n_heads), heads_state(heads))


def book_layers(layer: nn.Module, kind: type[BookLayer]) -> Iterator[tuple[NormOrder, BookLayer]]:
    """The package's layers, post-LN and pre-LN, with the weights of the reader's."""
    state = layer_state(layer, kind)
    for order in get_args(NormOrder):
        yield order, _filled(kind(_config(order)), state)


def book_models(model: nn.Module) -> Iterator[Transformer]:
    """The package's models with the reader's weights, encoder and decoder in either norm order.

    Where the reader has no last norm, there is none.
    """
    state = model_state(model)
    for encoder, decoder in product(get_args(NormOrder), repeat=2):
        book = Transformer(_config(encoder))
        book.decoder = Decoder(_config(decoder))
        for name, stack in (("encoder", book.encoder), ("decoder", book.decoder)):
            named = f"{name}_norm.weight" in state
            stack.norm = LayerNorm(SIZES["d_model"]) if named else nn.Identity()
        book.output = nn.Linear(SIZES["d_model"], N_TGT)
        yield _filled(book, state)


def _config(order: NormOrder) -> TransformerConfig:
    sizes: dict[str, Any] = {"n_encoder_layers": N_LAYERS, "n_decoder_layers": N_LAYERS} | SIZES
    return TransformerConfig(N_SRC, N_TGT, **sizes, dropout=0.0, norm=order, share_embeddings=False)


def _filled(book: Book, state: State) -> Book:
    weights, shapes = {}, {name: weight.shape for name, weight in book.state_dict().items()}
    for name, weight in state.items():
        in_the_book = name
        for pattern, instead in RENAMED.items():
            in_the_book = re.sub(pattern, instead, in_the_book)
        weights[in_the_book], shape = weight, shapes[in_the_book]
        if weight.shape != shape:
            raise Wrong(f"{name} has the shape {tuple(weight.shape)}; {tuple(shape)} is wanted")
    book.load_state_dict(weights)
    return book.eval()
