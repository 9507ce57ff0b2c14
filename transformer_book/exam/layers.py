"""Heads and layers: what their answers may depend on, then the package's own numbers."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from transformer.masks import causal_mask
from transformer.model import DecoderLayer, EncoderLayer
from transformer.multihead import MultiHeadAttention
from transformer_book.exam import flaws
from transformer_book.exam.modules import ALL, WITH_YOUR_WEIGHTS, Yours, changed, far
from transformer_book.exam.reader import Mine, can_take, hinted
from transformer_book.exam.report import Wrong
from transformer_book.exam.weights import SIZES, BookLayer, book_heads, book_layers

HEADS = "MultiHeadAttention"


class Heads(Yours):
    """Asked with (query, key, value, mask), whichever of two ways the reader's are written for."""

    flaws = flaws.HEADS

    def __init__(
        self, mine: Mine, d_model: int = SIZES["d_model"], n_heads: int = SIZES["n_heads"]
    ):
        sizes = {"d_model": d_model, "n_heads": n_heads}
        make = mine.get(HEADS, *sizes)
        self.takes_value = can_take(getattr(make, "forward", make), 5)  # self is the first
        takes = ("query", "key", "value", "mask") if self.takes_value else ("x", "memory", "mask")
        super().__init__(mine, HEADS, sizes, takes)

    def __call__(self, *arguments: Any) -> Tensor:
        query, key, value, mask = arguments
        return super().__call__(*((query, key, value) if self.takes_value else (query, key)), mask)

    def books(self) -> Iterator[MultiHeadAttention]:
        yield book_heads(self.module, **self.sizes)


@torch.no_grad()
def ask_heads(mine: Mine) -> str:
    heads, draw = Heads(mine), torch.Generator().manual_seed(1)
    x, memory = (torch.randn(3, n, SIZES["d_model"], generator=draw) for n in (5, 7))
    short, look = memory[:, :5], "it works only where memory is as long as x. The queries come "
    look += "from x, keys and values from memory (section 3.5)"
    with hinted(lambda _: look if heads.works(x, short, short, None) else ""):
        heads(x, memory, memory, None)
    heads.steady(x, memory, memory, None)
    _each_query_is_its_own(heads, x, memory)
    mask = torch.rand(3, 1, 1, 7, generator=torch.Generator().manual_seed(2)) < 0.6
    mask[..., 0], mask[..., 1] = True, False
    _learn_the_axes_of_masks(heads, x, memory, mask)
    others = [Heads(mine, *sizes) for sizes in ((4, 1), (12, 3))]
    rows = [torch.randn(2, 4, other.sizes["d_model"], generator=draw) for other in others]
    answers = [other(x, x, x, None) for other, x in zip(others, rows, strict=True)]
    look = "Do they have a bias, or cut other columns into heads? Then say so in book_names"
    for see in (None, mask):
        heads.the_same(x, memory, memory, see, otherwise=look)
    for other, x, answer in zip(others, rows, answers, strict=True):
        if any(far(book(x, x, x), answer) for book in other.books()):
            right, wrong = (tuple(asked.sizes.values()) for asked in (heads, other))
            look = "Is there a number in it that should come from d_model or n_heads?"
            raise Wrong(f"right for {right}, not for {wrong}", look)
    return WITH_YOUR_WEIGHTS


def _each_query_is_its_own(heads: Heads, x: Tensor, memory: Tensor) -> None:
    """Raises Wrong where one query moves another's answer, or one key's place matters."""
    question, one_query = (x, memory, memory, None), (changed(x, 2), memory, memory, None)
    look = "Cut with view(B, T, n_heads, d_k).transpose(1, 2), and go back the same way."
    symptom = "only the third of five queries was changed, but answers to others moved"
    heads.check_stays(question, one_query, [0, 1, 3, 4], symptom, f"{look} (section 5.4)")
    look = "The queries come from the first argument, keys and values from the second"
    symptom = "a query was changed, and its answer did not move"
    heads.check_moves(question, one_query, 2, symptom, f"{look} (section 3.5)")
    look = "Are the keys and the values cut into heads in the same way? (section 5.4)"
    symptom = "the keys, with their values, came in another order; the answers moved"
    turned = memory.flip(1)
    heads.check_stays(question, (x, turned, turned, None), ALL, symptom, look)


def _learn_the_axes_of_masks(heads: Heads, x: Tensor, memory: Tensor, mask: Tensor) -> None:
    """Notes whether the reader's masks have three axes or four; raises Wrong if neither works."""
    plain, answers, stopped = heads(x, memory, memory, None), [], []
    for axes in (3, 4):
        heads.mine.mask_axes = axes
        try:
            answer = heads(x, memory, memory, mask)
        except Wrong as wrong:
            stopped.append(wrong)
            continue
        answers.append(answer)
        shown, hidden = (memory.masked_fill(see[:, 0].mT, 9.0) for see in (mask, ~mask))
        if not far(heads(x, hidden, hidden, mask), answer) and far(plain, answer):
            return
        if not far(heads(x, shown, shown, mask), answer):
            look = "True means that the query may look, and yours hides those places (section 4.4)"
            raise Wrong("under a mask the answers come from what it hides", look, mask=mask[0, 0])
    if not answers:
        raise stopped[-1]
    look = "Check what the mask is compared with before the softmax (section 4.4)"
    if not all(far(plain, answer) for answer in answers):
        look = "The mask is not used: does it reach your attention? (section 4.4)"
    raise Wrong(
        "under a mask, (B, 1, S) or (B, 1, 1, S), the answers are wrong",
        heads.hint(x, memory, memory, None) or look,
        mask=mask[0, 0],
    )


class Layer(Yours):
    def __init__(self, mine: Mine, kind: type[BookLayer], *takes: str):
        super().__init__(mine, kind.__name__, SIZES, takes)
        self.kind, self.flaws = kind, flaws.layer_flaws(kind)

    def books(self) -> Iterator[BookLayer]:
        return book_layers(self.module, self.kind)

    def equals_a_book(self, *arguments: Tensor) -> str:
        """The book's layer that gives the same numbers, in words; raises Wrong if none does."""
        look = "Go through it line by line: sub-layer, plus, norm (section 7.6)"
        book = self.the_same(*arguments, otherwise=look)
        return f"{'pre' if book.residual_1.pre else 'post'}-LN; {WITH_YOUR_WEIGHTS}"


@torch.no_grad()
def ask_encoder_layer(mine: Mine) -> str:
    layer = Layer(mine, EncoderLayer, "x", "mask")
    x = torch.randn(2, 4, SIZES["d_model"], generator=torch.Generator().manual_seed(1))
    mask = torch.tensor([[[[True, True, True, False]]], [[[True, False, True, True]]]])
    layer.steady(x, mask)
    look = "Is self-attention called, with x for both of its arguments? (section 8.2)"
    symptom = "a place was changed, and neither of the two before it noticed"
    layer.check_moves((x, mask), (changed(x, 2), mask), [0, 1], symptom, look)
    look = "Does the mask go on to self-attention? (section 8.2)"
    symptom = "the fourth of four places is hidden by the mask, but others still notice it"
    layer.check_stays((x, mask), (changed(x, 3), mask), [0, 1], symptom, look, mask=mask[0, 0])
    return layer.equals_a_book(x, mask)


@torch.no_grad()
def ask_decoder_layer(mine: Mine) -> str:
    layer = Layer(mine, DecoderLayer, "y", "memory", "tgt_mask", "src_mask")
    draw = torch.Generator().manual_seed(1)
    y, memory = (torch.randn(2, n, SIZES["d_model"], generator=draw) for n in (4, 6))
    masks = past, words = (
        causal_mask(4).expand(2, 1, 4, 4),
        (torch.arange(6) < torch.tensor([5, 4])[:, None])[:, None, None],
    )
    look = "it works only where memory is as long as y. In attention to the memory y asks and "
    look += "comes first: attention(y, memory, mask). And is tgt_mask the one before src_mask? "
    look += "(section 8.3)"
    with hinted(lambda _: look if layer.works(y, memory[:, :4], past, words[..., :4]) else ""):
        layer(y, memory, *masks)
    layer.steady(y, memory, *masks)
    question, one_place = (y, memory, *masks), (changed(y, 2), memory, *masks)
    look = "tgt_mask is for self-attention, src_mask for the look at the memory (section 8.3)"
    symptom = "a place of y was changed, and places before it moved"
    layer.check_stays(question, one_place, [0, 1], symptom, look)
    look = "Is self-attention called, with y for both of its arguments? (section 8.3)"
    symptom = "a place of y was changed, and the one after it did not notice"
    layer.check_moves(question, one_place, 3, symptom, look)
    look = "Keys and values of the second attention come from memory (section 8.3)"
    symptom = "the memory was changed, and nothing moved"
    layer.check_moves(question, (y, changed(memory, 3), *masks), ALL, symptom, look)
    look = "Does src_mask go on to the attention to the memory? (section 8.3)"
    symptom = "src_mask hides a place of the memory, but it is still seen"
    layer.check_stays(question, (y, changed(memory, 5), *masks), ALL, symptom, look)
    return layer.equals_a_book(*question)
