"""From logits to sentences (chapter 10), and to translations (chapter 11)."""

from transformer.decoding.search import beam_search, greedy_decode, sample

__all__ = ["beam_search", "greedy_decode", "sample"]
