"""One step of decoding after another, with a cache and without (chapter 10)."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from jaxtyping import Int
from torch import Tensor

from transformer.decoding.limits import Limits
from transformer.decoding.protocol import Decodable, Logits
from transformer.runtime import evaluating


class CachedSteps:
    """One step after another, each of one token: the model's state holds what came before."""

    def __init__(self, model: Decodable, src: Int[Tensor, "B S"], max_len: int):
        self.model, self.state = model, model.start_decoding(src, max_len=max_len)

    def next(self, tokens: Int[Tensor, " B"]) -> Logits:
        """The logits after one more token of each row."""
        return self.model.decode_next(tokens, self.state)

    def select(self, rows: Int[Tensor, " N"]) -> None:
        """Goes on with these rows, in this order; one may be named more than once."""
        self.state.select(rows)


class UncachedSteps:
    """The logits of :class:`CachedSteps`, for which each step reads again all that is written."""

    def __init__(self, model: Decodable, src: Int[Tensor, "B S"], max_len: int):
        self.model, self.memory = model, model.encode(src)
        self.tgt = torch.empty(len(src), 0, dtype=torch.long, device=src.device)

    def next(self, tokens: Int[Tensor, " B"]) -> Logits:
        """The logits after one more token of each row."""
        self.tgt = torch.cat([self.tgt, tokens[:, None]], dim=1)
        return self.model.decode(self.tgt, self.memory)[:, -1]

    def select(self, rows: Int[Tensor, " N"]) -> None:
        """Goes on with these rows, in this order; one may be named more than once."""
        self.memory, self.tgt = self.memory.select(rows), self.tgt[rows]


Steps = CachedSteps | UncachedSteps


@contextmanager
def decoding_steps(
    model: Decodable, src: Int[Tensor, "B S"], limits: Limits, *, use_cache: bool
) -> Iterator[Steps]:
    """Steps of decoding in evaluation mode and without gradients, once ``limits`` are checked."""
    limits.check(model, len(src))
    kind = CachedSteps if use_cache and model.takes_cache else UncachedSteps
    with evaluating(model), torch.inference_mode():
        yield kind(model, src, limits.max_len)


def not_a_number() -> ValueError:
    """The error of a search whose logits are NaN or ∞, which cannot be compared."""
    return ValueError(
        "model must give logits that are numbers, got NaN or infinity: some of its weights, "
        "or of what it makes of src, are not finite"
    )
