"""The small words of the grammar corpus, English beside French (chapter 9).

"+" sets apart what is linked apart: "next" with "à côté", "to" with "de".
"""

from typing import NamedTuple


class Determiner(NamedTuple):
    english: tuple[str | None, str | None]  # singular, plural
    french: tuple[str | None, str | None, str | None]  # masculine, feminine, plural

    def words(self, *, plural: bool, feminine: bool) -> tuple[str, str]:
        """Both determiners of a noun; ValueError where there is none: "every" is singular."""
        english, french = self.english[plural], self.french[2 if plural else feminine]
        if english is None or french is None:
            raise ValueError(f"plural must be False for {self.english[0]!r}, got {plural}")
        return english, french


THE = Determiner(("the", "the"), ("le", "la", "les"))
A = Determiner(("a", "some"), ("un", "une", "des"))
EVERY = Determiner(("every", None), ("chaque", "chaque", None))
OTHERS = (
    EVERY,
    Determiner(("this", "these"), ("ce", "cette", "ces")),
    Determiner(("my", "my"), ("mon", "ma", "mes")),
    Determiner(("his", "his"), ("son", "sa", "ses")),
    Determiner(("her", "her"), ("son", "sa", "ses")),
    Determiner(("their", "their"), ("leur", "leur", "leurs")),
    Determiner((None, "two"), (None, None, "deux")),
    Determiner((None, "a lot + of"), (None, None, "beaucoup + de")),
)

# English, French, person (0 je, 1 tu, 2 il, 3 nous, 4 ils), feminine
PRONOUNS = (
    ("i", "je", 0, False),
    ("you", "tu", 1, False),
    ("he", "il", 2, False),
    ("she", "elle", 2, True),
    ("we", "nous", 3, False),
    ("they", "ils", 4, False),
)
PLACES = (
    ("in", "dans", ("room", "place")),
    ("near", "près de", ("place", "spot")),
    ("in front of", "devant", ("place", "spot")),
    ("next + to", "à côté + de", ("place", "spot")),
    ("behind", "derrière", ("place", "spot")),
)
ADVERBS = (("often", "souvent"), ("always", "toujours"), ("really", "vraiment"))
NEGATIONS = {"": "", "not": "ne pas", "never": "ne jamais"}
FEELINGS = (("hungry", "faim"), ("thirsty", "soif"), ("right", "raison"))  # with avoir

DO = ("do", "do", "does", "do", "do")
BE = ("am", "are", "is", "are", "are")
ÊTRE = ("suis", "es", "est", "sommes", "sont")
AVOIR = ("ai", "as", "a", "avons", "ont")
