"""From logits to sentences: greedy, sampled and beam search, cached and in batches (chapter 10).

The model is a Transformer or any other with its ``encode``, ``decode``, ``start_decoding`` and
``decode_next``.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from transformer.beams import Beams
from transformer.checks import check_positive
from transformer.layers import evaluating

Logits = Float[Tensor, "B vocab"]


def greedy_decode(
    model: nn.Module,
    src: Int[Tensor, "B S"],
    *,
    bos_id: int,
    eos_id: int,
    max_len: int,
    use_cache: bool = True,
) -> Int[Tensor, "B length"]:
    """The likeliest token at each step, until each sentence has its ``eos_id``; chapter 10.

    Without ``bos_id``; padding follows ``eos_id``; no sentence is longer than ``max_len``. Without
    the cache every step computes the whole sentence anew, which gives the same tokens; under
    :func:`~transformer.multihead.record_attention` it does so too.

    Raises ValueError for ids outside the vocabulary and a ``max_len`` past the model's.
    """
    return _decode(model, src, _likeliest, bos_id, eos_id, max_len, use_cache)


def sample(
    model: nn.Module,
    src: Int[Tensor, "B S"],
    *,
    bos_id: int,
    eos_id: int,
    max_len: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
    use_cache: bool = True,
) -> Int[Tensor, "B length"]:
    """A token drawn from softmax(logits / temperature) at each step; chapter 10.

    ``top_k`` keeps the k likeliest (Fan et al., 2018), ``top_p`` the fewest that together reach
    the probability p (Holtzman et al., 2020); with both, ``top_k`` comes first. The rest is as in
    :func:`greedy_decode`.

    Raises ValueError for a ``temperature`` or ``top_k`` that is not positive, a ``top_p`` outside
    (0, 1], and what :func:`greedy_decode` refuses.
    """
    if not 0 < temperature < math.inf:
        raise ValueError(f"temperature must be positive and finite, got {temperature}")
    if top_k is not None:
        check_positive(top_k=top_k)
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(f"top_p must be above 0 and at most 1, got {top_p}")

    def draw(logits: Logits) -> Int[Tensor, " B"]:
        kept = _nucleus(_likeliest_k(logits.float() / temperature, top_k), top_p)
        return torch.multinomial(kept.softmax(dim=-1), 1, generator=generator)[:, 0]

    return _decode(model, src, draw, bos_id, eos_id, max_len, use_cache)


def beam_search(
    model: nn.Module,
    src: Int[Tensor, "B S"],
    *,
    bos_id: int,
    eos_id: int,
    max_len: int,
    beam_size: int = 4,
    length_penalty: float = 0.6,
    use_cache: bool = True,
) -> tuple[Int[Tensor, "B length"], Float[Tensor, " B"]]:
    """The best of the ``beam_size`` sentences found first, and its log-probability; chapter 10.

    A sentence Y of n tokens scores log P(Y | X) / ((5 + n) / 6)^length_penalty, Wu et al. (2016),
    Eq. 14 without coverage; n counts ``eos_id``. At each step the ``beam_size`` best continuations
    stay, and those that end are set aside; a search ends when it has set aside ``beam_size``. If
    none ended within ``max_len`` the best unfinished one is returned. ``beam_size`` 1 is
    :func:`greedy_decode`.

    Raises ValueError for a ``beam_size`` below 1 and what :func:`greedy_decode` refuses.
    """
    check_positive(beam_size=beam_size)
    if not math.isfinite(length_penalty):
        raise ValueError(f"length_penalty must be finite, got {length_penalty}")
    with _decoding(model, src, bos_id, eos_id, max_len, use_cache) as steps:
        ids = {"bos_id": bos_id, "eos_id": eos_id, "pad_id": model.pad_id}
        sizes = {"max_len": max_len, "length_penalty": length_penalty, "device": src.device}
        beams = Beams(len(src), beam_size, **sizes, **ids)
        steps.select(beams.first_rows())
        for _ in range(max_len):
            rows = beams.advance(steps.next(beams.last_tokens()))
            if len(rows) == 0:
                break
            steps.select(rows)
        tokens, log_p = beams.best()
    return tokens.clone(), log_p.clone()


class _Cached:
    def __init__(self, model, src, max_len):
        self.model, self.state = model, model.start_decoding(src, max_len=max_len)

    def next(self, tokens: Int[Tensor, " B"]) -> Logits:
        return self.model.decode_next(tokens, self.state)

    def select(self, rows: Int[Tensor, " N"]) -> None:
        self.state.select(rows)


class _Uncached:
    def __init__(self, model, src, max_len):
        self.model, self.src, self.memory = model, src, model.encode(src)
        self.tgt = torch.empty(len(src), 0, dtype=torch.long, device=src.device)

    def next(self, tokens: Int[Tensor, " B"]) -> Logits:
        self.tgt = torch.cat([self.tgt, tokens[:, None]], dim=1)
        return self.model.decode(self.tgt, self.memory, self.src)[:, -1]

    def select(self, rows: Int[Tensor, " N"]) -> None:
        self.src, self.memory, self.tgt = self.src[rows], self.memory[rows], self.tgt[rows]


@contextmanager
def _decoding(model, src, bos_id, eos_id, max_len, use_cache) -> Iterator[_Cached | _Uncached]:
    """One step after another, in evaluation mode and without gradients."""
    check_positive(max_len=max_len)
    if max_len > getattr(model, "max_len", math.inf):
        raise ValueError(f"max_len must be at most {model.max_len}, got {max_len}")
    vocab_size = model.output.weight.size(0)
    for name, token in {"bos_id": bos_id, "eos_id": eos_id}.items():
        if not isinstance(token, int):
            raise TypeError(f"{name} must be an integer, got {token!r}")
        if not 0 <= token < vocab_size:
            raise ValueError(f"{name} must be an id below {vocab_size}, got {token}")
        if token == model.pad_id:
            raise ValueError(f"{name} must not be the padding id, got {token}")
    recorded = any(getattr(module, "record", None) for module in model.modules())
    with evaluating(model), torch.inference_mode():
        kind = _Cached if use_cache and not recorded else _Uncached
        yield kind(model, src, max_len)


def _decode(model, src, choose: Callable, bos_id, eos_id, max_len, use_cache) -> Tensor:
    """One token a step for each sentence, which leaves the batch after its ``eos_id``."""
    with _decoding(model, src, bos_id, eos_id, max_len, use_cache) as steps:
        out = torch.full((len(src), max_len), model.pad_id, device=src.device)  # int64
        going = torch.arange(len(src), device=src.device)  # which sentences are not done
        tokens = torch.full((len(src),), bos_id, device=src.device)
        for t in range(max_len):
            logits = steps.next(tokens)
            logits.select(1, model.pad_id).fill_(-math.inf)  # padding is not a word
            tokens = choose(logits)
            out[going, t] = tokens
            on = tokens != eos_id
            if not on.all():
                if not on.any():
                    break
                going, tokens = going[on], tokens[on]
                steps.select(on.nonzero()[:, 0])
    return out[:, : t + 1].clone()  # a tensor like any other, which one of inference mode is not


def _likeliest(logits: Logits) -> Int[Tensor, " B"]:
    return logits.argmax(dim=-1)


def _likeliest_k(logits: Logits, k: int | None) -> Logits:
    if k is None or k >= logits.size(-1):
        return logits
    kth = logits.topk(k).values[:, -1:]
    return logits.masked_fill(logits < kth, -math.inf)


def _nucleus(logits: Logits, p: float | None) -> Logits:
    if p is None:
        return logits
    ordered, order = logits.softmax(dim=-1).sort(dim=-1, descending=True)
    before = ordered.cumsum(dim=-1) - ordered  # the probability of all likelier tokens
    drop = torch.zeros_like(before, dtype=torch.bool).scatter(-1, order, before >= p)
    return logits.masked_fill(drop, -math.inf)
