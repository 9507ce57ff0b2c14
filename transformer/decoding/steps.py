"""One step of decoding after another, with a cache and without (chapter 10)."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from jaxtyping import Int
from torch import Tensor

from transformer.checks import check_positive, check_shape, check_tokens
from transformer.decoding.protocol import Decodable, Logits
from transformer.runtime import evaluating

FirstToken = int | Int[Tensor, " B"]  # of all sentences, or of each


class CachedSteps:
    """One step after another, each of one token: the model's state holds what came before."""

    def __init__(self, model: Decodable, src: Int[Tensor, "B S"], max_len: int):
        self.model, self.state = model, model.start_decoding(src, max_len=max_len)

    def next(self, tokens: Int[Tensor, " B"]) -> Logits:
        return self.model.decode_next(tokens, self.state)

    def select(self, rows: Int[Tensor, " N"]) -> None:
        self.state.select(rows)


class UncachedSteps:
    """The same logits the long way: each step reads all that is written once more."""

    def __init__(self, model: Decodable, src: Int[Tensor, "B S"], max_len: int):
        self.model, self.memory = model, model.encode(src)
        self.tgt = torch.empty(len(src), 0, dtype=torch.long, device=src.device)

    def next(self, tokens: Int[Tensor, " B"]) -> Logits:
        self.tgt = torch.cat([self.tgt, tokens[:, None]], dim=1)
        return self.model.decode(self.tgt, self.memory)[:, -1]

    def select(self, rows: Int[Tensor, " N"]) -> None:
        self.memory, self.tgt = self.memory.select(rows), self.tgt[rows]


Steps = CachedSteps | UncachedSteps


@contextmanager
def decoding_steps(
    model: Decodable,
    src: Int[Tensor, "B S"],
    bos_id: FirstToken,
    eos_id: int,
    max_len: int,
    use_cache: bool,
) -> Iterator[Steps]:
    """Checks what decoding is given, then runs it in evaluation mode and without gradients."""
    check_positive(max_len=max_len)
    if max_len > model.max_len:
        raise ValueError(f"max_len must be at most {model.max_len}, got {max_len}")
    if isinstance(bos_id, Tensor):
        check_tokens(bos_id[:, None], model.tgt_vocab_size, name="bos_id")
        check_shape(bos_id, len(src), name="bos_id")
    else:
        _check_id(model, bos_id=bos_id)
    _check_id(model, eos_id=eos_id)
    kind = CachedSteps if use_cache and model.takes_cache else UncachedSteps
    with evaluating(model), torch.inference_mode():
        yield kind(model, src, max_len)


def _check_id(model: Decodable, **ids: int) -> None:
    for name, token in ids.items():
        if not isinstance(token, int):
            raise TypeError(f"{name} must be an integer, got {token!r}")
        if not 0 <= token < model.tgt_vocab_size:
            raise ValueError(f"{name} must be an id below {model.tgt_vocab_size}, got {token}")
        if token == model.pad_id:
            raise ValueError(f"{name} must not be the padding id, got {token}")
