"""Multi-head attention: what its answers may depend on, then the package's own answers."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from transformer.multihead import MultiHeadAttention
from transformer_book.exam import flaws
from transformer_book.exam.modules import (
    MOVED,
    UNNOTICED,
    WITH_YOUR_WEIGHTS,
    Yours,
    changed,
    far,
)
from transformer_book.exam.reader import Mine, can_take, hinted
from transformer_book.exam.report import Wrong
from transformer_book.exam.weights import SIZES, book_heads

NAME = "MultiHeadAttention"
B, T, S = 3, 5, 7
OTHER_SIZES = ((4, 1), (12, 3))


class Heads(Yours):
    """Asked with (query, key, value, mask), whichever of two ways the reader's are written for."""

    flaws = flaws.HEADS

    def __init__(
        self, mine: Mine, d_model: int = SIZES["d_model"], n_heads: int = SIZES["n_heads"]
    ):
        sizes = {"d_model": d_model, "n_heads": n_heads}
        make = mine.get(NAME, *sizes)
        self.takes_value = can_take(getattr(make, "forward", make), 5)  # self is the first
        takes = ("query", "key", "value", "mask") if self.takes_value else ("x", "memory", "mask")
        super().__init__(mine, NAME, sizes, takes)

    def __call__(self, *arguments: Any) -> Tensor:
        query, key, value, mask = arguments
        return super().__call__(*((query, key, value) if self.takes_value else (query, key)), mask)

    def books(self) -> Iterator[MultiHeadAttention]:
        yield book_heads(self.module, **self.sizes)


@torch.no_grad()
def ask_heads(mine: Mine) -> str:
    heads, draw = Heads(mine), torch.Generator().manual_seed(1)
    x, memory = (torch.randn(B, n, SIZES["d_model"], generator=draw) for n in (T, S))
    short, look = memory[:, :T], "it works only where memory is as long as x. The queries come "
    look += "from x, keys and values from memory (section 3.5)"
    with hinted(lambda _: look if heads.works(x, short, short, None) else ""):
        heads(x, memory, memory, None)
    heads.steady(x, memory, memory, None)
    _each_query_is_its_own(heads, x, memory)
    mask = torch.rand(B, 1, 1, S, generator=torch.Generator().manual_seed(2)) < 0.6
    mask[..., 0], mask[..., 1] = True, False
    _learn_the_axes_of_masks(heads, x, memory, mask)
    others = [Heads(mine, *sizes) for sizes in OTHER_SIZES]
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
    question = x, memory, memory, None
    moved = heads.moved(question, (changed(x, 2), memory, memory, None))
    if (moved[[0, 1, 3, 4]] > MOVED).any():
        look = "Cut with view(B, T, n_heads, d_k).transpose(1, 2), and go back the same way."
        raise Wrong(
            "only the third of five queries was changed, but answers to others moved",
            heads.hint(*question) or f"{look} (section 5.4)",
            answers_moved_by=moved,
        )
    if moved[2] < UNNOTICED:
        look = "The queries come from the first argument, keys and values from the second"
        raise Wrong("a query was changed, and its answer did not move", f"{look} (section 3.5)")
    turned = memory.flip(1)
    if (heads.moved(question, (x, turned, turned, None)) > MOVED).any():
        look = "Are the keys and the values cut into heads in the same way? (section 5.4)"
        raise Wrong(
            "the keys, with their values, came in another order; the answers moved",
            heads.hint(*question) or look,
        )


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
