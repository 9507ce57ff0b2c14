"""Claims that are executed where they are made, and what "equal" means in them."""

import re
import unicodedata

import numpy as np
import torch
from torch import Tensor

# What the check of an exercise says of the solution is not a claim of the chapter's.
CLAIM = re.compile(r"^✓ (?!(?:Your turn|Exercise) \d+\.\d+\b)(.+)$", flags=re.MULTILINE)


def claim(text: str, holds: bool | np.bool_ | Tensor) -> None:
    """Print ``✓ text`` if ``holds``, else raise AssertionError with the text.

    The printed lines are what the book's ledger of claims is made of, so ``text`` is one line
    that can be understood by itself.

    Raises TypeError if ``holds`` is not one truth value: a list, a number or a forgotten call is
    nearly always true, and a claim that cannot fail is worth nothing. Raises ValueError if
    ``text`` is empty or longer than one line.
    """
    if not isinstance(text, str) or not text.strip() or len(text.splitlines()) > 1:
        raise ValueError(f"text must be one line that states the claim, got {text!r}")
    if isinstance(holds, Tensor) and holds.dtype == torch.bool and holds.dim() == 0:
        holds = holds.item()
    if not isinstance(holds, bool | np.bool_):
        raise TypeError(f"holds must be one truth value, got {type(holds).__name__}: {holds!r}")
    if not holds:
        raise AssertionError(text)
    print(f"✓ {text}")


def anchor_of(text: str) -> str:
    """Where the book's pages link to find the claim ``text``: "One, two" is claim-one-two.

    Words of every script count. What is no word is left out: marks and signs, raised and lowered
    characters as in 64², and Greek letters that stand alone, as symbols do.
    """
    text = unicodedata.normalize("NFC", text).lower()
    words = "".join(c if _is_in_words(c) else " " for c in text).split()
    return "-".join(["claim", *(word for word in words if not re.fullmatch("[α-ω]", word))])


def _is_in_words(character: str) -> bool:
    """Whether it is a letter, with the marks that belong to it, or a digit, and on the line."""
    raised_or_lowered = unicodedata.decomposition(character).startswith(("<super>", "<sub>"))
    return unicodedata.category(character)[0] in "LMN" and not raised_or_lowered


def close(a: Tensor, b: Tensor, *, tolerance: float = 1e-5) -> bool:
    """Whether a and b differ by no more than ``tolerance (1 + 10 |b|)`` in any entry.

    Raises ValueError where the shapes differ: a broadcast would compare what was not meant.
    """
    if a.shape != b.shape:
        raise ValueError(f"b must have the shape of a, {tuple(a.shape)}, got {tuple(b.shape)}")
    return torch.allclose(a, b, rtol=10 * tolerance, atol=tolerance)
