"""Who may attend to whom: boolean masks, True = may attend (chapter 4).

A model makes its masks once in a forward pass, and notes on them what it knows of them, so that no
attention looks at them again: on a GPU a look is a wait. The notes:

- ``"full"``: it holds no False, so that a kernel needs no mask;
- ``"causal"``: it is ``causal_mask(T)``, which a kernel applies by itself;
- ``"right"``: of a padding mask, padding stands only behind words, and each sentence has a word;
- ``"keyed"``: every query has a key.

A mask without a note may be any; what is computed from a mask has no note, and a note ends where
the mask is changed in place. Compiled code cannot see that: there a mask that was noted outside may
be any, and one that is noted inside must be left as it is.
"""

from typing import Literal

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from transformer.checks import check_ids, check_range, has_values

Note = Literal["full", "causal", "right", "keyed"]


def padding_mask(tokens: Int[Tensor, "B S"], pad_id: int | None = 0) -> Bool[Tensor, "B 1 1 S"]:
    """True where ``tokens`` is a word, False where it is padding; chapter 4.

    The two middle axes broadcast over heads and queries. With a ``pad_id`` of None all are words.

    Raises ValueError if ``tokens`` is not a (B, S) tensor of integers.
    """
    if tokens.dim() != 2:
        raise ValueError(f"tokens must have two axes (B, S), got shape {tuple(tokens.shape)}")
    if tokens.dtype == torch.bool or tokens.is_floating_point() or tokens.is_complex():
        raise ValueError(f"tokens must hold integer ids, got {tokens.dtype}")
    words = torch.ones_like(tokens, dtype=torch.bool) if pad_id is None else tokens != pad_id
    return words[:, None, None, :]


def causal_mask(T: int, *, device: torch.device | str | None = None) -> Bool[Tensor, "{T} {T}"]:
    """True on and below the diagonal: position t may attend to 0 … t; chapter 4.

    Raises ValueError if ``T`` is negative.
    """
    if T < 0:
        raise ValueError(f"T must not be negative, got {T}")
    return torch.ones(T, T, dtype=torch.bool, device=device).tril()


def checked_padding_mask(
    tokens: Int[Tensor, "B S"], pad_id: int | None, vocab_size: int, max_len: int, *, name: str
) -> Bool[Tensor, "B 1 1 S"]:
    """The :func:`padding_mask` of ids that a model is given, with a note where there can be one.

    Ids and padding are looked at together: a few numbers come to the CPU in one copy, the only one
    for which a forward pass on a GPU waits. Where no values are to be had (``torch.compile``, which
    they would cut in two, fake tensors, ``vmap``) only the shape is checked.

    Raises ValueError, which calls the ids ``name``, unless they are (B, 1 ≤ S ≤ ``max_len``), of
    ``vocab_size``.
    """
    check_ids(tokens, name=name)
    length = tokens.size(1)
    if length > max_len:
        raise ValueError(f"{name} must be no longer than max_len = {max_len}, got {length} tokens")
    mask = padding_mask(tokens, pad_id)
    if not has_values(tokens) or tokens.size(0) == 0:  # of no sentence, aminmax would fail
        return noted(mask, None if pad_id is not None else "full")
    words = mask[:, 0, 0]
    numbers = [*tokens.aminmax(), (words[:, 1:] <= words[:, :-1]).all(), words[:, 0].all()]
    smallest, largest, words_first, first_is_word = torch.stack(numbers).tolist()
    check_range(smallest, largest, vocab_size, name=name)
    if pad_id is None or not smallest <= pad_id <= largest:
        return noted(mask, "full")
    return noted(mask, "right") if words_first and first_is_word else mask


def decoder_mask(
    words: Bool[Tensor, "B 1 1 T"], window: int | None = None
) -> Bool[Tensor, "*#B T T"]:
    """A word at t may attend to the words among 0 … t, padding to all of them.

    With a ``window`` only the last so many positions are seen, t itself counted (chapter 16).
    What padding attends to is never read. It might as well be nothing, but so no query is without
    a key; and where padding is on the right, this is the causal mask alone.
    """
    T = words.size(-1)
    earlier = causal_mask(T, device=words.device)
    if window is not None and window < T:
        earlier = noted(earlier.triu(1 - window), "keyed")
    else:
        earlier = noted(earlier, "causal")
    if note_of(words) in ("full", "right"):
        return earlier
    return noted((words | ~words.mT) & earlier, "keyed")  # (B, 1, T, T)


def word_positions(words: Bool[Tensor, "B 1 1 T"]) -> int | Int[Tensor, "B T"]:
    """The position of each token: the first word of each text is at 0, padding before it or not.

    Where words are known to come first, it is the start alone, 0.
    """
    if note_of(words) in ("full", "right"):
        return 0
    n_before = (words[:, 0, 0].cumsum(dim=-1) == 0).sum(dim=-1, keepdim=True)  # (B, 1)
    return (torch.arange(words.size(-1), device=words.device) - n_before).clamp(min=0)


def noted(mask: Tensor, note: Note | None, *, for_good: bool = False) -> Tensor:
    """The mask with a note, which ends where the mask is changed in place.

    It is the mask itself, or in inference mode, whose tensors do not count their changes, a copy.
    With ``for_good`` the caller promises that nobody changes it; compiled code may believe that.
    """
    if note is None:
        return mask
    for_good = for_good or torch.compiler.is_compiling()
    if not for_good and mask.is_inference():
        with torch.inference_mode(False):
            mask = mask.clone()
    mask.note = note, None if for_good else _state_of(mask)  # type: ignore[attr-defined]
    return mask


def note_of(mask: Tensor) -> Note | None:
    """The note on a mask, or None where there is none or the mask has been changed since."""
    note, state = getattr(mask, "note", (None, None))
    if state is None:
        return note
    return None if torch.compiler.is_compiling() or state != _state_of(mask) else note


def _state_of(mask: Tensor) -> tuple[int, int]:
    return id(mask), mask._version  # a deep copy takes the note along, and counts anew
