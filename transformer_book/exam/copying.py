"""The reader's layers and model as the package's: which parameter is which, found by trying."""

from collections.abc import Iterator
from itertools import permutations
from typing import Any, NamedTuple, get_args

import torch
from torch import Tensor, nn

from transformer.config import TransformerConfig
from transformer.layers import FeedForward, LayerNorm, NormOrder, Residual
from transformer.model import DecoderLayer, EncoderLayer
from transformer.multihead import MultiHeadAttention
from transformer_book.exam.heads import NAME, ask_heads
from transformer_book.exam.layouts import Linear, copy_heads, copy_linear, linears
from transformer_book.exam.marks import Mine, Wrong

SIZES = {"d_model": 8, "n_heads": 2, "d_ff": 12}
BookLayer = EncoderLayer | DecoderLayer


class UnreadableError(Exception):
    """Where it cannot be seen which parameter is which; it says what cannot be told."""


class Norm(NamedTuple):
    gain: Tensor
    bias: Tensor | None


class Arrangement(NamedTuple):
    """Which of the two orders, and which of the norms and heads comes first, second, third."""

    norm: NormOrder
    norms: tuple[int, ...]
    heads: tuple[int, ...]


def config(norm: NormOrder, n_layers: int = 1, n_src: int = 9, n_tgt: int = 7) -> TransformerConfig:
    sizes: dict[str, Any] = {"n_encoder_layers": n_layers, "n_decoder_layers": n_layers} | SIZES
    return TransformerConfig(n_src, n_tgt, **sizes, dropout=0.0, norm=norm, share_embeddings=False)


def arrangements(kind: type[BookLayer]) -> Iterator[Arrangement]:
    n = 2 if kind is EncoderLayer else 3
    for norm in get_args(NormOrder):
        for norms in permutations(range(n)):
            for heads in permutations(range(n - 1)):
                yield Arrangement(norm, norms, heads)


def in_the_usual_order(kind: type[BookLayer]) -> list[Arrangement]:
    """Pre-LN and post-LN, with norms and heads made in the order in which they are used."""
    in_order = [how for how in arrangements(kind) if list(how.norms) == sorted(how.norms)]
    return [how for how in in_order if list(how.heads) == sorted(how.heads)]


class LayerParts:
    """What a layer of the reader's is made of.

    Raises UnreadableError where that is unclear, Wrong where something is missing, and
    NotThereYet where the reader's heads are wrong.
    """

    def __init__(self, mine: Mine, own: nn.Module, kind: type[BookLayer]):
        if mine.known.get("layout") is None:
            if mine.has(NAME):
                mine.needs(NAME, ask_heads)
            raise UnreadableError(f"how your {NAME} stores them")
        kind_of_heads = type(mine.get(NAME)(SIZES["d_model"], SIZES["n_heads"]))
        heads = [m for m in own.modules() if type(m) is kind_of_heads]
        inside = {id(p) for each in heads for p in each.parameters()}
        n_norms, found = (2, 3)[kind is DecoderLayer], linears(own, inside)
        if not heads or found is None:
            raise UnreadableError("which of them are its attention's")
        if len(heads) != n_norms - 1:
            look = "Self-attention and the look at the memory need weights of their own"
            wanted = f"it should hold {n_norms - 1} {NAME}, and I find {len(heads)}"
            raise Wrong(wanted, f"{look} (section 8.3)")
        self.norms = norms_of(own, inside)
        if len(self.norms) != n_norms:
            look = "Each sub-layer has one, with a gain and a bias to learn (section 7.4)"
            raise Wrong(f"it should have {n_norms} norms, and I find {len(self.norms)}", look)
        self.feed_forward = _feed_forward(found)
        read = [mine.known["layout"].read(each, SIZES["n_heads"]) for each in heads]
        self.read = [four for four in read if four is not None]

    def book(self, kind: type[BookLayer], how: Arrangement) -> BookLayer:
        """The package's layer with the reader's weights."""
        layer = kind(config(how.norm)).eval()
        self.copy_to(layer, how)
        return layer

    @torch.no_grad()
    def copy_to(self, layer: nn.Module, how: Arrangement) -> None:
        heads = [m for m in layer.modules() if isinstance(m, MultiHeadAttention)]
        for each, i in zip(heads, how.heads, strict=True):
            copy_heads(each, self.read[i])
        residuals = [m for m in layer.modules() if isinstance(m, Residual)]
        for residual, i in zip(residuals, how.norms, strict=True):
            copy_norm(residual.norm, self.norms[i])
        (feed_forward,) = (m for m in layer.modules() if isinstance(m, FeedForward))
        copy_linear(feed_forward.W_1, self.feed_forward[0])
        copy_linear(feed_forward.W_2, self.feed_forward[1])


def _feed_forward(found: list[Linear]) -> list[Linear]:
    """W_1 and W_2, as (d_ff, d_model) and (d_model, d_ff)."""
    d_model, d_ff = SIZES["d_model"], SIZES["d_ff"]
    shapes = [tuple(each.weight.shape) for each in found]
    if len(shapes) != 2 or any(sorted(shape) != [d_model, d_ff] for shape in shapes):
        raise Wrong(
            f"besides attention I find matrices of the shapes {shapes}",
            f"There should be two, W_1 and W_2, of {d_model} times {d_ff} numbers (section 7.5)",
        )
    if found[0].bias is not None and found[0].bias.numel() == d_model:
        found = found[::-1]
    first, last = found
    turned = [first.weight.shape[0] != d_ff, last.weight.shape[0] != d_model]
    both = zip((first, last), turned, strict=True)
    return [each._replace(weight=each.weight.T) if turn else each for each, turn in both]


def norms_of(module: nn.Module, without: set[int]) -> list[Norm]:
    """The gains and biases of all norms, in the order in which they were made.

    ``shaken`` moves numbers by less than a half: a gain is still nearer 1 than 0 on average.
    """
    found = []
    for owner in module.modules():
        own = [p for p in owner.parameters(recurse=False) if id(p) not in without]
        if not own or any(p.shape != (SIZES["d_model"],) for p in own):
            continue
        gain, *biases = sorted((p.detach() for p in own), key=lambda p: -float(p.mean()))
        if gain.mean() < 0.5:
            raise UnreadableError("which are the gains of its norms")
        found.append(Norm(gain, biases[0] if biases else None))
    return found


@torch.no_grad()
def copy_norm(norm: nn.Module, own: Norm) -> None:
    if isinstance(norm, LayerNorm):
        norm.weight.copy_(own.gain)
        norm.bias.copy_(own.bias if own.bias is not None else torch.zeros(()))
