"""Where a written sentence begins and ends: what every search is given (chapter 10)."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from transformer.checks import check_number, check_positive, check_tokens, has_values, shape_text
from transformer.decoding.protocol import Decodable

FirstToken = int | Int[Tensor, "..."]  # of all sentences, or one of each, (B,)
PENALTY_RANGE = 1e30  # what a length penalty may multiply a score by, or divide it by: in float32


@dataclass(frozen=True)
class Limits:
    """A sentence begins after ``bos_id`` and ends with ``eos_id``, or after ``max_len`` tokens.

    ``bos_id`` is what the first step reads: one id for all sentences, or one for each. It is not
    part of what is written; ``eos_id`` is, and counts.
    """

    bos_id: FirstToken
    eos_id: int
    max_len: int

    def check(self, model: Decodable, n_sentences: int) -> None:
        """Raises ValueError, or TypeError, for what ``model`` cannot begin with, end with or hold.

        The padding id, if the model has one, can be neither the first token nor the last.
        """
        for name in ("max_len", "pad_id", "tgt_vocab_size", "takes_cache"):
            if not hasattr(model, name):
                inside = ": give the model in it, its .module" if hasattr(model, "module") else ""
                raise TypeError(f"model must have {name}, got {type(model).__name__}{inside}")
        check_positive(max_len=self.max_len)
        if self.max_len > model.max_len:
            raise ValueError(f"max_len must be at most {model.max_len}, got {self.max_len}")
        if isinstance(self.bos_id, Tensor):
            _check_first_tokens(model, self.bos_id, n_sentences)
        else:
            _check_id(model, bos_id=self.bos_id)
        _check_id(model, eos_id=self.eos_id)

    def first_tokens(self, n_sentences: int, device: torch.device | str) -> Int[Tensor, " n"]:
        """The token of each sentence that the first step reads."""
        return torch.zeros(n_sentences, dtype=torch.long, device=device) + self.bos_id

    def unwritten(self, *sizes: int, pad_id: int | None, device: torch.device | str) -> Tensor:
        """A tensor of these sizes, filled with what follows an end: padding, or else ``eos_id``."""
        return torch.full(sizes, self.eos_id if pad_id is None else pad_id, device=device)


def length_divisor(n_tokens: int, length_penalty: float) -> float:
    """((5 + n) / 6)^α, by which a sentence's log-probability is divided; chapter 10.

    Wu et al. (2016), Eq. 14, without coverage; ``n_tokens`` counts ``eos_id``.
    """
    return ((5 + n_tokens) / 6) ** length_penalty


def check_length_penalty(length_penalty: float, max_len: int) -> None:
    """Raises TypeError for what is no number, ValueError where it leaves no score to compare.

    At the length ``max_len``, :func:`length_divisor` must be between 1e-30 and 1e30.
    """
    check_number(length_penalty=length_penalty)
    if not math.isfinite(length_penalty):
        raise ValueError(f"length_penalty must be finite, got {length_penalty}")
    largest = math.log(PENALTY_RANGE) / math.log((5 + max(max_len, 2)) / 6)
    if abs(length_penalty) > largest:
        raise ValueError(
            f"length_penalty must be between {-largest:.4g} and {largest:.4g} for a max_len of "
            f"{max_len}, got {length_penalty}"
        )


def _check_first_tokens(model: Decodable, bos_id: Tensor, n_sentences: int) -> None:
    if bos_id.shape != (n_sentences,):
        raise ValueError(
            f"bos_id must be an integer, or have shape {shape_text((n_sentences,))} with an id for "
            f"each sentence, got {shape_text(bos_id.shape)}"
        )
    check_tokens(bos_id[:, None], model.tgt_vocab_size, name="bos_id")
    if model.pad_id is not None and has_values(bos_id) and (bos_id == model.pad_id).any():
        raise ValueError(f"bos_id must not hold the padding id, got {model.pad_id}")


def _check_id(model: Decodable, **ids: int) -> None:
    for name, token in ids.items():
        if not isinstance(token, int) or isinstance(token, bool):
            raise TypeError(f"{name} must be an integer, got {token!r}")
        if not 0 <= token < model.tgt_vocab_size:
            raise ValueError(f"{name} must be an id below {model.tgt_vocab_size}, got {token}")
        if token == model.pad_id:
            other = "; a model may have a pad_id that stands in no text, or None"
            raise ValueError(f"{name} must not be the padding id, got {token}{other}")
