"""From logits to sentences: greedy, sampled and beam search, cached and in batches (chapter 10)."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from jaxtyping import Float, Int
from torch import Tensor

from transformer.checks import check_finite_and_positive, check_positive, check_shape, check_tokens
from transformer.decoding.beams import Beams
from transformer.decoding.protocol import Decodable, Logits
from transformer.runtime import evaluating

FirstToken = int | Int[Tensor, " B"]  # of all sentences, or of each


def greedy_decode(
    model: Decodable,
    src: Int[Tensor, "B S"],
    *,
    bos_id: FirstToken,
    eos_id: int,
    max_len: int,
    use_cache: bool = True,
) -> Int[Tensor, "B length"]:
    """The likeliest token at each step, until each sentence has its ``eos_id``; chapter 10.

    Without ``bos_id``, what the first step reads; padding follows ``eos_id``; no sentence is longer
    than ``max_len``. Without the cache, and with a model that takes none, every step computes the
    whole sentence anew, which gives the same tokens.

    Raises ValueError for ids outside the vocabulary and a ``max_len`` past the model's.
    """
    return generate(
        model,
        src,
        lambda logits: logits.argmax(dim=-1),
        bos_id=bos_id,
        eos_id=eos_id,
        max_len=max_len,
        use_cache=use_cache,
    )


def sample(
    model: Decodable,
    src: Int[Tensor, "B S"],
    *,
    bos_id: FirstToken,
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
    check_finite_and_positive(temperature=temperature)
    if top_k is not None:
        check_positive(top_k=top_k)
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(f"top_p must be above 0 and at most 1, got {top_p}")

    def draw(logits: Logits) -> Int[Tensor, " B"]:
        kept = keep_top_p(keep_top_k(logits.float() / temperature, top_k), top_p)
        return torch.multinomial(kept.softmax(dim=-1), 1, generator=generator)[:, 0]

    return generate(
        model, src, draw, bos_id=bos_id, eos_id=eos_id, max_len=max_len, use_cache=use_cache
    )


def beam_search(
    model: Decodable,
    src: Int[Tensor, "B S"],
    *,
    bos_id: FirstToken,
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
    beams = Beams(
        len(src),
        beam_size,
        max_len=max_len,
        length_penalty=length_penalty,
        bos_id=bos_id,
        eos_id=eos_id,
        pad_id=model.pad_id,
        device=src.device,
    )
    with decoding_steps(model, src, bos_id, eos_id, max_len, use_cache) as steps:
        steps.select(beams.first_rows())
        for _ in range(max_len):
            rows = beams.advance(steps.next(beams.last_tokens()))
            if len(rows) == 0:
                break
            steps.select(rows)
        tokens, log_p = beams.best()
    return tokens.clone(), log_p.clone()


def generate(
    model: Decodable,
    src: Int[Tensor, "B S"],
    choose: Callable[[Logits], Int[Tensor, " B"]],
    *,
    bos_id: FirstToken,
    eos_id: int,
    max_len: int,
    use_cache: bool = True,
) -> Int[Tensor, "B length"]:
    """One token a step for each sentence, which leaves the batch after its ``eos_id``; chapter 10.

    ``choose`` picks it from the logits. All else, and the errors, as in :func:`greedy_decode`.
    """
    with decoding_steps(model, src, bos_id, eos_id, max_len, use_cache) as steps:
        out = torch.full((len(src), max_len), model.pad_id, device=src.device)  # int64
        going = torch.arange(len(src), device=src.device)  # which sentences are not done
        tokens = going.new_zeros(len(src)) + bos_id  # (B,)
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


def keep_top_k(logits: Logits, k: int | None) -> Logits:
    """-∞ for all but the ``k`` likeliest, Fan et al. (2018); all are kept if None; chapter 10."""
    if k is None or k >= logits.size(-1):
        return logits
    kth = logits.topk(k).values[:, -1:]
    return logits.masked_fill(logits < kth, -math.inf)


def keep_top_p(logits: Logits, p: float | None) -> Logits:
    """-∞ for all but the fewest that together reach the probability ``p``; chapter 10.

    Holtzman et al. (2020). All are kept if None.
    """
    if p is None:
        return logits
    ordered, order = logits.softmax(dim=-1).sort(dim=-1, descending=True)
    before = ordered.cumsum(dim=-1) - ordered  # the probability of all likelier tokens
    drop = torch.zeros_like(before, dtype=torch.bool).scatter(-1, order, before >= p)
    return logits.masked_fill(drop, -math.inf)


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


@contextmanager
def decoding_steps(
    model: Decodable,
    src: Int[Tensor, "B S"],
    bos_id: FirstToken,
    eos_id: int,
    max_len: int,
    use_cache: bool,
) -> Iterator[CachedSteps | UncachedSteps]:
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
