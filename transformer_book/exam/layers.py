"""A layer of the encoder and one of the decoder: who sees whom, then the package's own numbers."""

import contextlib

import torch
from torch import Tensor, nn

from transformer.masks import causal_mask
from transformer.model import DecoderLayer, EncoderLayer
from transformer_book.exam.flaws import layer_flaws
from transformer_book.exam.heads import as_form
from transformer_book.exam.reader import (
    MOVED,
    UNNOTICED,
    WITH_YOUR_WEIGHTS,
    Mine,
    check_steady,
    far,
    module_of,
    shaken,
    tensor_of,
)
from transformer_book.exam.report import NotThereYet, Wrong
from transformer_book.exam.weights import SIZES, BookLayer, book_layers

B, T, S = 2, 4, 6
ENCODER, DECODER = "EncoderLayer", "DecoderLayer"


def mask_axes(mine: Mine) -> int:
    """How many axes the reader's masks have: as the heads take them, or the padding mask has."""
    if mine.mask_axes is None:
        mine.mask_axes = 4 if padding_axes(mine) == 4 else 3
    return mine.mask_axes


def padding_axes(mine: Mine) -> int | None:
    with contextlib.suppress(Exception):  # the reader's, whatever it is: its own part tells it
        return mine.get("padding_mask")(torch.tensor([[4, 2, 0]])).dim()
    return None


class Layer:
    """The reader's layer, shaken; its masks get the axes that the reader's have."""

    def __init__(self, mine: Mine, kind: type[BookLayer], takes: tuple[str, ...]):
        name = kind.__name__
        torch.manual_seed(0)
        sizes = {name: SIZES[name] for name in ("d_model", "n_heads", "d_ff")}
        self.module, self.mine = shaken(module_of(mine, name, sizes, takes)), mine
        self.what, self.kind = f"{name}(8, 2, 12)({', '.join(takes)})", kind

    def __call__(self, *arguments: Tensor) -> Tensor:
        axes = mask_axes(self.mine)
        forms = [as_form(x, axes) if x.dtype == torch.bool else x for x in arguments]
        return self.mine.call(self.what, self.module, *forms)

    def hint(self, *arguments: Tensor) -> str:
        """Of the first known flaw that gives the reader's numbers; "" if none does."""
        with contextlib.suppress(NotThereYet, Wrong):
            y, forms = self(*arguments), _forms(arguments)
            for _, book in book_layers(self.module, self.kind):
                for hint, flawed in layer_flaws(book):
                    if not far(flawed(*forms), y):
                        return f"Look at this: {hint}"
        return ""


def _forms(arguments: tuple[Tensor, ...]) -> list[Tensor]:
    return [as_form(x, 4) if x.dtype == torch.bool else x for x in arguments]


@torch.no_grad()
def ask_encoder_layer(mine: Mine) -> str:
    layer = Layer(mine, EncoderLayer, ("x", "mask"))
    x = torch.randn(B, T, 8, generator=torch.Generator().manual_seed(1))
    mask = torch.tensor([[[True, True, True, False]], [[True, False, True, True]]])
    y = tensor_of(layer.what, layer(x, mask), (B, T, 8))
    check_steady(y, layer(x, mask))
    for place in (2, 3):  # the mask hides place 3
        changed = x.clone()
        changed[0, place, ::2] += 1
        moved = (layer(changed, mask) - y)[0, :2].abs().amax(-1)
        if place == 3 and (moved > MOVED).any():
            look = "Does the mask go on to self-attention? (section 8.2)"
            raise Wrong(
                "the fourth of four places is hidden by the mask, but others still notice it",
                layer.hint(x, mask) or look,
                mask=mask[:1],
                first_two_moved_by=moved,
            )
        if place == 2 and (moved < UNNOTICED).all():
            look = "Is self-attention called, with x for both of its arguments? (section 8.2)"
            raise Wrong("a place was changed, and neither of the two before it noticed", look)
    return _equals_the_books(layer, x, mask)


@torch.no_grad()
def ask_decoder_layer(mine: Mine) -> str:
    layer = Layer(mine, DecoderLayer, ("y", "memory", "tgt_mask", "src_mask"))
    draw = torch.Generator().manual_seed(1)
    y, memory = (torch.randn(B, n, 8, generator=draw) for n in (T, S))
    past = causal_mask(T)[None].expand(B, T, T)
    words = torch.arange(S).expand(B, 1, S) < torch.tensor([5, 4])[:, None, None]
    answer = _first_answer(layer, y, memory, past, words)
    check_steady(answer, layer(y, memory, past, words))
    later = y.clone()
    later[:, 2, ::2] += 1
    moved = (layer(later, memory, past, words) - answer)[0].abs().amax(-1)
    if (moved[:2] > MOVED).any():
        look = "tgt_mask is for self-attention, src_mask for the look at the memory (section 8.3)"
        look = layer.hint(y, memory, past, words) or look
        raise Wrong("a place of y was changed, and places before it moved", look, moved_by=moved)
    if moved[3] < UNNOTICED:
        look = "Is self-attention called, with y for both of its arguments? (section 8.3)"
        raise Wrong("a place of y was changed, and the one after it did not notice", look)
    for place in (3, 5):  # src_mask hides place 5
        changed = memory.clone()
        changed[0, place, ::2] += 1
        moved = (layer(y, changed, past, words) - answer)[0].abs().amax(-1)
        if place == 5 and (moved > MOVED).any():
            look = "Does src_mask go on to the attention to the memory? (section 8.3)"
            raise Wrong("src_mask hides a place of the memory, but it is still seen", look)
        if place == 3 and (moved < UNNOTICED).all():
            look = "Keys and values of the second attention come from memory (section 8.3)"
            raise Wrong("the memory was changed, and nothing moved", look)
    return _equals_the_books(layer, y, memory, past, words)


def _first_answer(layer: Layer, y: Tensor, memory: Tensor, past: Tensor, words: Tensor) -> Tensor:
    """Raises Wrong, with another reason where it works for a memory as long as ``y``."""
    try:
        return tensor_of(layer.what, layer(y, memory, past, words), (B, T, 8))
    except Wrong as wrong:
        try:
            layer(y, memory[:, :T], past, words[..., :T])
        except Wrong:
            raise wrong from None
        look = "In attention to the memory y asks and comes first: attention(y, memory, mask). And "
        look += "is tgt_mask the one before src_mask?"
        raise Wrong(
            f"it works only where memory is as long as y\n    {wrong}", f"{look} (section 8.3)"
        ) from wrong


def _equals_the_books(layer: Layer, *arguments: Tensor) -> str:
    y = layer(*arguments)
    for order, book in reversed([*book_layers(layer.module, layer.kind)]):
        expected = book(*_forms(arguments))
        if not far(expected, y):
            return f"{order}-LN; {WITH_YOUR_WEIGHTS}"
    otherwise = "Go through it line by line: sub-layer, plus, norm (section 7.6)"
    raise Wrong(
        "with your weights in it, the book's layer gives other numbers",
        layer.hint(*arguments) or otherwise,
        first_row_expected=expected[0, 0],
        you_gave=y[0, 0],
    )


def kind_of_layer(mine: Mine, name: str) -> type[nn.Module] | None:
    """The class of the layers that the reader's ``name`` makes."""
    with contextlib.suppress(Exception):  # the reader's, whatever it is: its own part tells it
        return type(mine.get(name)(SIZES["d_model"], SIZES["n_heads"], SIZES["d_ff"]))
    return None
