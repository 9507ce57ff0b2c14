"""Multi-head attention: what its answers may depend on, then the package's own answers."""

import contextlib

import torch
from torch import Tensor, nn

from transformer_book.exam.flaws import flaw_of_heads
from transformer_book.exam.reader import (
    MOVED,
    UNNOTICED,
    WITH_YOUR_WEIGHTS,
    Mine,
    can_take,
    check_steady,
    far,
    module_of,
    shaken,
    tensor_of,
)
from transformer_book.exam.report import NotThereYet, Wrong
from transformer_book.exam.weights import SIZES, book_heads

NAME = "MultiHeadAttention"
B, T, S = 3, 5, 7
D_MODEL, N_HEADS = SIZES["d_model"], SIZES["n_heads"]
OTHER_SIZES = ((4, 1), (12, 3))


class Heads:
    """The reader's heads, shaken, called in whichever of two ways they are written for."""

    def __init__(self, mine: Mine, d_model: int = D_MODEL, n_heads: int = N_HEADS):
        sizes = {"d_model": d_model, "n_heads": n_heads}
        make = mine.get(NAME, *sizes)
        is_module = isinstance(make, type) and issubclass(make, nn.Module)
        self.takes_three = is_module and can_take(make.forward, 5)  # self is the first
        takes = ("query", "key", "value", "mask") if self.takes_three else ("x", "memory", "mask")
        torch.manual_seed(0)
        self.module = shaken(module_of(mine, NAME, sizes, takes))
        self.mine, self.what = mine, f"{NAME}({d_model}, {n_heads})({', '.join(takes)})"

    def __call__(self, x: Tensor, memory: Tensor, mask: Tensor | None) -> Tensor:
        arguments = (x, memory, memory, mask) if self.takes_three else (x, memory, mask)
        return self.mine.call(self.what, self.module, *arguments)

    def hints(self, x: Tensor, memory: Tensor) -> list[str]:
        """The known mistake that explains the answers, if one does."""
        with contextlib.suppress(NotThereYet):
            book = book_heads(self.module, D_MODEL, N_HEADS)
            hint = flaw_of_heads(book, x, memory, self(x, memory, None))
            return [f"Look at this: {hint}"] if hint else []
        return []


@torch.no_grad()
def ask_heads(mine: Mine) -> str:
    heads = Heads(mine)
    draw = torch.Generator().manual_seed(1)
    x, memory = (torch.randn(B, n, D_MODEL, generator=draw) for n in (T, S))
    y = _first_answer(heads, x, memory)
    check_steady(y, heads(x, memory, None))
    _each_query_is_its_own(heads, x, memory)
    mask = torch.rand(B, 1, S, generator=torch.Generator().manual_seed(2)) < 0.6
    mask[..., 0], mask[..., 1] = True, False
    mine.mask_axes = _axes_of_a_mask(heads, x, memory, mask)
    others = [Heads(mine, *sizes) for sizes in OTHER_SIZES]
    answers = []
    for other, (d_model, _) in zip(others, OTHER_SIZES, strict=True):
        rows = torch.randn(2, 4, d_model, generator=draw)
        answers.append((rows, tensor_of(other.what, other(rows, rows, None), (2, 4, d_model))))
    book = book_heads(heads.module, D_MODEL, N_HEADS)
    expected = book(x, memory, memory)
    masked = book(x, memory, memory, mask[:, None])
    if far(expected, y) or far(masked, heads(x, memory, as_form(mask, mine.mask_axes))):
        stored = "Do they have a bias, or cut other columns into heads? Then say so in book_names"
        raise Wrong(
            "with your matrices in them, the book's heads give other answers",
            *(heads.hints(x, memory) or [stored]),
            first_row_expected=expected[0, 0],
            you_gave=y[0, 0],
        )
    for other, sizes, (rows, answer) in zip(others, OTHER_SIZES, answers, strict=True):
        if far(answer, book_heads(other.module, *sizes)(rows, rows, rows)):
            look = "Is there a number in it that should come from d_model or n_heads?"
            raise Wrong(f"right for ({D_MODEL}, {N_HEADS}), not for {sizes}", look)
    return WITH_YOUR_WEIGHTS


def _first_answer(heads: Heads, x: Tensor, memory: Tensor) -> Tensor:
    """Raises Wrong, with another reason where it works for a memory as long as ``x``."""
    try:
        return tensor_of(heads.what, heads(x, memory, None), (B, T, D_MODEL), x=x, memory=memory)
    except Wrong as wrong:
        try:
            heads(x, memory[:, :T], None)
        except Wrong:
            raise wrong from None
        raise Wrong(
            f"it works only where memory is as long as x\n    {wrong}",
            "The queries come from x, keys and values from memory (section 3.5)",
        ) from wrong


def _each_query_is_its_own(heads: Heads, x: Tensor, memory: Tensor) -> None:
    """Raises Wrong where one query moves another's answer, or one key's place matters."""
    changed = x.clone()
    changed[0, 2, ::2] += 1
    y = heads(x, memory, None)
    moved = (heads(changed, memory, None) - y)[0].abs().amax(-1)
    if (moved[[0, 1, 3, 4]] > MOVED).any():
        look = "Cut with view(B, T, n_heads, d_k).transpose(1, 2), and go back the same way."
        raise Wrong(
            "only the third of five queries was changed, but answers to others moved",
            *(heads.hints(x, memory) or [f"{look} (section 5.4)"]),
            answers_moved_by=moved,
        )
    if moved[2] < UNNOTICED:
        look = "The queries come from the first argument, keys and values from the second"
        raise Wrong("a query was changed, and its answer did not move", f"{look} (section 3.5)")
    if far(heads(x, memory.flip(1), None), y):
        look = "Are the keys and the values cut into heads in the same way? (section 5.4)"
        raise Wrong(
            "the keys, with their values, came in another order; the answers moved",
            *(heads.hints(x, memory) or [look]),
        )


def _axes_of_a_mask(heads: Heads, x: Tensor, memory: Tensor, mask: Tensor) -> int:
    """Whether the reader's masks have three axes or four. Raises Wrong if neither is right."""
    plain, stopped, answers = heads(x, memory, None), None, []
    for axes in (3, 4):
        form = as_form(mask, axes)
        try:
            answers.append(heads(x, memory, form))
        except Wrong as wrong:
            stopped = wrong
            continue
        shown, hidden = (memory.masked_fill(see.mT, 9.0) for see in (mask, ~mask))
        if not far(answers[-1], heads(x, hidden, form)) and far(answers[-1], plain):
            return axes
        if not far(answers[-1], heads(x, shown, form)):
            look = "True means that the query may look, and yours hides those places (section 4.4)"
            raise Wrong("under a mask the answers come from what it hides", look, mask=mask[:1])
    if stopped is not None and not answers:
        raise stopped
    look = "Check what the mask is compared with before the softmax (section 4.4)"
    if any(not far(answer, plain) for answer in answers):
        look = "The mask is not used: does it reach your attention? (section 4.4)"
    raise Wrong(
        "under a mask, (B, 1, S) or (B, 1, 1, S), the answers are wrong",
        *(heads.hints(x, memory) or [look]),
        mask=mask[:1],
    )


def as_form(mask: Tensor, axes: int) -> Tensor:
    """A mask (B, T, S) with as many axes as the reader's have: the fourth is for heads."""
    return mask if axes == 3 else mask[:, None]
