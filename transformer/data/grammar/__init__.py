"""The grammar corpus: English and French sentences, unbounded, with gold alignments (chapter 9)."""

from transformer.data.grammar.alignment import AlignedPair
from transformer.data.grammar.sentences import (
    SOURCE_WORDS,
    TARGET_WORDS,
    grammar_pairs,
    grammar_vocabularies,
    held_out,
)

__all__ = [
    "SOURCE_WORDS",
    "TARGET_WORDS",
    "AlignedPair",
    "grammar_pairs",
    "grammar_vocabularies",
    "held_out",
]
