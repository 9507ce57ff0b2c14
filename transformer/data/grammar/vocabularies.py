"""Every word that the grammar can write, and the vocabularies made of them (chapter 9)."""

from transformer.data.grammar.alignment import BEFORE_VOWEL, CONTRACTED
from transformer.data.grammar.function_words import (
    ADVERBS,
    AVOIR,
    BE,
    DO,
    FEELINGS,
    NEGATIONS,
    OTHERS,
    PLACES,
    PRONOUNS,
    THE,
    ÊTRE,
    A,
)
from transformer.data.grammar.lexicon import ADJECTIVES, NOUNS, VERBS
from transformer.data.text import Vocabulary


def _words(*phrases: str | None) -> set[str]:
    """The words of phrases as the tables have them; None stands where a language has none."""
    return {word for phrase in phrases if phrase for word in phrase.split() if word != "+"}


def _source_words() -> set[str]:
    tables = (PRONOUNS, PLACES, ADVERBS, FEELINGS)
    return _words(
        *(row[0] for table in tables for row in table),
        *(word for determiner in (THE, A, *OTHERS) for word in determiner.english),
        *(word for noun in NOUNS for word in noun.english),
        *(adjective.english for adjective in ADJECTIVES),
        *(f"{' '.join(v.english)} {v.tails[0]} {v.prepositions[0]}" for v in VERBS),
        *(*NEGATIONS, *DO, *BE, "an", "any"),
    )


def _target_words() -> set[str]:
    tables = (PRONOUNS, PLACES, ADVERBS, FEELINGS)
    return _words(
        *(row[1] for table in tables for row in table),
        *(word for determiner in (THE, A, *OTHERS) for word in determiner.french),
        *(word for noun in NOUNS for word in noun.french),
        *(form for a in ADJECTIVES for forms in (*a.french, (a.before_vowel,)) for form in forms),
        *(f"{' '.join(v.french)} {v.tails[1]} {v.prepositions[1]}" for v in VERBS),
        *(*NEGATIONS.values(), *ÊTRE, *AVOIR, *BEFORE_VOWEL.values(), *CONTRACTED.values()),
    )


# Everything that can occur, in alphabetical order: ids do not depend on a sample.
SOURCE_WORDS = tuple(sorted(_source_words()))
TARGET_WORDS = tuple(sorted(_target_words()))


def grammar_vocabularies() -> tuple[Vocabulary, Vocabulary]:
    """All English words, all French words; ids are the same for every sample and split."""
    return Vocabulary(SOURCE_WORDS), Vocabulary(TARGET_WORDS)
