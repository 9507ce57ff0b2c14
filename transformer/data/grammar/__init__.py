"""The grammar corpus: English and French sentences, unbounded, with gold alignments (chapter 9)."""

from transformer.data.grammar.alignment import AlignedPair
from transformer.data.grammar.sentences import grammar_pairs, held_out
from transformer.data.grammar.vocabularies import (
    SOURCE_WORDS,
    TARGET_WORDS,
    grammar_vocabularies,
)

__all__ = [
    "SOURCE_WORDS",
    "TARGET_WORDS",
    "AlignedPair",
    "grammar_pairs",
    "grammar_vocabularies",
    "held_out",
]
