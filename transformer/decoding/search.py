"""From logits to sentences: greedy, sampled and beam search, cached and in batches (chapter 10)."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from transformer.checks import check_finite_and_positive, check_positive
from transformer.decoding.beams import Beams
from transformer.decoding.protocol import Decodable, Logits
from transformer.decoding.steps import FirstToken, Steps, decoding_steps


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
    stay, and those that end are set aside; a search ends when it has set aside ``beam_size``, or at
    ``max_len`` with the best unfinished one. Raises ValueError as :func:`greedy_decode` does.
    """
    check_positive(beam_size=beam_size)
    if not math.isfinite(length_penalty):
        raise ValueError(f"length_penalty must be finite, got {length_penalty}")
    with decoding_steps(model, src, bos_id, eos_id, max_len, use_cache) as steps:
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
        tokens, log_p = run_beams(steps, beams)
    return tokens.clone(), log_p.clone()


def run_beams(steps: Steps, beams: Beams) -> tuple[Int[Tensor, "n length"], Float[Tensor, " n"]]:
    """Advances all beams until none goes on or they are full; the best and its log-probability."""
    steps.select(beams.first_rows())
    for _ in range(beams.max_len):
        rows = beams.advance(steps.next(beams.last_tokens()))
        if len(rows) == 0:
            break
        steps.select(rows)
    return beams.best()


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
        # a text without padding is filled up with its end
        filler = eos_id if model.pad_id is None else model.pad_id
        out = torch.full((len(src), max_len), filler, device=src.device)  # int64
        going = torch.arange(len(src), device=src.device)  # which sentences are not done
        tokens = going.new_zeros(len(src)) + bos_id  # (B,)
        for t in range(max_len):
            logits = steps.next(tokens)
            if model.pad_id is not None:
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
