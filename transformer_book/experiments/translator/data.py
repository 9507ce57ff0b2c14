"""What every stage of the translator learns from, and what it is asked afterwards."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations

from transformer.data.grammar import AlignedPair, grammar_pairs, grammar_vocabularies, held_out
from transformer.data.grammar.alignment import Bilingual, aligned, joined, unit
from transformer.data.grammar.function_words import THE
from transformer.data.grammar.lexicon import NOUNS, VERBS, Noun
from transformer.data.parallel import encode_pairs
from transformer.data.text import Vocabulary
from transformer.data.tokens import Example

MAX_LEN = 32  # tokens; the longest sentence of the grammar has half as many
SENTENCES = (
    "the black cat sleeps",
    "the dog sees the cat",
    "the cat sees the dog",
    "the old queen does not often see the black cats",
)
Mirrored = tuple[AlignedPair, AlignedPair]


@dataclass(frozen=True)
class Corpus:
    """Sentences of the grammar, each with its translation.

    ``train`` is learnt from, as ``examples``. Every sentence of ``test`` and ``tuning`` combines
    two words that no sentence of ``train`` does. Learning rates are chosen by ``tuning``, so that
    ``test`` is met once. Each entry of ``mirrored`` holds "the X sees the Y", "the Y sees the X".
    """

    english: Vocabulary
    french: Vocabulary
    train: list[AlignedPair]
    test: list[AlignedPair]
    tuning: list[AlignedPair]
    mirrored: list[Mirrored]

    @cached_property
    def examples(self) -> list[Example]:
        return self.encode(self.train)

    def encode(self, pairs: Sequence[AlignedPair]) -> list[Example]:
        """The pairs as ids, sources with <eos>, targets with <bos> and <eos>."""
        return encode_pairs([p[:2] for p in pairs], self.english, self.french, max_len=MAX_LEN)[0]


@cache
def corpus() -> Corpus:
    """26,000 sentences to learn from, 600 to be tested on, 300 to tune by, 100 pairs mirrored."""
    english, french = grammar_vocabularies()
    train = grammar_pairs(26_000, seed=0)
    test = grammar_pairs(600, seed=1, split="test")
    asked = {pair.source for pair in test}
    drawn = grammar_pairs(400, seed=2, split="test")
    tuning = [pair for pair in drawn if pair.source not in asked][:300]
    return Corpus(english, french, train, test, tuning, mirrored_pairs(train)[:100])


def mirrored_pairs(train: Sequence[AlignedPair]) -> list[Mirrored]:
    """ "the X sees the Y" beside "the Y sees the X", shuffled; no sentence is one of ``train``.

    People and animals that "see" is not held out from, so that only the order is new.
    """
    known = {pair.source for pair in train}
    see = next(verb for verb in VERBS if verb.english[0] == "see")
    sees = unit(see.english[1], see.french[2])
    nouns = [n for n in NOUNS if n.kind in see.subjects and not held_out("see", n.english[0])]
    found = []
    for x, y in combinations(nouns, 2):
        two = aligned(joined(_the(x), sees, _the(y))), aligned(joined(_the(y), sees, _the(x)))
        if not known & {two[0].source, two[1].source}:
            found.append(two)
    random.Random(0).shuffle(found)
    return found


def _the(noun: Noun) -> Bilingual:
    the = unit(*THE.words(plural=False, feminine=noun.feminine))
    return joined(the, unit(noun.english[0], noun.french[0]))
