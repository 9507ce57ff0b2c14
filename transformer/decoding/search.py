"""From logits to sentences: greedy, sampled and beam search, cached and in batches (chapter 10)."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from transformer.checks import check_finite_and_positive, check_number, check_positive
from transformer.decoding.beams import Beams
from transformer.decoding.compiled import compiled_greedy
from transformer.decoding.limits import FirstToken, Limits, check_length_penalty
from transformer.decoding.protocol import Decodable, Logits
from transformer.decoding.steps import decoding_steps, not_a_number


def greedy_decode(
    model: Decodable,
    src: Int[Tensor, "B S"],
    *,
    bos_id: FirstToken,
    eos_id: int,
    max_len: int,
    use_cache: bool = True,
    compiled: bool = False,
) -> Int[Tensor, "B length"]:
    """The likeliest token at each step, until each sentence has its ``eos_id``; chapter 10.

    Without ``bos_id``, what the first step reads; padding follows ``eos_id``, or more of ``eos_id``
    with a model that has no padding; no sentence is longer than ``max_len``, and where there is
    none, the result is (0, 0). Without the cache, and with a model that takes none, every step
    computes the whole sentence anew, which gives the same tokens. ``compiled`` repeats one step
    that ``torch.compile`` has made (chapter 13), for the same tokens: it takes half a minute the
    first time, and pays where many sentences follow.

    Raises ValueError for ids outside the vocabulary, a ``max_len`` past the model's, and a model
    whose logits are NaN or infinite, or that cannot be ``compiled``.
    """
    limits = Limits(bos_id, eos_id, max_len)
    if compiled:
        if not use_cache:
            raise ValueError("compiled goes with a cache, got use_cache=False")
        return compiled_greedy(model, src, limits)
    return generate(model, src, lambda logits: logits.argmax(dim=-1), limits, use_cache=use_cache)


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
    if top_p is not None:
        check_number(top_p=top_p)
        if not 0 < top_p <= 1:
            raise ValueError(f"top_p must be above 0 and at most 1, got {top_p}")

    def draw(logits: Logits) -> Int[Tensor, " B"]:
        logits = logits.float()
        # the largest moves to 0, where no temperature makes it infinite, and no share changes
        logits = (logits - logits.amax(dim=-1, keepdim=True)) / temperature
        shares = keep_top_p(keep_top_k(logits, top_k), top_p).softmax(dim=-1)
        if not (shares[:, 0] >= 0).all():  # one NaN makes a whole row NaN
            raise not_a_number()
        return torch.multinomial(shares, 1, generator=generator)[:, 0]

    limits = Limits(bos_id, eos_id, max_len)
    return generate(model, src, draw, limits, use_cache=use_cache)


def beam_search(
    model: Decodable,
    src: Int[Tensor, "B S"],
    *,
    bos_id: FirstToken,
    eos_id: int,
    max_len: int,
    beam_size: int = 4,
    length_penalty: float = 0.6,
    early_stopping: bool = False,
    use_cache: bool = True,
) -> tuple[Int[Tensor, "B length"], Float[Tensor, " B"]]:
    """The best sentence that ``beam_size`` beams find, and its log-probability; chapter 10.

    A sentence Y of n tokens scores log P(Y | X) / ((5 + n) / 6)^length_penalty, Wu et al. (2016),
    Eq. 14 without coverage; n counts ``eos_id``. At each step the ``beam_size`` best continuations
    stay, and those that end are set aside. A search goes on while one that has not ended could
    still end with a better score, up to ``max_len``; where none has ended by then, the best
    unfinished one is returned. Hugging Face calls this rule ``early_stopping="never"``. A better
    score is no better sentence where a penalty over 1 lets a half-trained model's loops win.

    ``early_stopping`` ends a search when ``beam_size`` sentences have ended, as there with True:
    sooner, above all with a penalty over 1, and with a worse sentence now and then. With a
    ``beam_size`` of 1, both are greedy decoding.

    Raises ValueError as :func:`greedy_decode` does, and for a ``length_penalty`` so far from 0
    that no scores are left to compare.
    """
    limits = Limits(bos_id, eos_id, max_len)
    check_positive(beam_size=beam_size, max_len=max_len)
    check_length_penalty(length_penalty, max_len)
    return search_beams(
        model,
        src,
        limits,
        beam_size=beam_size,
        length_penalty=length_penalty,
        early_stopping=early_stopping,
        use_cache=use_cache,
    ).best()


def search_beams(
    model: Decodable,
    src: Int[Tensor, "B S"],
    limits: Limits,
    *,
    beam_size: int,
    length_penalty: float = 0.0,
    early_stopping: bool = False,
    use_cache: bool = True,
) -> Beams:
    """A whole search, whose result holds all that it set aside; chapters 10 and 11.

    No penalty steers a search with ``early_stopping``, it only chooses among what has ended: then
    ``search_beams(…).best(length_penalty)`` as often as there are penalties to be tried.
    """
    with decoding_steps(model, src, limits, use_cache=use_cache) as steps:
        beams = Beams(
            len(src),
            beam_size,
            limits,
            pad_id=model.pad_id,
            device=src.device,
            length_penalty=length_penalty,
            early_stopping=early_stopping,
        )
        steps.select(beams.first_rows())  # from a row for each sentence to one for each beam
        for _ in range(limits.max_len if len(src) else 0):
            rows = beams.advance(steps.next(beams.last_tokens()))
            if len(rows) == 0:
                break
            steps.select(rows)
    return beams


def generate(
    model: Decodable,
    src: Int[Tensor, "B S"],
    choose: Callable[[Logits], Int[Tensor, " B"]],
    limits: Limits,
    *,
    use_cache: bool = True,
) -> Int[Tensor, "B length"]:
    """One token a step for each sentence, which leaves the batch after its ``eos_id``; chapter 10.

    ``choose`` picks it from the logits. All else, and the errors, as in :func:`greedy_decode`.
    """
    with decoding_steps(model, src, limits, use_cache=use_cache) as steps:
        n, device, pad_id = len(src), src.device, model.pad_id
        out = limits.unwritten(n, limits.max_len, pad_id=pad_id, device=device)
        going = torch.arange(n, device=device)  # which sentences are not done: the rows of a step
        tokens = limits.first_tokens(n, device)
        are_numbers = torch.ones((), dtype=torch.bool, device=device)
        t = -1  # no sentence has no step
        for t in range(limits.max_len if n else 0):
            logits = steps.next(tokens)
            if pad_id is not None:  # padding is not a word
                logits.select(1, pad_id).fill_(-math.inf)
            tokens = choose(logits)
            out[going, t] = tokens
            # NaN is larger than all to argmax, so that what was chosen tells of it, as of ∞, and of
            # a row of -∞ alone; it is only noted here and looked at once, at the end, for a GPU
            # would have to wait for it.
            are_numbers &= logits.gather(1, tokens[:, None]).isfinite().all()
            # A sentence that has ended leaves the batch: the others alone are computed further.
            on = tokens != limits.eos_id
            if not on.all():
                if not on.any():
                    break
                going, tokens = going[on], tokens[on]
                steps.select(on.nonzero()[:, 0])
    if not are_numbers:
        raise not_a_number()
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
