"""A module of the reader's: made, asked, and held against the package's with the same weights."""

import contextlib
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from transformer_book.exam.flaws import Change, flaw_of
from transformer_book.exam.reader import Mine, check_takes
from transformer_book.exam.report import NotThereYet, Wrong

ALL = slice(None)
MOVED, UNNOTICED = 1e-3, 1e-5  # float32 leaves some 1e-6 where nothing has moved
WITH_YOUR_WEIGHTS = "with your weights in it, the book's gives the same numbers"


def far(a: Tensor, b: Tensor, tolerance: float = 1e-3) -> bool:
    """Whether two tensors differ, in shape or by more than rounding."""
    return a.shape != b.shape or not torch.allclose(a, b, rtol=tolerance, atol=tolerance)


def changed(x: Tensor, place: int) -> Tensor:
    """``x`` (B, T, d_model) with another vector at one place of the first of the batch."""
    x = x.clone()
    x[0, place, ::2] += 1
    return x


def made(mine: Mine, name: str, sizes: dict[str, int], takes: tuple[str, ...]) -> nn.Module:
    """What the reader's class makes, in evaluation mode; it can be called with what it takes."""
    module = mine.call(name, mine.get(name, *sizes), **sizes)
    if not isinstance(module, nn.Module):
        look = f"Write class {name}(nn.Module), and super().__init__() first in its __init__."
        raise Wrong(f"{name} makes no nn.Module, so nobody finds its parameters", look)
    check_takes("forward", module.forward, takes)
    return module.eval()


def padding_axes(mine: Mine) -> int | None:
    """How many axes the reader's padding mask has, if there is one."""
    with contextlib.suppress(Exception):  # the reader's, whatever it is: its own part tells it
        return mine.get("padding_mask", "tokens")(torch.tensor([[4, 2, 0]])).dim()
    return None


def mask_axes(mine: Mine) -> int:
    """How many axes the reader's masks have: as the heads take them, or the padding mask has."""
    return mine.mask_axes or padding_axes(mine) or 3


class Yours:
    """The reader's module in evaluation mode, shaken, for the numbers of a new one hide mistakes.

    It and what it is held against take the same arguments; among them a mask is (B, 1, T, S), and
    the reader's gets it with as many axes as the reader's masks have.
    """

    flaws: dict[str, Change]

    def __init__(self, mine: Mine, name: str, sizes: dict[str, int], takes: tuple[str, ...]):
        self.mine, self.sizes, self.takes = mine, sizes, takes
        self.what = f"{name}({', '.join(map(str, sizes.values()))})"
        torch.manual_seed(0)
        self.module = made(mine, name, sizes, takes)
        draw = torch.Generator().manual_seed(0)
        with torch.no_grad():
            for parameter in self.module.parameters():
                parameter.add_(0.3 * torch.randn(parameter.shape, generator=draw))

    def __call__(self, *arguments: Any) -> Tensor:
        """Its answer. Raises Wrong if that is no tensor of numbers, of the right shape."""
        named = dict(zip(self.takes, map(self._as_yours, arguments), strict=True))
        answer = self.mine.call(self.what, self.module, **named)
        if not isinstance(answer, Tensor):
            raise Wrong(f"{self.what} gives a {type(answer).__name__}, and a tensor is wanted")
        shape = self.shape_for(*arguments)
        if tuple(answer.shape) != shape:
            symptom = f"the answer of {self.what} has shape {tuple(answer.shape)}, and {shape} is "
            raise Wrong(f"{symptom}wanted", **named)
        if answer.isnan().any():
            look = "Does a mask leave some query nothing at all? Softmax of nothing but -inf is nan"
            raise Wrong(f"{self.what} gives nan, which is no number", f"{look} (section 4.5)")
        return answer.detach()

    def _as_yours(self, argument: Any) -> Any:
        is_mask = argument is not None and argument.dtype == torch.bool
        return argument[:, 0] if is_mask and mask_axes(self.mine) == 3 else argument

    def shape_for(self, *arguments: Any) -> tuple[int, ...]:
        """The shape that the answer to ``arguments`` must have."""
        return tuple(arguments[0].shape)

    def works(self, *arguments: Any) -> bool:
        try:
            self(*arguments)
        except Wrong:
            return False
        return True

    def steady(self, *arguments: Any) -> Tensor:
        """Its answer. Raises Wrong where chance has a say in evaluation mode."""
        answer = self(*arguments)
        if far(self(*arguments), answer):
            look = "What is random, such as dropout, must stop at model.eval() (section 9.5)"
            raise Wrong("the same call twice gives two answers", look)
        return answer

    def moved(self, before: tuple, after: tuple) -> Tensor:
        """How far each place of the first answer of the batch moves, from one call to another."""
        return (self(*after) - self(*before))[0].abs().amax(-1)

    def check_stays(
        self, before: tuple, after: tuple, places: Any, symptom: str, look: str, **example: Tensor
    ) -> None:
        """Raises Wrong where the answer moves at one of ``places``, which must not notice."""
        moved = self.moved(before, after)
        if (moved[places] > MOVED).any():
            raise Wrong(symptom, self.hint(*before) or look, **example, moved_by=moved)

    def check_moves(
        self, before: tuple, after: tuple, places: Any, symptom: str, look: str, **example: Tensor
    ) -> None:
        """Raises Wrong where the answer moves at none of ``places``, which must notice."""
        if (self.moved(before, after)[places] < UNNOTICED).all():
            raise Wrong(symptom, self.hint(*before) or look, **example)

    def books(self) -> Iterable[Any]:
        """The package's modules with the reader's weights, one of which is to be the same."""
        raise NotImplementedError

    def hint(self, *arguments: Any) -> str:
        """The hint of the first known mistake that gives the reader's answer; "" if none does."""
        with contextlib.suppress(NotThereYet, Wrong):
            answer = self(*arguments)
            return flaw_of(self.books(), self.flaws, lambda book: not far(book(*arguments), answer))
        return ""

    def the_same(self, *arguments: Any, otherwise: str, **example: Tensor) -> Any:
        """The first of the books that gives the same answer; raises Wrong if there is none."""
        answer, books = self(*arguments), [*self.books()]
        for book in books:
            if not far(book(*arguments), answer):
                return book
        raise Wrong(
            "with your weights in it, the book's gives other numbers",
            self.hint(*arguments) or otherwise,
            **example,
            first_row_expected=books[0](*arguments)[0, 0],
            you_gave=answer[0, 0],
        )
