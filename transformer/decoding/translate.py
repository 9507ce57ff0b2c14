"""Sentences in, sentences out (chapter 11)."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from transformer.checks import check_positive
from transformer.data.batches import pad
from transformer.data.text import Tokenizing, clean_line
from transformer.data.tokens import BOS_ID, EOS_ID, PAD_ID
from transformer.decoding.protocol import Decodable
from transformer.decoding.search import beam_search, greedy_decode


def translate(
    sentences: Sequence[str],
    model: Decodable,
    src_tokenizer: Tokenizing,
    tgt_tokenizer: Tokenizing,
    *,
    max_len: int | None = None,
    beam_size: int = 4,
    length_penalty: float = 0.6,
    early_stopping: bool = False,
    batch_size: int = 64,
) -> list[str]:
    """The translation of each sentence, by ``beam_search``; greedy with a ``beam_size`` of 1.

    Chapter 11. A translation has up to ``max_len`` tokens; by default 50 more than the longest
    source of its batch, Vaswani et al. (2017), section 6.1. Sentences and translations are lines
    as ``clean_line`` leaves them. One without a word is left without one. Sentences of similar
    length are decoded together, the longest first.

    Raises ValueError for a sentence too long for the model, naming its place, and bad sizes.
    """
    check_positive(batch_size=batch_size)
    check_beam_size(beam_size, len(tgt_tokenizer))
    if max_len is not None:
        check_positive(max_len=max_len)
    if model.pad_id != PAD_ID:
        raise ValueError(f"model must have the padding id {PAD_ID}, got {model.pad_id}")
    translations = [""] * len(sentences)
    batches = source_batches(sentences, model, src_tokenizer, batch_size=batch_size)
    for rows, src in batches:
        longest = max_len or longest_translation(src, model)
        tokens = _search(model, src, longest, beam_size, length_penalty, early_stopping)
        for i, ids in zip(rows, tokens.cpu(), strict=True):
            translations[i] = clean_line(tgt_tokenizer.decode(ids))
    return translations


def source_batches(
    sentences: Sequence[str], model: Decodable, tokenizer: Tokenizing, *, batch_size: int
) -> Iterator[tuple[list[int], Tensor]]:
    """Batches: the numbers of the sentences in each, and their ids (B, S) on the model's device.

    Their lengths are similar, so that there is little padding, and the longest first, so that
    what runs out of memory does so at once. A sentence without a word is in no batch.

    Raises ValueError for a sentence too long for the model, naming its place.
    """
    sources = _encode(sentences, tokenizer, model.max_len)
    with_words = [i for i, ids in enumerate(sources) if len(ids) > 1]
    order = sorted(with_words, key=lambda i: len(sources[i]), reverse=True)
    for start in range(0, len(order), batch_size):
        rows = order[start : start + batch_size]
        yield rows, pad([sources[i] for i in rows]).to(_device(model))


def longest_translation(src: Tensor, model: Decodable) -> int:
    """50 tokens more than the longest source, Vaswani et al. (2017), section 6.1."""
    return min(src.size(1) + 50, model.max_len)


def check_beam_size(beam_size: int, tgt_vocab_size: int) -> None:
    """Raises ValueError for a beam below 1, or wider than there are tokens to begin with."""
    check_positive(beam_size=beam_size)
    if beam_size > tgt_vocab_size:
        raise ValueError(
            f"beam_size must be at most {tgt_vocab_size}, the size of the target's vocabulary, "
            f"got {beam_size}"
        )


def _encode(sentences: Sequence[str], tokenizer: Tokenizing, limit: int) -> list[list[int]]:
    if isinstance(sentences, str):
        raise ValueError(f"sentences must be a list of sentences, got the str {sentences!r:.60}")
    sources = [[*tokenizer.encode(clean_line(sentence)), EOS_ID] for sentence in sentences]
    for i, ids in enumerate(sources):
        if len(ids) > limit:
            raise ValueError(
                f"sentences[{i}] must have no more than {limit} tokens, got {len(ids)}"
            )
    return sources


def _search(
    model: Decodable,
    src: Tensor,
    max_len: int,
    beam_size: int,
    length_penalty: float,
    early_stopping: bool,
) -> Tensor:
    if beam_size == 1:
        return greedy_decode(model, src, bos_id=BOS_ID, eos_id=EOS_ID, max_len=max_len)
    tokens, _ = beam_search(
        model,
        src,
        bos_id=BOS_ID,
        eos_id=EOS_ID,
        max_len=max_len,
        beam_size=beam_size,
        length_penalty=length_penalty,
        early_stopping=early_stopping,
    )
    return tokens


def _device(model: Decodable) -> torch.device:
    return next(p.device for module in model.modules() for p in module.parameters())
