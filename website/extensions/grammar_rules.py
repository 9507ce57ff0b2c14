"""The rules by which the grammar writes English, found by letting it write all that it can.

``transformer/data/grammar/sentences.py`` writes a sentence by making choices. Here its own code
runs once for each way of making them, so that no rule of it stands a second time anywhere. Of whole
sentences there are too many: a noun phrase, and in it the determiner, is a single step for what
asks for it, and is explored by itself.

A rule is one of several sequences of words and of other rules, each with its odds; ``grammar.js``
reads them.
"""

import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import groupby
from math import prod
from typing import Any, NamedTuple, TypeVar

from transformer.data.grammar.alignment import Bilingual, Token, with_articles
from transformer.data.grammar.function_words import ADVERBS, BE, DO, FEELINGS, PRONOUNS
from transformer.data.grammar.lexicon import ADJECTIVES, NOUNS, VERBS, Noun
from transformer.data.grammar.sentences import Phrase, Writer

T = TypeVar("T")
Part = tuple[str, str] | int  # a word and its kind, or the number of a rule
Odds = dict[tuple[Part, ...], float]  # of sequences
Kinds = tuple[str, ...]  # of nouns: persons, animals, …
Determiners = dict[tuple[Token, ...], float]  # the odds of each

NO_UNIT: frozenset[object] = frozenset()
DETERMINER, OTHER = "determiner", "other words"
# What the words are called, in the order in which they are suggested.
WORDS: dict[str, list[str]] = {
    "pronoun": [english for english, *_ in PRONOUNS],
    DETERMINER: [],
    "adjective": [a.english for a in ADJECTIVES] + [english for english, _ in FEELINGS],
    "noun": [form for noun in NOUNS for form in noun.english],
    "verb": [*DO, *BE, *(form for verb in VERBS for form in verb.english)],
    "adverb": [english for english, _ in ADVERBS],
    OTHER: [],
}
KIND_OF = {phrase.split()[0]: kind for kind, phrases in WORDS.items() for phrase in phrases}


class NounPhrases(NamedTuple):
    """All noun phrases of one person, which are a single step of a sentence."""

    rule: int
    person: int
    odds: float


def english_rules() -> dict[str, Any]:
    """``words``, by their kinds, and ``rules``, of which the last one writes a sentence.

    A rule is a list of sequences, each a list of numbers: first its odds in millionths, and then
    its parts. The words are counted first, then the rules, which name earlier ones.
    """
    rules = _Rules()
    rules.number(rules.sentences())
    found = {part for sequences, _ in rules.numbers for each in sequences for part in each}
    parts = {part for part in found if not isinstance(part, int)}
    words = {kind: sorted(word for word, its in parts if its == kind) for kind in WORDS}
    in_order: list[Part] = [(word, kind) for kind, those in words.items() for word in those]
    place = {part: i for i, part in enumerate([*in_order, *range(len(rules.numbers))])}
    written = [
        [[p, *(place[part] for part in each)] for each, p in zip(sequences, odds, strict=True)]
        for sequences, odds in rules.numbers
    ]
    return {"words": words, "rules": written}


class _Rules:
    """The rules that were found, each under its number."""

    def __init__(self) -> None:
        self.numbers: dict[tuple[tuple[tuple[Part, ...], ...], tuple[int, ...]], int] = {}
        self.noun_phrases = cache(self._noun_phrases)
        self.determiners = cache(self._determiners)

    def number(self, odds: Odds) -> int:
        """The rule that writes these sequences. What follows on the same beginning is one rule."""
        begun: dict[tuple[Part, ...], Odds] = defaultdict(dict)
        for sequence, p in odds.items():
            begun[sequence[:1]][sequence[1:]] = p
        sequences = tuple(
            (*first, *(next(iter(rest)) if len(rest) == 1 else [self.number(rest)]))
            for first, rest in begun.items()
        )
        total = sum(odds.values())
        shares = tuple(round(1e6 * sum(rest.values()) / total) for rest in begun.values())
        return self.numbers.setdefault((sequences, shares), len(self.numbers))

    def every_way(self, write: Callable[["_ScriptedWriter"], T]) -> Iterator[tuple[float, T]]:
        """What ``write`` returns for each way of choosing, and how likely that is."""
        told: list[int] | None = []
        while told is not None:
            writer = _ScriptedWriter(self, told)
            result = write(writer)
            yield prod(odds[i] for i, odds in writer.made), result
            told = writer.next_way()

    def sentences(self) -> Odds:
        found: Odds = defaultdict(float)
        for p, sentence in self.every_way(Writer.sentence):
            found[_parts(sentence.english)] += p
        return found

    def _noun_phrases(self, kinds: Kinds, role: str, negation: str) -> list[NounPhrases]:
        def write(writer: _ScriptedWriter) -> tuple[Phrase, Determiners]:
            phrase = Writer.noun_phrase(writer, kinds, role, negation)
            return phrase, writer.determiners

        found: dict[int, Odds] = defaultdict(lambda: defaultdict(float))
        for p, (phrase, determiners) in self.every_way(write):
            described = phrase.words.english
            after = _parts(described)
            for determiner, q in determiners.items():
                spelled = with_articles([*determiner, *described])[: len(determiner)]
                before = _kinds([word for word, _ in spelled], DETERMINER)
                found[phrase.person][*before, *after] += p * q
        return [
            NounPhrases(self.number(odds), person, sum(odds.values()))
            for person, odds in found.items()
        ]

    def _determiners(self, noun: Noun, plural: bool, role: str, negation: str) -> Determiners:
        found: Determiners = defaultdict(float)
        for p, words in self.every_way(
            lambda w: Writer.determiner(w, noun, plural, role, negation)
        ):
            found[tuple((word, NO_UNIT) for word, _ in words.english)] += p
        return found


class _ScriptedWriter(Writer):
    """A writer that is told what to choose, and takes what comes first when it is told no more."""

    def __init__(self, rules: _Rules, told: Sequence[int]):
        super().__init__(random.Random())
        self.rules, self.told = rules, told
        self.made: list[tuple[int, Sequence[float]]] = []  # each choice, and the odds of all
        self.determiners: Determiners = {}  # of the noun phrase

    def next_way(self) -> list[int] | None:
        """What to tell another writer: the last choice that can be made otherwise, is."""
        chosen = [i for i, _ in self.made]
        for at in reversed(range(len(chosen))):
            if chosen[at] + 1 < len(self.made[at][1]):
                return [*chosen[:at], chosen[at] + 1]
        return None

    def pick(self, odds: Sequence[float]) -> int:
        at = len(self.made)
        self.made.append((self.told[at] if at < len(self.told) else 0, odds))
        return self.made[at][0]

    def chance(self, p: float) -> bool:
        return self.pick((p, 1 - p)) == 0 if 0 < p < 1 else p == 1

    def choose(self, items: Sequence[T]) -> T:
        return items[self.pick([1 / len(items)] * len(items))]

    def noun_phrase(self, kinds: Kinds, role: str, negation: str) -> Phrase:
        """One word for all of a person, which is all that the rest of a sentence depends on."""
        phrases = self.rules.noun_phrases(kinds, role, negation)
        chosen = phrases[self.pick([each.odds for each in phrases])]
        return Phrase(Bilingual([("", frozenset([chosen.rule]))], []), chosen.person)

    def determiner(self, noun: Noun, plural: bool, role: str, negation: str) -> Bilingual:
        self.determiners = self.rules.determiners(noun, plural, role, negation)
        return Bilingual([], [("", NO_UNIT)])


def _parts(tokens: Sequence[Token]) -> tuple[Part, ...]:
    """Words of one unit, as "look at", have its kind; "" stands for a rule."""
    found: list[Part] = []
    for units, together in groupby(tokens, key=lambda token: token[1]):
        words = [word for word, _ in together]
        found += _kinds([word for word in words if word], KIND_OF.get(words[0], OTHER))
        found += [rule for rule in units if isinstance(rule, int)]
    return tuple(found)


def _kinds(words: list[str], kind: str) -> list[tuple[str, str]]:
    """The kind of each word: of "a lot of" and "look at" only the first is a determiner or verb."""
    return [(word, kind if i == 0 or kind == "noun" else OTHER) for i, word in enumerate(words)]
