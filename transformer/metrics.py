"""Measures: exact match, BLEU, chrF, and attention against gold alignments (chapters 11, 12)."""

import logging
import re
from collections.abc import Sequence, Set
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from transformer.data.tokens import BOS_ID, EOS_ID, PAD_ID

Alignment = Set[tuple[int, int]]  # links (index of a source word, index of a target word), from 0
Sequences = Int[Tensor, "B _"] | Sequence[Sequence[int]]
# Thai to Burmese, Khmer, Japanese and Chinese, which are written without spaces between words
_UNSPACED = re.compile("[\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff\u3041-\u30ff\u3400-\u9fff]")


def exact_match(hypotheses: Sequences, references: Sequences) -> float:
    """The share of sequences that are right to the last token; chapters 1 and 11.

    What is compared begins after <bos>, where there is one, and ends with the first <eos>; padding
    at the end does not count. A hypothesis that never ends is not what a reference with <eos> is.

    Raises ValueError if there are none, or not as many hypotheses as references.
    """
    _check_pairs(hypotheses=hypotheses, references=references)
    pairs = zip(hypotheses, references, strict=True)
    n_right = sum(_trimmed(hypothesis) == _trimmed(reference) for hypothesis, reference in pairs)
    return n_right / len(references)


class Score(NamedTuple):
    """A score of a corpus between 0 and 100, and sacrebleu's account of how it was computed."""

    score: float
    signature: str


def bleu(
    *,
    hypotheses: Sequence[str],
    references: Sequence[str],
    lowercase: bool = False,
    tokenize: str = "13a",
) -> Score:
    """BLEU of a corpus, Papineni et al. (2002), section 2.3, by sacrebleu, Post (2018); chapter 11.

    One reference a sentence, both as plain text, which sacrebleu splits into words itself. By
    keyword only: exchanged, the two would give another score and no error. "13a" and "intl" take
    a sentence of Chinese, Japanese or Thai for one word, of which a line on standard error warns.

    Raises ValueError if there are none, not as many hypotheses as references, a str in place of
    a list, an entry that is not a str, or for a ``tokenize`` that sacrebleu does not know.
    """
    from sacrebleu.metrics import BLEU

    if tokenize not in BLEU.TOKENIZERS:
        raise ValueError(f"tokenize must be one of {sorted(BLEU.TOKENIZERS)}, got {tokenize!r}")
    # force: sacrebleu warns of hypotheses that look tokenized, as those of chapter 9 do
    metric = BLEU(lowercase=lowercase, tokenize=tokenize, force=True)
    score = _score(metric, hypotheses, references)
    text = " ".join(references)
    if tokenize in ("13a", "intl") and len(_UNSPACED.findall(text)) > 6 * len(text.split()):
        logging.getLogger(__name__).warning(
            "BLEU finds no words in text without spaces by %r; tokenize as 'zh' or 'char'", tokenize
        )
    return score


def chrf(*, hypotheses: Sequence[str], references: Sequence[str], lowercase: bool = False) -> Score:
    """chrF of a corpus, the F-score of runs of 1 to 6 characters, Popović (2015), by sacrebleu.

    Recall counts twice as much as precision; spaces do not count. Arguments and errors are those
    of :func:`bleu`.
    """
    from sacrebleu.metrics import CHRF

    return _score(CHRF(lowercase=lowercase), hypotheses, references)


def _score(metric, hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    for name, sentences in (("hypotheses", hypotheses), ("references", references)):
        if isinstance(sentences, str) or not all(isinstance(line, str) for line in sentences):
            raise ValueError(
                f"{name} must be a list with one str a sentence, got {sentences!r:.60}"
            )
    _check_pairs(hypotheses=hypotheses, references=references)
    score = metric.corpus_score(list(hypotheses), [list(references)]).score
    return Score(score, str(metric.get_signature()))


def alignment_from_attention(
    weights: Float[Tensor, "B T S"], *, src: Int[Tensor, "B S"], tgt: Int[Tensor, "B T+1"]
) -> list[Alignment]:
    """Links each target word to the source word that it attends to most; chapter 2.

    Row t of ``weights`` belongs to the decoder's input at position t, tgt[:, t], and predicts
    tgt[:, t + 1], which is target word t, as <bos> stands in front. Source word s is src[:, s].
    <eos> and padding are no words: no link leads to them. Equal weights: the first word.

    Raises ValueError if the shapes do not fit, or weights are not finite.
    """
    _check_weights_fit(weights, src, tgt)
    is_word = _is_word(src)  # (B, S)
    best = weights.masked_fill(~is_word[:, None, :], -torch.inf).argmax(dim=-1)  # (B, T)
    linked = _is_word(tgt[:, 1:]) & is_word.any(dim=-1, keepdim=True)  # (B, T)
    return [
        {(best_b[t], t) for t, has_link in enumerate(linked_b) if has_link}
        for best_b, linked_b in zip(best.tolist(), linked.tolist(), strict=True)
    ]


def alignment_accuracy(
    weights: Float[Tensor, "B T S"],
    gold: Sequence[Alignment],
    *,
    src: Int[Tensor, "B S"],
    tgt: Int[Tensor, "B T+1"],
) -> float:
    """The share of target words that attend most to one of their gold partners; chapter 2.

    Of all sentences together. Words without a gold partner are left out; indices are those of
    :func:`alignment_from_attention`.

    Raises ValueError as that does, for a gold link to what is no word, and if there is no link.
    """
    predicted = alignment_from_attention(weights, src=src, tgt=tgt)
    _check_pairs(gold=gold, weights=weights)
    n_src, n_tgt = _is_word(src).sum(-1).tolist(), _is_word(tgt[:, 1:]).sum(-1).tolist()
    for b, links in enumerate(gold):
        for s, t in links:
            if not (0 <= s < n_src[b] and 0 <= t < n_tgt[b]):
                raise ValueError(
                    f"gold[{b}] must link {n_src[b]} source words to {n_tgt[b]} target words, "
                    f"got {(s, t)}"
                )
    n_words = sum(len({t for _, t in links}) for links in gold)
    if n_words == 0:
        raise ValueError("gold must hold at least one link, got none")
    return sum(len(ours & links) for ours, links in zip(predicted, gold, strict=True)) / n_words


def alignment_error_rate(
    predicted: Sequence[Alignment],
    sure: Sequence[Alignment],
    possible: Sequence[Alignment] | None = None,
) -> float:
    """``1 − (|A ∩ S| + |A ∩ P|) / (|A| + |S|)``, Och and Ney (2003); chapter 12.

    A is predicted, S sure, P possible; every sure link counts as a possible one. Links are counted
    over all sentences, then divided: 0 is perfect, 1 is nothing right.

    Raises ValueError if there are not as many of each, or no link in ``predicted`` and ``sure``.
    """
    possible = sure if possible is None else possible
    _check_pairs(predicted=predicted, sure=sure)
    _check_pairs(possible=possible, sure=sure)
    n_links = sum(len(a) + len(s) for a, s in zip(predicted, sure, strict=True))
    if n_links == 0:
        raise ValueError("predicted and sure must hold at least one link, got none")
    triples = zip(predicted, sure, possible, strict=True)
    n_right = sum(len(a & s) + len(a & (p | s)) for a, s, p in triples)
    return 1 - n_right / n_links


def _trimmed(ids: Tensor | Sequence[int]) -> list[int]:
    ids = ids.tolist() if isinstance(ids, Tensor) else list(ids)
    ids = ids[1:] if ids[:1] == [BOS_ID] else ids
    if EOS_ID in ids:
        return ids[: ids.index(EOS_ID) + 1]
    while ids and ids[-1] == PAD_ID:
        ids.pop()
    return ids


def _is_word(tokens: Tensor) -> Tensor:
    return (tokens != PAD_ID) & (tokens != BOS_ID) & (tokens != EOS_ID)


def _check_pairs(**pair: Sequence | Tensor) -> None:
    first, second = pair
    n_first, n_second = len(pair[first]), len(pair[second])
    if n_first != n_second:
        raise ValueError(f"{first} must be as many as {second}, got {n_first} and {n_second}")
    if n_first == 0:
        raise ValueError(f"{first} must hold at least one sentence, got none")


def _check_weights_fit(weights: Tensor, src: Tensor, tgt: Tensor) -> None:
    wanted = (src.size(0), tgt.size(-1) - 1, src.size(-1))
    if weights.shape != wanted or src.size(0) != tgt.size(0):
        raise ValueError(
            f"weights must have shape {wanted} to fit src {tuple(src.shape)} and tgt "
            f"{tuple(tgt.shape)}, heads averaged, got {tuple(weights.shape)}"
        )
    if not weights.isfinite().all():
        raise ValueError("weights must be finite, got inf or NaN")
