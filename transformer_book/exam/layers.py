"""A layer of the encoder and one of the decoder: who sees whom, then the package's own numbers."""

import contextlib

import torch
from torch import Tensor, nn

from transformer.masks import causal_mask
from transformer.model import DecoderLayer, EncoderLayer
from transformer_book.exam.copying import (
    SIZES,
    BookLayer,
    LayerParts,
    UnreadableError,
    arrangements,
    in_the_usual_order,
)
from transformer_book.exam.flaws import layer_flaws
from transformer_book.exam.heads import NAME, as_form, ask_heads
from transformer_book.exam.marks import (
    MOVED,
    UNNOTICED,
    WITH_YOUR_WEIGHTS,
    Mine,
    NotThereYet,
    Wrong,
    far,
    from_outside,
    module_of,
    shaken,
    tensor_of,
)

B, T, S = 2, 4, 6
ENCODER, DECODER = "EncoderLayer", "DecoderLayer"


def learn_of_heads(mine: Mine) -> None:
    """What the part before this one finds out, where it was not asked."""
    if "axes" not in mine.known:
        mine.known |= {"layout": None, "axes": None}
        with contextlib.suppress(NotThereYet):
            mine.needs(NAME, ask_heads)
    if mine.known["axes"] is None:
        own = getattr(mine.module, "padding_mask", None)
        with contextlib.suppress(Exception):
            mine.known["axes"] = own(torch.tensor([[4, 2, 0]])).dim()  # type: ignore[misc]
        mine.known["axes"] = 4 if mine.known["axes"] == 4 else 3


class Layer:
    """The reader's layer, shaken; its masks get the axes that the reader's have."""

    def __init__(self, mine: Mine, name: str, takes: tuple[str, ...]):
        learn_of_heads(mine)
        torch.manual_seed(0)
        sizes = {name: SIZES[name] for name in ("d_model", "n_heads", "d_ff")}
        self.module, self.mine = shaken(module_of(mine, name, sizes, takes)), mine
        self.what, self.axes = f"{name}(8, 2, 12)({', '.join(takes)})", mine.known["axes"]

    def __call__(self, *given: Tensor) -> Tensor:
        forms = [as_form(x, self.axes) if x.dtype == torch.bool else x for x in given]
        return self.mine.call(self.what, self.module, *forms)


@torch.no_grad()
def ask_encoder_layer(mine: Mine) -> str:
    own = Layer(mine, ENCODER, ("x", "mask"))
    x = torch.randn(B, T, 8, generator=torch.Generator().manual_seed(1))
    mask = torch.tensor([[[True, True, True, False]], [[True, False, True, True]]])
    y = tensor_of(own.what, own(x, mask), (B, T, 8))
    same_twice(y, own(x, mask))
    for hidden in (False, True):
        changed = x.clone()
        changed[0, 3 if hidden else 2, ::2] += 1
        moved = (own(changed, mask) - y)[0, :2].abs().amax(-1)
        if hidden and (moved > MOVED).any():
            look = "Does the mask go on to self-attention? (section 8.2)"
            raise Wrong(
                "the fourth of four places is hidden by the mask, but others still notice it",
                flaw_of(own, EncoderLayer, (x, mask)) or look,
                mask=mask[:1],
                first_two_moved_by=moved,
            )
        if not hidden and (moved < UNNOTICED).all():
            look = "Is self-attention called, with x for both of its arguments? (section 8.2)"
            raise Wrong("a place was changed, and neither of the two before it noticed", look)
    return equals_the_books(own, EncoderLayer, (x, mask))


@torch.no_grad()
def ask_decoder_layer(mine: Mine) -> str:
    own = Layer(mine, DECODER, ("y", "memory", "tgt_mask", "src_mask"))
    draw = torch.Generator().manual_seed(1)
    y, memory = (torch.randn(B, n, 8, generator=draw) for n in (T, S))
    past = causal_mask(T)[None].expand(B, T, T)
    words = torch.arange(S).expand(B, 1, S) < torch.tensor([5, 4])[:, None, None]
    got = _first_answer(own, y, memory, past, words)
    same_twice(got, own(y, memory, past, words))
    later = y.clone()
    later[:, 2, ::2] += 1
    moved = (own(later, memory, past, words) - got)[0].abs().amax(-1)
    if (moved[:2] > MOVED).any():
        look = "tgt_mask is for self-attention, src_mask for the look at the memory (section 8.3)"
        look = flaw_of(own, DecoderLayer, (y, memory, past, words)) or look
        raise Wrong("a place of y was changed, and places before it moved", look, moved_by=moved)
    if moved[3] < UNNOTICED:
        look = "Is self-attention called, with y for both of its arguments? (section 8.3)"
        raise Wrong("a place of y was changed, and the one after it did not notice", look)
    for place, hidden in ((3, False), (5, True)):
        changed = memory.clone()
        changed[0, place, ::2] += 1
        moved = (own(y, changed, past, words) - got)[0].abs().amax(-1)
        if hidden and (moved > MOVED).any():
            look = "Does src_mask go on to the attention to the memory? (section 8.3)"
            raise Wrong("src_mask hides a place of the memory, but it is still seen", look)
        if not hidden and (moved < UNNOTICED).all():
            look = "Keys and values of the second attention come from memory (section 8.3)"
            raise Wrong("the memory was changed, and nothing moved", look)
    return equals_the_books(own, DecoderLayer, (y, memory, past, words))


def _first_answer(own: Layer, y: Tensor, memory: Tensor, past: Tensor, words: Tensor) -> Tensor:
    """Raises Wrong, with another reason where it works for a memory as long as ``y``."""
    try:
        return tensor_of(own.what, own(y, memory, past, words), (B, T, 8))
    except Wrong as wrong:
        try:
            own(y, memory[:, :T], past, words[..., :T])
        except Wrong:
            raise wrong from None
        look = "In attention to the memory y asks and comes first: attention(y, memory, mask). And "
        look += "is tgt_mask the one before src_mask?"
        raise Wrong(
            f"it works only where memory is as long as y\n    {wrong}", f"{look} (section 8.3)"
        ) from wrong


def same_twice(one: Tensor, other: Tensor) -> None:
    """Raises Wrong where chance has a say in evaluation mode."""
    if far(one, other):
        look = "What is random, such as dropout, must stop at model.eval() (section 9.5)"
        raise Wrong("the same call twice gives two answers", look)


def equals_the_books(own: Layer, kind: type[BookLayer], given: tuple[Tensor, ...]) -> str:
    """Notes how the reader's layer is arranged. Raises Wrong where it is unlike any.

    Raises NotThereYet where the reader's heads are wrong, so that nothing can be compared.
    """
    mine, name = own.mine, kind.__name__
    mine.known[name] = None
    try:
        parts = LayerParts(mine, own.module, kind)
    except UnreadableError as unclear:
        return from_outside(str(unclear))
    got = own(*given)
    book_given = [as_form(x, 4) if x.dtype == torch.bool else x for x in given]
    nearest = None
    for how in arrangements(kind):
        answers = parts.book(kind, how)(*book_given)
        if not far(answers, got):
            mine.known[name] = how
            order = "pre-LN" if how.norm == "pre" else "post-LN"
            return f"{order}; {WITH_YOUR_WEIGHTS}"
        nearest = answers if nearest is None else nearest
    otherwise = "Go through it line by line: sub-layer, plus, norm (section 7.6)"
    raise Wrong(
        "with your weights in it, the book's layer gives other numbers",
        flaw_of(own, kind, given) or otherwise,
        first_row_expected=nearest[0, 0] if nearest is not None else "",
        you_gave=got[0, 0],
    )


def flaw_of(own: Layer, kind: type[BookLayer], given: tuple[Tensor, ...]) -> str:
    """What to say of the first known flaw that gives the reader's numbers; "" if none does."""
    with contextlib.suppress(NotThereYet, UnreadableError, Wrong):
        parts, got = LayerParts(own.mine, own.module, kind), own(*given)
        book_given = [as_form(x, 4) if x.dtype == torch.bool else x for x in given]
        for how in in_the_usual_order(kind):
            for said, flawed in layer_flaws(parts.book(kind, how)):
                if not far(flawed(*book_given), got):
                    return f"Look at this: {said}"
    return ""


def kind_of_layer(mine: Mine, name: str) -> type[nn.Module] | None:
    """The class of the layers that the reader's ``name`` makes."""
    with contextlib.suppress(Exception):
        return type(mine.get(name)(SIZES["d_model"], SIZES["n_heads"], SIZES["d_ff"]))
    return None
