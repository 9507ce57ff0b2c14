"""Multi-head attention: what its answers may depend on, then the package's own answers."""

import inspect
from collections.abc import Callable

import torch
from torch import Tensor, nn

from transformer_book.exam.head_flaws import D_MODEL, FLAWS, N_HEADS, flawed_heads
from transformer_book.exam.layouts import Layout, book_heads, layouts, squares
from transformer_book.exam.marks import (
    MOVED,
    UNNOTICED,
    WITH_YOUR_WEIGHTS,
    Mine,
    Wrong,
    far,
    from_outside,
    module_of,
    shaken,
    tensor_of,
)

NAME = "MultiHeadAttention"
B, T, S = 3, 5, 7


class Heads:
    """The reader's heads, shaken, called in whichever of two ways they are written for."""

    def __init__(self, mine: Mine, d_model: int = D_MODEL, n_heads: int = N_HEADS, seed: int = 0):
        sizes = {"d_model": d_model, "n_heads": n_heads}
        make = mine.get(NAME, *sizes)
        forward = make.forward if isinstance(make, type) and issubclass(make, nn.Module) else None
        self.takes_three = forward is not None and _can_take(forward, 5)
        takes = ("query", "key", "value", "mask") if self.takes_three else ("x", "memory", "mask")
        torch.manual_seed(seed)
        self.module = shaken(module_of(mine, NAME, sizes, takes), seed)
        self.mine, self.what = mine, f"{NAME}({d_model}, {n_heads})({', '.join(takes)})"

    def __call__(self, x: Tensor, memory: Tensor, mask: Tensor | None) -> Tensor:
        given = (x, memory, memory, mask) if self.takes_three else (x, memory, mask)
        return self.mine.call(self.what, self.module, *given)


def _can_take(function: Callable, n: int) -> bool:
    try:
        inspect.signature(function).bind(*range(n))
    except (TypeError, ValueError):
        return False
    return True


@torch.no_grad()
def ask_heads(mine: Mine) -> str:
    own = Heads(mine)
    draw = torch.Generator().manual_seed(1)
    x, memory = (torch.randn(B, n, D_MODEL, generator=draw) for n in (T, S))
    y = _first_answer(own, x, memory)
    if far(y, own(x, memory, None)):
        look = "What is random, such as dropout, must stop at model.eval() (section 9.5)"
        raise Wrong("the same call twice gives two answers", look)
    each_query_is_its_own(own, x, memory)
    layout = _equals_the_books(own, x, memory)
    axes = _axes_of_a_mask(own, x, memory, layout)
    for d_model, n_heads in ((4, 1), (12, 3)):
        other = Heads(mine, d_model, n_heads)
        x = torch.randn(2, 4, d_model, generator=draw)
        y = tensor_of(other.what, other(x, x, None), (2, 4, d_model))
        if layout and far(y, book_heads(other.module, layout, n_heads)(x, x, x)):
            look = "Is there a number in it that should come from d_model or n_heads?"
            raise Wrong(f"right for ({D_MODEL}, {N_HEADS}), not for ({d_model}, {n_heads})", look)
    mine.known |= {"layout": layout, "axes": axes}
    return WITH_YOUR_WEIGHTS if layout else from_outside("how they are stored")


def _first_answer(own: Heads, x: Tensor, memory: Tensor) -> Tensor:
    """Raises Wrong, with another reason where it works for a memory as long as ``x``."""
    try:
        return tensor_of(own.what, own(x, memory, None), (B, T, D_MODEL), x=x, memory=memory)
    except Wrong as wrong:
        try:
            own(x, memory[:, :T], None)
        except Wrong:
            raise wrong from None
        raise Wrong(
            f"it works only where memory is as long as x\n    {wrong}",
            "The queries come from x, keys and values from memory (section 3.5)",
        ) from wrong


def each_query_is_its_own(own: Heads, x: Tensor, memory: Tensor) -> None:
    """Raises Wrong where one query moves another's answer, or one key's place matters."""
    changed = x.clone()
    changed[0, 2, ::2] += 1
    y = own(x, memory, None)
    moved = (own(changed, memory, None) - y)[0].abs().amax(-1)
    if (moved[[0, 1, 3, 4]] > MOVED).any():
        look = "Cut with view(B, T, n_heads, d_k).transpose(1, 2), and go back the same way."
        raise Wrong(
            "only the third of five queries was changed, but answers to others moved",
            *(_hints(own, x, memory) or [f"{look} (section 5.4)"]),
            answers_moved_by=moved,
        )
    if moved[2] < UNNOTICED:
        look = "The queries come from the first argument, keys and values from the second"
        raise Wrong("a query was changed, and its answer did not move", f"{look} (section 3.5)")
    turned = own(x, memory.flip(1), None)
    if far(turned, y):
        look = "Are the keys and the values cut into heads in the same way? (section 5.4)"
        raise Wrong("the keys, with their values, came in another order; the answers moved", look)


def _equals_the_books(own: Heads, x: Tensor, memory: Tensor) -> Layout | None:
    """Where the reader's matrices are, with which the book's heads give the same; None if unclear.

    Raises Wrong where there is no such place.
    """
    y = own(x, memory, None)
    known = list(layouts(own.module, N_HEADS))
    for layout in known:
        if not far(book_heads(own.module, layout, N_HEADS)(x, memory, memory), y):
            return layout
    if known:
        expected = book_heads(own.module, known[0], N_HEADS)(x, memory, memory)
        raise Wrong(
            "with your matrices in them, the book's heads give other answers",
            *_hints(own, x, memory),
            first_row_expected=expected[0, 0],
            you_gave=y[0, 0],
        )
    found = squares(own.module, N_HEADS, by_head=False)
    if found is not None and len(found) < 4:
        raise Wrong(
            f"I count {len(found)} matrices of (d_model, d_model) in it, and four are wanted",
            "W_q, W_k and W_v before the heads, and W_o, which mixes what they say (section 5.2)",
        )
    return None


def _axes_of_a_mask(own: Heads, x: Tensor, memory: Tensor, layout: Layout | None) -> int:
    """Whether the reader's masks have three axes or four. Raises Wrong if neither is right."""
    mask = torch.rand(B, 1, S, generator=torch.Generator().manual_seed(2)) < 0.6
    mask[..., 0], mask[..., 1] = True, False

    def right(see: Tensor | None, answers: Tensor) -> bool:
        if layout is not None:
            book = book_heads(own.module, layout, N_HEADS)
            return not far(answers, book(x, memory, memory, None if see is None else see[:, None]))
        hidden = memory if see is None else memory.masked_fill(~see.mT, 9.0)
        return not far(answers, own(x, hidden, form)) and (see is None or far(answers, plain))

    plain, stopped = own(x, memory, None), None
    answered = []
    for axes in (3, 4):
        form = as_form(mask, axes)
        try:
            answered.append(own(x, memory, form))
        except Wrong as wrong:
            stopped = wrong
            continue
        if right(mask, answered[-1]):
            return axes
    if stopped is not None and not answered:
        raise stopped
    look = "Check what the mask is compared with before the softmax (section 4.4)"
    if any(right(~mask, answers) for answers in answered):
        look = "True means that the query may look, and yours hides those places (section 4.4)"
    elif any(not far(answers, plain) for answers in answered):
        look = "The mask is not used: does it reach your attention? (section 4.4)"
    raise Wrong(
        "under a mask, (B, 1, S) or (B, 1, 1, S), the answers are wrong", look, mask=mask[:1]
    )


def as_form(mask: Tensor, axes: int) -> Tensor:
    """A mask (B, T, S) with as many axes as the reader's have: the fourth is for heads."""
    return mask if axes == 3 else mask[:, None]


def _hints(own: Heads, x: Tensor, memory: Tensor) -> list[str]:
    """The known mistakes that explain the answers."""
    y = own(x, memory, None)
    found = [layout.read(own.module, N_HEADS) for layout in layouts(own.module, N_HEADS)]
    return [
        f"Look at this: {said}"
        for said, how in FLAWS.items()
        if any(four and not far(y, flawed_heads(x, memory, four, **how)) for four in found)
    ]
