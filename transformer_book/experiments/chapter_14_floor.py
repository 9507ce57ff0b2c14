"""Chapter 14: what the next word of the grammar costs somebody who knows all its odds."""

import math
import random
from collections.abc import Sequence
from typing import TypeVar

from transformer.data.grammar.alignment import aligned
from transformer.data.grammar.sentences import Writer, held_out

T = TypeVar("T")


class Traced(Writer):
    """Draws as it is told to, then by dice, and notes each draw with its odds."""

    def __init__(self, rng: random.Random, told: Sequence[int] = ()):
        super().__init__(rng)
        self.told, self.draws = told, list[tuple[int, list[float]]]()

    def draw(self, odds: list[float]) -> int:
        i = len(self.draws)
        dice = range(len(odds))
        drawn = self.told[i] if i < len(self.told) else self.rng.choices(dice, odds)[0]
        self.draws.append((drawn, odds))
        return drawn

    def chance(self, p: float) -> bool:
        return self.draw([1 - p, p]) == 1

    def choose(self, items: Sequence[T]) -> T:
        return items[self.draw([1 / len(items)] * len(items))]

    def line(self, language: int) -> list[str]:
        """English (0) or French (1)."""
        english, french, _ = aligned(self.sentence())
        return list((english, french)[language])


def nats_of(told: Sequence[int], language: int) -> float:
    """Minus the logarithm of the probability of the line that these draws write.

    Another result of a single draw may write the same line, and then both count: *they* is "ils"
    or "elles", which the English does not tell. Two draws that only together change nothing do not.
    """
    writer, total = Traced(random.Random(0), told), 0.0
    line = writer.line(language)
    for i, (drawn, odds) in enumerate(writer.draws):
        p = odds[drawn]
        for other in {*range(len(odds))} - {drawn}:
            twin = Traced(random.Random(0), [*told[:i], other, *told[i + 1 :]])
            try:
                same = twin.line(language) == line and len(twin.draws) == len(told)
            except IndexError:  # where the other draw leaves fewer to choose from
                continue
            p += same * odds[other]
        total -= math.log(p)
    return total


def floor(n: int = 100) -> float:
    """Nats a word, the end of a sentence counted, of the mixed text of chapter 14."""
    rng, paths, tried = random.Random(14), list[tuple[list[int], int, int]](), 0
    while len(paths) < n:
        writer, tried = Traced(rng), tried + 1
        language = len(paths) % 2
        line = writer.line(language)
        if not any(held_out(*words) for words in writer.combinations):
            paths.append(([drawn for drawn, _ in writer.draws], language, len(line) + 1))
    kept, choice = math.log(n / tried), math.log(2)  # only these are in the text, in two languages
    nats = sum(nats_of(told, language) + choice + kept for told, language, _ in paths)
    return nats / sum(length for *_, length in paths)
