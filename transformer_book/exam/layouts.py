"""Where the reader's heads keep their four matrices: in what order, together or apart, turned.

A matrix may be an ``nn.Linear`` or a bare parameter, several may be one, and each head may have
its own. What remains open (which of four squares makes the keys?) is found by trying.
"""

from collections.abc import Iterator, Sequence, Set
from itertools import permutations, product
from typing import NamedTuple

import torch
from torch import Tensor, nn

from transformer.multihead import MultiHeadAttention


class Linear(NamedTuple):
    weight: Tensor  # (out, in)
    bias: Tensor | None
    known: bool  # whether out and in are


class Layout(NamedTuple):
    """Where to find W_q, W_k, W_v and W_o among the squares that ``squares`` gives."""

    by_head: bool
    turned: tuple[bool, ...]
    order: tuple[int, ...]

    def read(self, heads: nn.Module, n_heads: int) -> list[Linear] | None:
        found = squares(heads, n_heads, by_head=self.by_head)
        if found is None or len(found) != 4:
            return None
        turned = [
            each._replace(weight=each.weight.T) if turn else each
            for each, turn in zip(found, self.turned, strict=True)
        ]
        return [turned[i] for i in self.order]


def layouts(heads: nn.Module, n_heads: int) -> Iterator[Layout]:
    """All that are possible, the usual ones first."""
    for by_head in (False, True):
        found = squares(heads, n_heads, by_head=by_head)
        if found is None or len(found) != 4:
            continue
        for turned in product(*((False,) if each.known else (False, True) for each in found)):
            for order in permutations(range(4)):
                yield Layout(by_head, turned, order)


def linears(module: nn.Module, without: Set[int] = frozenset()) -> list[Linear] | None:
    """Every matrix with its bias, but for parameters ``without``; None where they do not pair."""
    found = []
    for owner in module.modules():
        own = [p for p in owner.parameters(recurse=False) if id(p) not in without]
        matrices = [p.detach() for p in own if p.dim() > 1]
        vectors = [p.detach() for p in own if p.dim() == 1]
        if matrices and vectors and len(matrices) != len(vectors):
            return None
        known = isinstance(owner, nn.Linear)
        for i, matrix in enumerate(matrices):
            found.append(Linear(matrix, vectors[i] if vectors else None, known))
    return found


def squares(heads: nn.Module, n_heads: int, *, by_head: bool) -> list[Linear] | None:
    """The matrices (d_model, d_model) that those of the reader are made of; None if unclear.

    Where several are one tensor, its rows go matrix by matrix, or head by head (``by_head``).
    """
    every = linears(heads)
    if not every:
        return None
    d = max(min(each.weight.shape[-2:]) for each in every)
    d = d if any(each.weight.shape[-1] == d for each in every) else 0
    whole: list[Linear] = []
    thin: list[Linear] = []
    for each in every:
        numbers = each.weight.numel()
        if d and numbers % (d * d) == 0:
            pieces = _cut(each, d, n_heads, by_head=by_head)
            if pieces is None:
                return None
            whole += pieces
        elif d and numbers * n_heads == d * d and set(each.weight.shape) == {d, d // n_heads}:
            if each.known and each.weight.size(0) == d:
                return None  # an output matrix for each head
            thin.append(each._replace(weight=_rows(each.weight, d)))
        else:
            return None
    if len(thin) % n_heads:
        return None
    n = len(thin) // n_heads
    groups = [thin[i::n] for i in range(n)] if by_head else [
        thin[i * n_heads : (i + 1) * n_heads] for i in range(n)
    ]  # fmt: skip
    return [_stacked(group) for group in groups] + whole


def _rows(weight: Tensor, d: int) -> Tensor:
    return weight if weight.size(-1) == d else weight.T


def _stacked(group: list[Linear]) -> Linear:
    biases = [each.bias for each in group if each.bias is not None]
    bias = torch.cat(biases) if len(biases) == len(group) else None
    return Linear(torch.cat([each.weight for each in group]), bias, known=True)


def _cut(each: Linear, d: int, n_heads: int, *, by_head: bool) -> list[Linear] | None:
    """One tensor of k d² numbers as k matrices (d, d)."""
    weight, k, d_k = each.weight, each.weight.numel() // (d * d), d // n_heads
    if weight.dim() == 4 and weight.size(0) == k and each.bias is None:
        several = [_cut(each._replace(weight=one), d, n_heads, by_head=False) for one in weight]
        return None if None in several else [one for cut in several for one in cut or ()]
    match tuple(weight.shape):
        case (a, b) if a == b == d:
            return [each]
        case (a, b) if d in (a, b):
            table, known = _rows(weight, d), True  # (k d, d)
        case (a, b, c) if (a, b, c) == (k, d, d):
            table, known = weight.reshape(k * d, d), False
        case (a, b, c) if (a, b, c) == (n_heads, d, d_k):
            table, known = weight.transpose(1, 2).reshape(d, d), False
        case (a, b, c) if (a, b, c) == (n_heads, d_k, d):
            table, known = weight.reshape(d, d), False
        case (a, b, c) if (a, b, c) == (d, n_heads, d_k):
            table, known = weight.reshape(d, d).T, False
        case _:
            return None
    biases: list[Tensor | None] = [None] * k
    if each.bias is not None and each.bias.numel() != k * d:
        return None
    if by_head and k > 1:
        pieces = table.view(n_heads, k, d_k, d).transpose(0, 1).reshape(k, d, d)
        if each.bias is not None:
            biases = [*each.bias.view(n_heads, k, d_k).transpose(0, 1).reshape(k, d)]
    else:
        pieces = table.reshape(k, d, d)
        biases = [*each.bias.view(k, d)] if each.bias is not None else biases
    return [Linear(piece, bias, known) for piece, bias in zip(pieces, biases, strict=True)]


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
