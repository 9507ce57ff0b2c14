"""Sentence pairs, with links between the words that mean the same (chapter 9).

A *unit* is what means the same in both languages: "not" and "ne … pas", "potato" and "pomme de
terre", "looks at" and "regarde". The gold alignment links each English word of a unit to each
French one. Where French contracts two words, as in "du", the one that is left belongs to two units.
"""

from typing import NamedTuple

Token = tuple[str, frozenset[object]]  # a word and the units that it belongs to

BEFORE_VOWEL = {
    **{word: word[:-1] + "'" for word in ("je", "le", "la", "ne", "de")},
    **{"ma": "mon", "sa": "son", "ce": "cet"},
}
CONTRACTED = {
    ("à", "le"): "au",
    ("à", "les"): "aux",
    ("de", "le"): "du",
    ("de", "les"): "des",
}
ASPIRATED = ("héros", "hibou", "homard")


class AlignedPair(NamedTuple):
    source: tuple[str, ...]
    target: tuple[str, ...]
    alignment: frozenset[tuple[int, int]]  # (index in source, index in target)


class Bilingual(NamedTuple):
    """One piece of a sentence in both languages, each in its own order."""

    english: list[Token]
    french: list[Token]


def unit(english: str, french: str) -> Bilingual:
    """One unit; or, with "+" between them, several: "a lot + of", "beaucoup + de"."""
    words = Bilingual([], [])
    for parts in zip(english.split(" + "), french.split(" + "), strict=True):
        key = frozenset([object()])
        for side, part in zip(words, parts, strict=True):
            side += [(word, key) for word in part.split()]
    return words


def joined(*parts: Bilingual) -> Bilingual:
    """The parts one after the other, in both languages."""
    return Bilingual(
        [token for part in parts for token in part.english],
        [token for part in parts for token in part.french],
    )


def aligned(words: Bilingual) -> AlignedPair:
    """The sentences as they are spelled, linked where they share a unit."""
    english, french = with_articles(words.english), elided(words.french)
    links = frozenset(
        (i, j)
        for i, (_, units) in enumerate(english)
        for j, (_, others) in enumerate(french)
        if units & others
    )
    return AlignedPair(tuple(word for word, _ in english), tuple(word for word, _ in french), links)


def with_articles(english: list[Token]) -> list[Token]:
    """The words with "an" where "a" stands before a vowel: a apple -> an apple."""
    following = [word for word, _ in english[1:]] + [""]
    return [
        ("an" if word == "a" and after.startswith(tuple("aeiou")) else word, units)
        for (word, units), after in zip(english, following, strict=True)
    ]


def elided(french: list[Token]) -> list[Token]:
    """The words elided and contracted: de le ami -> de l' ami, de le chat -> du chat."""
    done: list[Token] = []
    for word, units in reversed(french):
        following = done[-1][0] if done else ""
        if word in BEFORE_VOWEL and starts_with_vowel(following):
            word = BEFORE_VOWEL[word]
        elif (word, following) in CONTRACTED:
            word = CONTRACTED[word, following]
            units = units | done.pop()[1]
        done.append((word, units))
    return done[::-1]


def starts_with_vowel(word: str) -> bool:
    """Whether words elide before this French one: an h does not stop them unless aspirated."""
    return word.startswith(tuple("aàâeéèêhiîoôœu")) and not word.startswith(ASPIRATED)
