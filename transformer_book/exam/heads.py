"""Multi-head attention: what its answers may depend on, then the package's own answers."""

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from transformer.multihead import MultiHeadAttention
from transformer_book.exam.layouts import Layout, Linear, layouts, squares
from transformer_book.exam.marks import Mine, Wrong, far, module_of, shaken, tensor_of

NAME = "MultiHeadAttention"
D_MODEL, N_HEADS = 8, 2
B, T, S = 3, 5, 7
WITH_YOUR_WEIGHTS = "with your weights in it, the book's gives the same numbers"
PROPERTIES_ONLY = (
    "right in all that shows from outside; how you store the weights I cannot read, so they were "
    "not put into the book's"
)


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
    y = tensor_of(own.what, own(x, memory, None), (B, T, D_MODEL), x=x, memory=memory)
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
    return WITH_YOUR_WEIGHTS if layout else PROPERTIES_ONLY


def each_query_is_its_own(own: Heads, x: Tensor, memory: Tensor) -> None:
    """Raises Wrong where one query moves another's answer, or one key's place matters."""
    changed = x.clone()
    changed[0, 2] += 1
    y = own(x, memory, None)
    moved = (own(changed, memory, None) - y)[0].abs().amax(-1)
    if (moved[[0, 1, 3, 4]] > 1e-3).any():
        look = "Cut with view(B, T, n_heads, d_k).transpose(1, 2), and go back the same way."
        raise Wrong(
            "only the third of five queries was changed, but answers to others moved",
            *(_hints(own, x, memory) or [f"{look} (section 5.4)"]),
            answers_moved_by=moved,
        )
    if moved[2] < 1e-3:
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


def book_heads(own: nn.Module, layout: Layout, n_heads: int) -> MultiHeadAttention:
    """The package's heads with the reader's matrices."""
    found = layout.read(own, n_heads)
    if found is None:
        raise ValueError("layout must be one of own's, got another's")
    book = MultiHeadAttention(found[0].weight.size(0), n_heads)
    copy_heads(book, found)
    return book


@torch.no_grad()
def copy_heads(book: MultiHeadAttention, found: Sequence[Linear]) -> None:
    for linear, one in zip((book.W_q, book.W_k, book.W_v, book.W_o), found, strict=True):
        copy_linear(linear, one)


@torch.no_grad()
def copy_linear(book: nn.Linear, own: Linear) -> None:
    """A bias that the reader does without is zero."""
    book.weight.copy_(own.weight)
    if book.bias is not None:
        book.bias.copy_(own.bias if own.bias is not None else torch.zeros(()))


def _hints(own: Heads, x: Tensor, memory: Tensor) -> list[str]:
    """The known mistakes that explain the answers."""
    y = own(x, memory, None)
    found = [layout.read(own.module, N_HEADS) for layout in layouts(own.module, N_HEADS)]
    return [
        f"Look at this: {said}"
        for said, how in MISTAKES.items()
        if any(four and not far(y, flawed(x, memory, four, **how)) for four in found)
    ]


MISTAKES: dict[str, dict[str, Any]] = {
    "the scores are not divided by √d_k (section 4.1)": {"divisor": 1.0},
    "divide by √d_k, where d_k is the width of one head, d_model / n_heads (section 5.2)": {
        "divisor": D_MODEL**0.5
    },
    "divide by √d_k, not by d_k itself (section 4.1)": {"divisor": D_MODEL / N_HEADS},
    "the softmax runs over the queries; it should run over the keys (section 3.7)": {"dim": -2},
    "this is one head as wide as the model; are the rows cut into heads? (section 5.2)": {
        "divisor": D_MODEL**0.5, "n_heads": 1
    },
    "the rows are cut by a view straight to (B, n_heads, T, d_k), which mixes up places; cut with "
    "view(B, T, n_heads, d_k), then transpose(1, 2) (section 5.4)": {"cut": False},
    "the heads are put back without their transpose; transpose(1, 2) comes before the reshape "
    "(section 5.4)": {"merge": False},
    "W_o is not used; it mixes what the heads say (section 5.2)": {"last": False},
}  # fmt: skip


def flawed(
    x: Tensor,
    memory: Tensor,
    found: Sequence[Linear],
    *,
    n_heads: int = N_HEADS,
    divisor: float | None = None,
    dim: int = -1,
    cut: bool = True,
    merge: bool = True,
    last: bool = True,
) -> Tensor:
    """Multi-head attention, with what one may get wrong as arguments."""
    W_q, W_k, W_v, W_o = found

    def heads_of(rows: Tensor, linear: Linear) -> Tensor:
        made = nn.functional.linear(rows, linear.weight, linear.bias)
        if not cut:
            return made.reshape(len(made), n_heads, made.size(1), -1)
        return made.unflatten(-1, (n_heads, -1)).transpose(1, 2)

    q, k, v = heads_of(x, W_q), heads_of(memory, W_k), heads_of(memory, W_v)
    scores = q @ k.mT / (math.sqrt(q.size(-1)) if divisor is None else divisor)
    answers = scores.softmax(dim) @ v
    rows = answers.transpose(1, 2).flatten(2) if merge else answers.reshape(x.shape)
    return nn.functional.linear(rows, W_o.weight, W_o.bias) if last else rows
