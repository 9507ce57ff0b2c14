"""Beam search, all sentences of a batch at once (chapter 10)."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor


class Beams:
    """The beams of all sentences that are not done, and the best ended sentence of each.

    Rows of logits are beams: those of the first sentence, then those of the second, and so on.
    """

    def __init__(
        self,
        n_sentences: int,
        beam_size: int,
        *,
        max_len: int,
        length_penalty: float,
        bos_id: int | Int[Tensor, " n"],
        eos_id: int,
        pad_id: int | None,
        device: torch.device,
    ):
        n, K = n_sentences, beam_size
        self.K, self.alpha, self.eos_id, self.pad_id = K, length_penalty, eos_id, pad_id
        self.length, self.max_len = 0, max_len
        self.going = torch.arange(n, device=device)  # (n,), which sentences are not done
        filler = eos_id if pad_id is None else pad_id
        self.tokens = torch.full((n, K, max_len + 1), filler, device=device)
        self.tokens[:, :, 0] = (self.going.new_zeros(n) + bos_id)[:, None]
        self.log_p = torch.full((n, K), -math.inf, device=device)
        self.log_p[:, 0] = 0.0  # all beams begin alike: only the first counts
        self.n_ended = torch.zeros(n, dtype=torch.long, device=device)
        self.best_tokens = torch.full((n, max_len), filler, device=device)
        self.best_log_p = torch.full((n,), -math.inf, device=device)
        self.best_score = torch.full((n,), -math.inf, device=device)

    def first_rows(self) -> Int[Tensor, " n_beams"]:
        """Which sentence each beam starts from."""
        return self.going.repeat_interleave(self.K)

    def last_tokens(self) -> Int[Tensor, " n_beams"]:
        """What each beam ends with."""
        return self.tokens[:, :, self.length].flatten()

    def advance(self, logits: Float[Tensor, "n_beams vocab"]) -> Int[Tensor, " remaining"]:
        """One more token for each beam; the rows of ``logits`` that the next step goes on from."""
        n, K, V = len(self.going), self.K, logits.size(-1)
        self.length += 1
        log_p = logits.float().log_softmax(dim=-1)  # padding is not a word, but has its share
        if self.pad_id is not None:
            log_p.select(1, self.pad_id).fill_(-math.inf)
        total = self.log_p[:, :, None] + log_p.view(n, K, V)
        log_p, flat = total.flatten(1).topk(min(2 * K, K * V))  # (n, 2K): enough, if K of them end
        beam, token = flat // V, flat % V
        tokens = self.tokens.gather(1, beam[:, :, None].expand(-1, -1, self.tokens.size(2)))
        tokens[:, :, self.length] = token
        ends = token == self.eos_id
        self._set_aside(tokens[:, :K], log_p[:, :K], ends[:, :K])
        self.log_p, kept = log_p.masked_fill(ends, -math.inf).topk(K)  # (n, K)
        self.tokens = tokens.gather(1, kept[:, :, None].expand(-1, -1, tokens.size(2)))
        rows = beam.gather(1, kept) + K * torch.arange(n, device=flat.device)[:, None]
        on = self.n_ended[self.going] < K
        self.going, self.tokens, self.log_p = self.going[on], self.tokens[on], self.log_p[on]
        return rows[on].flatten()

    def _set_aside(self, tokens: Tensor, log_p: Tensor, ends: Tensor) -> None:
        ends = ends & (log_p > -math.inf)
        self.n_ended[self.going] += ends.sum(dim=1)
        log_p, at = log_p.masked_fill(~ends, -math.inf).max(dim=1)
        self._keep(tokens, log_p, at)

    def _keep(self, tokens: Tensor, log_p: Tensor, at: Tensor) -> None:
        score = log_p / ((5 + self.length) / 6) ** self.alpha
        better = score > self.best_score[self.going]
        rows = self.going[better]
        self.best_score[rows], self.best_log_p[rows] = score[better], log_p[better]
        self.best_tokens[rows] = tokens[better, at[better], 1:]

    def best(self) -> tuple[Int[Tensor, "n length"], Float[Tensor, " n"]]:
        """The best ended sentence of each, or the best of those that never ended."""
        unended = self.n_ended[self.going] == 0
        log_p, at = self.log_p.max(dim=1)
        self._keep(self.tokens, log_p.masked_fill(~unended, -math.inf), at)
        return self.best_tokens[:, : self.length], self.best_log_p
