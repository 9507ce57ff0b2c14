"""What a beam search sets aside, so that one search serves every length penalty (chapter 11)."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from transformer.data.batches import pad
from transformer.data.text import Tokenizing
from transformer.data.tokens import BOS_ID, EOS_ID
from transformer.decoding.beams import Beams
from transformer.decoding.protocol import Decodable
from transformer.decoding.search import run_beams
from transformer.decoding.steps import decoding_steps


class Candidate(NamedTuple):
    """A sentence that the search finished, its log-probability and its tokens, <eos> included."""

    text: str
    log_p: float
    n_tokens: int

    def score(self, alpha: float) -> float:
        """log P / ((5 + n) / 6)^α, Wu et al. (2016), Eq. 14 without coverage; chapter 10."""
        return self.log_p / ((5 + self.n_tokens) / 6) ** alpha


def candidates(
    model: Decodable,
    sentences: Sequence[str],
    src_tokenizer: Tokenizing,
    tgt_tokenizer: Tokenizing,
    *,
    beam_size: int = 4,
    batch_size: int = 64,
) -> list[list[Candidate]]:
    """For each sentence the likeliest of each length that a beam search set aside; chapter 11.

    The length penalty does not steer the search, it only picks among these: :func:`pick` gives
    what ``transformer.decoding.translate.translate`` writes with any ``length_penalty``.
    """
    sources = [[*src_tokenizer.encode(sentence), EOS_ID] for sentence in sentences]
    order = sorted(range(len(sources)), key=lambda i: len(sources[i]), reverse=True)
    device = next(p.device for module in model.modules() for p in module.parameters())
    found: list[list[Candidate]] = [[] for _ in sources]
    for at in range(0, len(order), batch_size):
        rows = order[at : at + batch_size]
        src = pad([sources[i] for i in rows]).to(device)
        longest = min(src.size(1) + 50, model.max_len)
        for i, ended in zip(rows, _search(model, src, longest, beam_size), strict=True):
            found[i] = [Candidate(tgt_tokenizer.decode(ids), p, len(ids)) for ids, p in ended]
    return found


def pick(found: Sequence[Sequence[Candidate]], alpha: float) -> list[str]:
    """The text with the highest score of each sentence's candidates; chapter 11."""
    return [max(each, key=lambda one: one.score(alpha)).text for each in found]


class _AllEnded(Beams):
    """Beams that keep the best ended sentence of each length, and not of all lengths alone."""

    def __init__(self, n_sentences: int, *sizes: int, **options):
        super().__init__(n_sentences, *sizes, **options)
        self.found: list[list[tuple[list[int], float]]] = [[] for _ in range(n_sentences)]

    def _keep(
        self, tokens: Int[Tensor, "n K L"], log_p: Float[Tensor, " n"], at: Int[Tensor, " n"]
    ) -> None:
        ended = (log_p > -torch.inf).nonzero()[:, 0]
        written = tokens[ended, at[ended], 1 : self.length + 1].tolist()
        rows, values = self.going[ended].tolist(), log_p[ended].tolist()
        for row, ids, value in zip(rows, written, values, strict=True):
            self.found[row].append((ids, value))


def _search(
    model: Decodable, src: Int[Tensor, "B S"], max_len: int, beam_size: int
) -> list[list[tuple[list[int], float]]]:
    """As :func:`transformer.decoding.beam_search`, with all that ended for each sentence."""
    with decoding_steps(model, src, BOS_ID, EOS_ID, max_len, True) as steps:
        beams = _AllEnded(
            len(src),
            beam_size,
            max_len=max_len,
            length_penalty=0.0,
            bos_id=BOS_ID,
            eos_id=EOS_ID,
            pad_id=model.pad_id,
            device=src.device,
        )
        run_beams(steps, beams)  # a sentence that never ends counts as it stands
    return beams.found
