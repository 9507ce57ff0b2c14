"""A grammar that writes English and French side by side (from chapter 1 on).

Each English sentence has one translation, for "you" is tu and, like "i", "we" and "they", a man
or men; "he" and "she" are people or animals. Every word is linked to its translation as
:mod:`transformer.data.grammar.alignment` says, but for "do" and "does", which have none.
"""

import random
import zlib
from collections.abc import Sequence
from functools import cache
from typing import Literal, NamedTuple, TypeVar

from transformer.data.grammar.alignment import (
    AlignedPair,
    Bilingual,
    aligned,
    joined,
    unit,
)
from transformer.data.grammar.function_words import (
    ADVERBS,
    AVOIR,
    BE,
    DO,
    EVERY,
    FEELINGS,
    NEGATIONS,
    OTHERS,
    PLACES,
    PRONOUNS,
    THE,
    ÊTRE,
    A,
)
from transformer.data.grammar.lexicon import ADJECTIVES, NOUNS, VERBS, Adjective, Noun, Verb

T = TypeVar("T")
NOTHING = Bilingual([], [])
# The grammar's odds. The site's page suggests words and writes sentences by the same ones.
NEGATED, WITH_ADVERB = 0.25, 0.2  # of all sentences; of those without "never"
WITH_PLACE = 0.6  # of verbs without an object
PRONOUN = 0.45  # of subjects that may be a person
PLURAL, WITH_ADJECTIVE = 0.35, 0.4  # of noun phrases
DEFINITE, INDEFINITE = 0.4, 0.35  # of noun phrases; of those that are not definite
CLAUSES = ("action", "action", "state")
STATES = ("adjective", "adjective", "place", "feeling")
PLACED, FEELING = ("person", "animal", "thing", "text"), ("person",)  # what is somewhere; feels


class Phrase(NamedTuple):
    words: Bilingual
    person: int = 2  # 0 je, 1 tu, 2 il, 3 nous, 4 ils
    feminine: bool = False
    noun: str = ""  # its English singular

    @property
    def plural(self) -> bool:
        return self.person > 2


def grammar_pairs(
    n: int, *, seed: int, split: Literal["train", "test"] = "train"
) -> list[AlignedPair]:
    """``n`` sentences with their translations and gold alignments; chapter 2.

    The same on every machine. The adjectives and verbs that are :func:`held_out` from a noun never
    describe it, nor have it as object (or, without an object, as subject), in "train"; in every
    sentence of "test" one does.

    Raises ValueError if ``n`` is negative or ``split`` is neither.
    """
    if n < 0:
        raise ValueError(f"n must not be negative, got {n}")
    if split not in ("train", "test"):
        raise ValueError(f"split must be 'train' or 'test', got {split!r}")
    rng = random.Random(seed)
    pairs: list[AlignedPair] = []
    while len(pairs) < n:
        writer = Writer(rng)
        pair = aligned(writer.sentence())
        if any(held_out(*words) for words in writer.combinations) == (split == "test"):
            pairs.append(pair)
    return pairs


def held_out(word: str, noun: str) -> bool:
    """Whether this adjective or verb meets this noun only in "test": one in sixteen."""
    return zlib.crc32(f"{word} {noun}".encode()) % 16 == 0


class Writer:
    """Writes one sentence, and notes which adjectives and verbs it combines with which nouns."""

    def __init__(self, rng: random.Random):
        self.rng = rng
        self.combinations: set[tuple[str, str]] = set()

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def choose(self, items: Sequence[T]) -> T:
        """One of ``items``, drawn by rng.random, which is the same in every version of Python."""
        return items[int(self.rng.random() * len(items))]

    def sentence(self) -> Bilingual:
        negation = self.choose(("not", "never")) if self.chance(NEGATED) else ""
        adverb = NOTHING
        if negation != "never" and self.chance(WITH_ADVERB):
            adverb = unit(*self.choose(ADVERBS))
        clause = self.action if self.choose(CLAUSES) == "action" else self.state
        return clause(negation, adverb)

    def state(self, negation: str, adverb: Bilingual) -> Bilingual:
        """to be, with an adjective or a place; but "to be hungry" is "avoir faim"."""
        kind = self.choose(STATES)
        if kind == "adjective":
            adjective = self.choose(ADJECTIVES)
            subject = self.subject(adjective.kinds, negation)
            self.combine(adjective.english, subject.noun)
            form = adjective.french[subject.feminine][subject.plural]
            complement = unit(adjective.english, form)
        elif kind == "place":
            subject = self.subject(PLACED, negation)
            complement = self.place(negation)
        else:
            subject = self.subject(FEELING, negation)
            complement = unit(*self.choose(FEELINGS))
        finite = (AVOIR if kind == "feeling" else ÊTRE)[subject.person]
        be = unit(BE[subject.person], finite)
        return joined(subject.words, _predicate(be, NOTHING, negation, adverb), complement)

    def action(self, negation: str, adverb: Bilingual) -> Bilingual:
        """A verb and its object or, where it has none, sometimes a place."""
        verb = self.choose(VERBS)
        subject = self.subject(verb.subjects, negation)
        do, main = _conjugated(verb, subject.person, negation == "not")
        clause = joined(subject.words, _predicate(do, main, negation, adverb))
        if not verb.objects:
            self.combine(verb.english[0], subject.noun)
            return joined(clause, self.place(negation)) if self.chance(WITH_PLACE) else clause
        role = "object" if verb.direct else "preposition"
        noun_phrase = self.noun_phrase(verb.objects, role, negation)
        self.combine(verb.english[0], noun_phrase.noun)
        return joined(clause, unit(*verb.prepositions), noun_phrase.words)

    def combine(self, word: str, noun: str) -> None:
        if noun:  # rather than a pronoun
            self.combinations.add((word, noun))

    def subject(self, kinds: tuple[str, ...], negation: str) -> Phrase:
        if "person" in kinds and self.chance(PRONOUN):
            english, french, person, feminine = self.choose(PRONOUNS)
            return Phrase(unit(english, french), person, feminine)
        return self.noun_phrase(kinds, "subject", negation)

    def place(self, negation: str) -> Bilingual:
        english, french, kinds = self.choose(PLACES)
        noun = self.noun_phrase(kinds, "preposition", negation)
        return joined(unit(english, french), noun.words)

    def noun_phrase(self, kinds: tuple[str, ...], role: str, negation: str) -> Phrase:
        """A determiner and a noun; often an adjective, on the side where each language has it."""
        noun = self.choose(_nouns(kinds))
        plural = self.chance(PLURAL)
        adjective = before = after = NOTHING
        if self.chance(WITH_ADJECTIVE):
            chosen = self.choose(_adjectives(noun.kind))
            self.combine(chosen.english, noun.english[0])
            adjective = unit(chosen.english, chosen.form(noun, plural))
            before, after = (adjective, NOTHING) if chosen.precedes else (NOTHING, adjective)
        determiner = self.determiner(noun, plural, role, negation)
        if before.french and determiner.french[0][0] == "des":
            determiner = unit("some", "de")  # de petits chats
        words = unit(noun.english[plural], noun.french[plural])
        return Phrase(
            Bilingual(
                determiner.english + adjective.english + words.english,
                determiner.french + before.french + words.french + after.french,
            ),
            4 if plural else 2,
            noun.feminine,
            noun.english[0],
        )

    def determiner(self, noun: Noun, plural: bool, role: str, negation: str) -> Bilingual:
        if self.chance(DEFINITE):
            chosen = THE
        elif self.chance(INDEFINITE) and not (plural and role == "preposition"):
            chosen = A
        else:
            fitting = (d for d in OTHERS if d.english[plural] and not (negation and d is EVERY))
            chosen = self.choose(tuple(fitting))
        if chosen is A and negation and role == "object":
            return unit("any" if plural else "a", "de")  # ne voit pas de chat
        return unit(*chosen.words(plural=plural, feminine=noun.feminine))


@cache
def _nouns(kinds: tuple[str, ...]) -> list[Noun]:
    return [noun for noun in NOUNS if noun.kind in kinds]


@cache
def _adjectives(kind: str) -> list[Adjective]:
    return [adjective for adjective in ADJECTIVES if kind in adjective.kinds]


def _conjugated(verb: Verb, person: int, negated: bool) -> tuple[Bilingual, Bilingual]:
    """The "does" of "does not", where needed, and the verb with what belongs to it."""
    base, third = verb.english
    after, complement = verb.tails
    french = f"{verb.french[person]} {complement}"
    if negated:
        return unit(DO[person], ""), unit(f"{base} {after}", french)
    return NOTHING, unit(f"{third if person == 2 else base} {after}", french)


def _predicate(do: Bilingual, verb: Bilingual, negation: str, adverb: Bilingual) -> Bilingual:
    """does not often need: n' a pas souvent besoin de."""
    not_ = unit(negation, NEGATIONS[negation])
    finite, *rest = do.french + verb.french
    return Bilingual(
        do.english + not_.english + adverb.english + verb.english,
        [*not_.french[:1], finite, *not_.french[1:], *adverb.french, *rest],
    )
