"""What a beam search sets aside, so that one search serves every length penalty (chapter 11)."""

from collections.abc import Sequence
from typing import NamedTuple

from transformer.data.text import Tokenizing, clean_line
from transformer.data.tokens import BOS_ID, EOS_ID
from transformer.decoding.limits import Limits, length_divisor
from transformer.decoding.protocol import Decodable
from transformer.decoding.search import search_beams
from transformer.decoding.translate import longest_translation, source_batches


class Candidate(NamedTuple):
    """A sentence that the search finished, its log-probability and its tokens, <eos> included."""

    text: str
    log_p: float
    n_tokens: int

    def score(self, alpha: float) -> float:
        """log P / ((5 + n) / 6)^α, Wu et al. (2016), Eq. 14 without coverage; chapter 10."""
        return self.log_p / length_divisor(self.n_tokens, alpha)


def candidates(
    model: Decodable,
    sentences: Sequence[str],
    src_tokenizer: Tokenizing,
    tgt_tokenizer: Tokenizing,
    *,
    beam_size: int = 4,
    batch_size: int = 64,
) -> list[list[Candidate]]:
    """The likeliest of each length that a beam search set aside, for each sentence; chapter 11.

    No length penalty steers a search that stops early, it only picks among these: :func:`pick`
    gives what ``transformer.decoding.translate.translate`` writes with any ``length_penalty`` and
    with ``early_stopping``. A sentence without a word has none.
    """
    candidates_of: list[list[Candidate]] = [[] for _ in sentences]
    for rows, src in source_batches(sentences, model, src_tokenizer, batch_size=batch_size):
        limits = Limits(BOS_ID, EOS_ID, longest_translation(src, model))
        beams = search_beams(model, src, limits, beam_size=beam_size, early_stopping=True)
        for ended in beams.finish():
            triples = (column.tolist() for column in ended)
            for source, ids, log_p in zip(*triples, strict=True):
                text = clean_line(tgt_tokenizer.decode(ids))
                candidate = Candidate(text, log_p, len(ids))
                candidates_of[rows[source]].append(candidate)
    return candidates_of


def pick(candidates_of: Sequence[Sequence[Candidate]], alpha: float) -> list[str]:
    """The text with the highest score of each sentence's candidates; chapter 11."""
    best = [max(some, key=lambda one: one.score(alpha), default=None) for some in candidates_of]
    return ["" if one is None else one.text for one in best]
