"""Beam search, all sentences of a batch at once (chapter 10).

The state of a search is a table with a row for each sentence and K columns, its beams. A model
knows rows only, so it is given all beams below each other, those of the first sentence first::

    K = 2, two sentences         sentence   beam   row of tokens and of logits
                                     0        0        0     <bos> le chat
                                     0        1        1     <bos> la reine
                                     1        0        2     <bos> je
                                     1        1        3     <bos> nous

Beam b of the i-th sentence that still goes on is row K i + b. A step goes from here to there:

1. each beam is lengthened by every word: K V continuations of a sentence, with their sums of
   log-probabilities;
2. the 2 K likeliest are looked at. Of them at most K have <eos> as their new word, one for each
   beam, so that at least K can go on;
3. those among the first K that end with <eos> are set aside;
4. the K likeliest that do not end are the new beams. Two of them may come from one old beam, and
   then another old beam has come to nothing: ``advance`` says from which row each of them comes, so
   that the model's caches follow;
5. a sentence is done when none of its beams can still end with a better score than the best that
   was set aside. It leaves the table, and its rows leave the model's batch.

How good can a beam still end? Each word makes a sentence less likely, or at best as likely. So it
ends with no more than the log-probability that it has now, divided by what prefers it most: the
divisor of the longest sentence, or of the next length where a negative penalty prefers short ones.
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from transformer.decoding.limits import Limits, length_divisor
from transformer.decoding.steps import not_a_number


class Finished(NamedTuple):
    """Sentences of one length that a search has set aside, the likeliest one of each source."""

    sources: Int[Tensor, " m"]  # which sentence of the batch each is a translation of
    tokens: Int[Tensor, "m length"]  # without bos_id, with eos_id if it has ended
    log_p: Float[Tensor, " m"]


class Beams:
    """The beams of all sentences that are not done, and what each sentence has set aside."""

    def __init__(
        self,
        n_sentences: int,
        beam_size: int,
        limits: Limits,
        *,
        pad_id: int | None,
        device: torch.device | str,
        length_penalty: float = 0.0,
        early_stopping: bool = False,
    ):
        n, K = n_sentences, beam_size
        self.length_penalty = length_penalty
        self.early_stopping = early_stopping or K == 1  # one beam is greedy: it stops at its end
        self.n_sentences, self.K, self.limits, self.pad_id = n, K, limits, pad_id
        self.length = 0  # how many tokens each beam has, without the first one
        self.going = torch.arange(n, device=device)  # (n,), which sentences are not done
        self.n_ended = torch.zeros(n, dtype=torch.long, device=device)  # of each sentence
        # of what has ended, the best score of each sentence
        self.best_score = torch.full((n,), -math.inf, dtype=torch.float32, device=device)
        self.ended: list[Finished] = []  # at most one entry for each length
        # the table: what each beam has written, <bos> in front, and its log-probability
        self.tokens = limits.unwritten(n, K, limits.max_len + 1, pad_id=pad_id, device=device)
        self.tokens[:, :, 0] = limits.first_tokens(n, device)[:, None]
        self.log_p = torch.full((n, K), -math.inf, dtype=torch.float32, device=device)
        self.log_p[:, 0] = 0.0  # all beams begin alike: only the first counts

    def first_rows(self) -> Int[Tensor, " n_beams"]:
        """The sentence that each beam starts from: 0 0 1 1 in the table above."""
        return self.going.repeat_interleave(self.K)

    def last_tokens(self) -> Int[Tensor, " n_beams"]:
        """The last token of each beam."""
        return self.tokens[:, :, self.length].flatten()

    def advance(self, logits: Float[Tensor, "n_beams vocab"]) -> Int[Tensor, " remaining"]:
        """One more token for each beam; the rows of ``logits`` that the next step goes on from."""
        n, K, V = len(self.going), self.K, logits.size(-1)
        self.length += 1
        # 1. Every continuation: the beam's log-probability and that of its next word, (n, K, V).
        log_p = logits.float().log_softmax(dim=-1)
        if self.pad_id is not None:  # padding is not a word, but has its share
            log_p.select(1, self.pad_id).fill_(-math.inf)
        total = self.log_p[:, :, None] + log_p.view(n, K, V)
        # 2. The likeliest of a sentence's K V; where they stand tells the beam and the word.
        log_p, flat = total.flatten(1).topk(min(2 * K, K * V))  # (n, 2K), the likeliest first
        beam, token = flat // V, flat % V
        tokens = self.tokens.gather(1, beam[:, :, None].expand(-1, -1, self.tokens.size(2)))
        tokens[:, :, self.length] = token
        ends = token == self.limits.eos_id
        # 3. What ends is set aside, if it is among the first K.
        self._set_aside(tokens[:, :K], log_p[:, :K], ends[:, :K])
        # 4. What goes on: the likeliest K of the others, and the rows that they come from.
        self.log_p, kept = log_p.masked_fill(ends, -math.inf).topk(K)  # (n, K)
        self.tokens = tokens.gather(1, kept[:, :, None].expand(-1, -1, tokens.size(2)))
        rows = beam.gather(1, kept) + K * torch.arange(n, device=flat.device)[:, None]
        # 5. Sentences that nothing can make better are done.
        on = self._go_on()
        if not on.all():
            self.going, self.tokens, self.log_p = self.going[on], self.tokens[on], self.log_p[on]
            rows = rows[on]
        return rows.flatten()

    def _go_on(self) -> Bool[Tensor, " n"]:
        """True for sentences that are not done; NaN goes on, for ``finish`` to meet it."""
        if self.early_stopping:
            return self.n_ended[self.going] < self.K
        lengths = self.length + 1, self.limits.max_len
        divisor = max(length_divisor(n, self.length_penalty) for n in lengths)
        return ~(self.best_score[self.going] >= self.log_p[:, 0] / divisor)

    def _set_aside(self, tokens: Tensor, log_p: Tensor, ends: Tensor) -> None:
        ends = ends & (log_p > -math.inf)  # a beam that does not exist yet cannot end
        self.n_ended[self.going] += ends.sum(dim=1)
        log_p = log_p.masked_fill(~ends, -math.inf)
        score = log_p.amax(dim=1) / length_divisor(self.length, self.length_penalty)
        self.best_score[self.going] = self.best_score[self.going].maximum(score)
        self._keep(tokens, log_p)

    def _keep(self, tokens: Tensor, log_p: Tensor) -> None:
        """Keeps the likeliest of each sentence: of one length, no penalty prefers another."""
        log_p, beam = log_p.max(dim=1)
        some = log_p > -math.inf
        written = tokens[some, beam[some], 1 : self.length + 1]
        self.ended.append(Finished(self.going[some], written, log_p[some]))

    def finish(self) -> list[Finished]:
        """What was set aside; a sentence without an end counts as far as it is written.

        Raises ValueError where the logits were NaN. These are the first among the continuations
        and, being not above -∞, never end: so the sentence is still in the table, and it is enough
        to look once, here, where no step pays for it.
        """
        if not self.log_p.eq(self.log_p).all():
            raise not_a_number()
        endless = self.n_ended[self.going] == 0
        self._keep(self.tokens, self.log_p.masked_fill(~endless[:, None], -math.inf))
        self.going, self.tokens, self.log_p = self.going[:0], self.tokens[:0], self.log_p[:0]
        return self.ended

    def best(
        self, length_penalty: float | None = None
    ) -> tuple[Int[Tensor, "n length"], Float[Tensor, " n"]]:
        """The sentence with the highest score log P / ((5 + n) / 6)^α of each, and its log P.

        α is the search's own, or another where the search stops early, which no penalty steers. Of
        two with the same score the shorter one, which was set aside first. Raises ValueError as
        :meth:`finish` does.
        """
        alpha = self.length_penalty if length_penalty is None else length_penalty
        n, device = self.n_sentences, self.log_p.device
        best = self.limits.unwritten(n, self.length, pad_id=self.pad_id, device=device)
        best_log_p = torch.full((n,), -math.inf, dtype=torch.float32, device=device)
        best_score = torch.full((n,), -math.inf, dtype=torch.float32, device=device)
        for sources, tokens, log_p in self.finish():  # the shortest first
            n_tokens = tokens.size(1)
            score = log_p / length_divisor(n_tokens, alpha)
            better = score > best_score[sources]
            rows = sources[better]
            best_score[rows], best_log_p[rows] = score[better], log_p[better]
            best[rows, :n_tokens] = tokens[better]
        return best, best_log_p
