"""Checks of what callers pass in, one for each kind of value, and how a shape is written."""

import math
from collections.abc import Collection, Iterable

import torch
from torch import Tensor, nn


def shape_text(sizes: Iterable[int | str]) -> str:
    """Sizes as Python writes a tuple, with letters where any size will do: (B, 3), (7,)."""
    sizes = list(sizes)
    return f"({', '.join(map(str, sizes))}{',' if len(sizes) == 1 else ''})"


def check_positive(**sizes: int) -> None:
    """Raises TypeError for a size that is no integer, ValueError for one below 1; names it."""
    for name, size in sizes.items():
        if not isinstance(size, int) or isinstance(size, bool):
            raise TypeError(f"{name} must be an integer, got {size!r}")
        if size < 1:
            raise ValueError(f"{name} must be positive, got {size}")


def check_number(**numbers: float) -> None:
    """Raises TypeError for what is no number; names it."""
    for name, number in numbers.items():
        if not isinstance(number, int | float) or isinstance(number, bool):
            raise TypeError(f"{name} must be a number, got {number!r}")


def check_share(**shares: float) -> None:
    """Raises TypeError for what is no number, ValueError unless it is at least 0 and below 1."""
    check_number(**shares)
    for name, share in shares.items():
        if not 0 <= share < 1:
            raise ValueError(f"{name} must be at least 0 and below 1, got {share}")


def check_finite_and_positive(**numbers: float) -> None:
    """Raises TypeError for what is no number, ValueError unless it is above 0 and finite."""
    check_number(**numbers)
    for name, number in numbers.items():
        if not 0 < number < math.inf:
            raise ValueError(f"{name} must be positive and finite, got {number}")


def check_choice(choices: Collection[str], **chosen: str) -> None:
    """Raises ValueError unless each is one of ``choices``."""
    for name, choice in chosen.items():
        if choice not in choices:
            raise ValueError(f"{name} must be one of {tuple(choices)}, got {choice!r}")


def check_pad_id(pad_id: int, src_vocab_size: int, tgt_vocab_size: int) -> None:
    """Raises TypeError for what is no integer, ValueError unless both vocabularies have the id."""
    if not isinstance(pad_id, int) or isinstance(pad_id, bool):
        raise TypeError(f"pad_id must be an integer, got {pad_id!r}")
    if not 0 <= pad_id < min(src_vocab_size, tgt_vocab_size):
        raise ValueError(f"pad_id must be an id of both vocabularies, got {pad_id}")


def check_heads(d_model: int, n_heads: int, n_key_heads: int | None = None) -> None:
    """Raises ValueError unless ``n_heads`` divides ``d_model``, and ``n_key_heads`` ``n_heads``."""
    check_positive(d_model=d_model, n_heads=n_heads)
    if d_model % n_heads:
        raise ValueError(f"d_model must be a multiple of n_heads, got {d_model} and {n_heads}")
    if n_key_heads is None:
        return
    check_positive(n_key_heads=n_key_heads)
    if n_heads % n_key_heads:
        raise ValueError(
            f"n_heads must be a multiple of n_key_heads, got {n_heads} and {n_key_heads}"
        )


def check_shape(tensor: Tensor, *wanted: int | str, name: str) -> None:
    """Raises ValueError unless ``tensor`` has the ``wanted`` sizes; a letter means any."""
    sizes = tensor.shape
    if len(sizes) != len(wanted) or any(
        isinstance(want, int) and size != want for size, want in zip(sizes, wanted, strict=True)
    ):
        raise ValueError(f"{name} must have shape {shape_text(wanted)}, got {shape_text(sizes)}")


def check_width(x: Tensor, width: int, *, name: str) -> None:
    """Raises ValueError unless the last axis of ``x`` is ``width`` long."""
    if x.dim() == 0 or x.size(-1) != width:
        raise ValueError(f"{name} must have shape (..., {width}), got {shape_text(x.shape)}")


def check_tokens(tokens: Tensor, vocab_size: int, *, name: str) -> None:
    """Raises ValueError unless ``tokens`` is (B, length ≥ 1), of integers in [0, vocab_size).

    The smallest and the largest id come to the CPU in one copy: on a GPU the check waits for
    whatever made the tokens, once. Where no values are to be had only the shape is checked.
    """
    check_ids(tokens, name=name)
    if has_values(tokens) and tokens.size(0):  # of no sentence, aminmax would fail
        smallest, largest = torch.stack(tokens.aminmax()).tolist()
        check_range(smallest, largest, vocab_size, name=name)


def check_ids(tokens: Tensor, *, name: str) -> None:
    """Raises ValueError unless ``tokens`` is (B, length ≥ 1), of integers."""
    if not isinstance(tokens, Tensor):
        raise TypeError(f"{name} must be a tensor of ids, got {type(tokens).__name__}")
    if tokens.dim() != 2:
        got = shape_text(tokens.shape)
        raise ValueError(f"{name} must have two axes (B, length), got shape {got}")
    if tokens.dtype not in (torch.int32, torch.int64):
        raise ValueError(f"{name} must hold integer ids, got {tokens.dtype}; want int64 or int32")
    if tokens.size(1) == 0:
        raise ValueError(f"{name} must have at least one position, got {shape_text(tokens.shape)}")


def check_range(smallest: int, largest: int, vocab_size: int, *, name: str) -> None:
    """Raises ValueError unless the ids between these two are in [0, vocab_size)."""
    if smallest < 0 or largest >= vocab_size:
        wrong = smallest if smallest < 0 else largest
        raise ValueError(f"{name} must hold ids from 0 to {vocab_size - 1}, got {wrong}")


def has_values(tensor: Tensor) -> bool:
    """Whether Python may look at the numbers: not while compiling, nor in a meta tensor.

    Nor in one of a class of its own, which may have none, as PyTorch's fake tensors, or have them
    in another process, as its distributed ones; nor in one that ``torch.func`` has wrapped, such as
    the batch of ``vmap``, which has no storage: its numbers are many at once.
    """
    if torch.compiler.is_compiling() or type(tensor) not in (Tensor, nn.Parameter):
        return False
    try:
        tensor.untyped_storage()
    except NotImplementedError:
        return False
    return not tensor.is_meta


def check_queries_and_keys(q: Tensor, k: Tensor, mask: Tensor | None) -> None:
    """Raises ValueError unless q (..., T, d_k), k (..., S, d_k) and the mask (T, S) fit."""
    _check_numbers(q=q, k=k)
    if q.dim() < 2:
        got = shape_text(q.shape)
        raise ValueError(f"q must have at least two axes (..., T, d_k), got {got}")
    if k.dim() != q.dim() or k.shape[:-2] != q.shape[:-2] or k.size(-1) != q.size(-1):
        wanted, fit = shape_text((*q.shape[:-2], "S", q.size(-1))), shape_text(q.shape)
        raise ValueError(f"k must have shape {wanted} to fit q {fit}, got {shape_text(k.shape)}")
    if mask is not None:
        check_mask(mask, (*q.shape[:-1], k.size(-2)))


def check_mask(mask: Tensor, scores: tuple[int, ...]) -> None:
    """Raises ValueError unless ``mask`` is boolean and broadcasts to ``scores``, (..., T, S)."""
    if mask.dtype != torch.bool:
        raise ValueError(f"mask must be bool with True = may attend, got {mask.dtype}")
    if mask.dim() > len(scores) or any(
        m not in (1, s) for m, s in zip(reversed(mask.shape), reversed(scores), strict=False)
    ):
        wanted, got = shape_text(scores), shape_text(mask.shape)
        raise ValueError(f"mask must broadcast to (..., T, S) = {wanted}, got {got}")


def check_values(k: Tensor, v: Tensor) -> None:
    """Raises ValueError unless there is one value per key."""
    _check_numbers(v=v)
    if v.shape[:-1] != k.shape[:-1]:
        wanted, got = shape_text((*k.shape[:-1], "d_v")), shape_text(v.shape)
        raise ValueError(f"v must have shape {wanted}, one value per key, got {got}")


def _check_numbers(**tensors: Tensor) -> None:
    for name, tensor in tensors.items():
        if not tensor.is_floating_point():
            raise ValueError(f"{name} must hold floating-point numbers, got {tensor.dtype}")
