"""A layer of the encoder and one of the decoder: who sees whom, then the package's own numbers."""

from collections.abc import Iterator

import torch
from torch import Tensor

from transformer.masks import causal_mask
from transformer.model import DecoderLayer, EncoderLayer
from transformer_book.exam.flaws import layer_flaws
from transformer_book.exam.modules import MOVED, UNNOTICED, WITH_YOUR_WEIGHTS, Yours, changed
from transformer_book.exam.reader import Mine, hinted
from transformer_book.exam.report import Wrong
from transformer_book.exam.weights import SIZES, BookLayer, book_layers

B, T, S = 2, 4, 6


class Layer(Yours):
    def __init__(self, mine: Mine, kind: type[BookLayer], *takes: str):
        super().__init__(mine, kind.__name__, SIZES, takes)
        self.kind, self.flaws = kind, layer_flaws(kind)

    def books(self) -> Iterator[BookLayer]:
        return book_layers(self.module, self.kind)

    def equals_a_book(self, *arguments: Tensor) -> str:
        """Which, in a line; raises Wrong if none."""
        look = "Go through it line by line: sub-layer, plus, norm (section 7.6)"
        book = self.the_same(*arguments, otherwise=look)
        return f"{'pre' if book.residual_1.pre else 'post'}-LN; {WITH_YOUR_WEIGHTS}"


@torch.no_grad()
def ask_encoder_layer(mine: Mine) -> str:
    layer = Layer(mine, EncoderLayer, "x", "mask")
    x = torch.randn(B, T, SIZES["d_model"], generator=torch.Generator().manual_seed(1))
    mask = torch.tensor([[[[True, True, True, False]]], [[[True, False, True, True]]]])
    layer.steady(x, mask)
    moved = layer.moved((x, mask), (changed(x, 2), mask))[:2]
    if (moved < UNNOTICED).all():
        look = "Is self-attention called, with x for both of its arguments? (section 8.2)"
        raise Wrong("a place was changed, and neither of the two before it noticed", look)
    moved = layer.moved((x, mask), (changed(x, 3), mask))[:2]
    if (moved > MOVED).any():
        look = "Does the mask go on to self-attention? (section 8.2)"
        raise Wrong(
            "the fourth of four places is hidden by the mask, but others still notice it",
            layer.hint(x, mask) or look,
            mask=mask[0, 0],
            first_two_moved_by=moved,
        )
    return layer.equals_a_book(x, mask)


@torch.no_grad()
def ask_decoder_layer(mine: Mine) -> str:
    layer = Layer(mine, DecoderLayer, "y", "memory", "tgt_mask", "src_mask")
    draw = torch.Generator().manual_seed(1)
    y, memory = (torch.randn(B, n, SIZES["d_model"], generator=draw) for n in (T, S))
    masks = past, words = (
        causal_mask(T).expand(B, 1, T, T),
        (torch.arange(S) < torch.tensor([5, 4])[:, None])[:, None, None],
    )
    look = "it works only where memory is as long as y. In attention to the memory y asks and "
    look += "comes first: attention(y, memory, mask). And is tgt_mask the one before src_mask? "
    look += "(section 8.3)"
    with hinted(lambda _: look if layer.works(y, memory[:, :T], past, words[..., :T]) else ""):
        layer(y, memory, *masks)
    layer.steady(y, memory, *masks)
    question = y, memory, *masks
    moved = layer.moved(question, (changed(y, 2), memory, *masks))
    if (moved[:2] > MOVED).any():
        look = "tgt_mask is for self-attention, src_mask for the look at the memory (section 8.3)"
        look = layer.hint(*question) or look
        raise Wrong("a place of y was changed, and places before it moved", look, moved_by=moved)
    if moved[3] < UNNOTICED:
        look = "Is self-attention called, with y for both of its arguments? (section 8.3)"
        raise Wrong("a place of y was changed, and the one after it did not notice", look)
    if (layer.moved(question, (y, changed(memory, 3), *masks)) < UNNOTICED).all():
        look = "Keys and values of the second attention come from memory (section 8.3)"
        raise Wrong("the memory was changed, and nothing moved", look)
    if (layer.moved(question, (y, changed(memory, 5), *masks)) > MOVED).any():
        look = "Does src_mask go on to the attention to the memory? (section 8.3)"
        raise Wrong("src_mask hides a place of the memory, but it is still seen", look)
    return layer.equals_a_book(*question)
