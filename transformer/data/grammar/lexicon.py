"""The words of the grammar corpus: tables, and the rules that inflect them (chapter 9).

A form that the rules would get wrong stands in the table after a slash or a colon.
"""

import re
from typing import NamedTuple

from transformer.data.grammar.alignment import starts_with_vowel

# kind: singular[/plural] = French singular[/plural] gender
_NOUNS = """
person: man/men = homme m; woman/women = femme f; girl = fille f; boy = garçon m;
  child/children = enfant m; friend = ami m; brother = frère m; queen = reine f;
  doctor = médecin m; student = étudiant m; actress = actrice f; hero/heroes = héros m
animal: dog = chien m; cat = chat m; bird = oiseau m; horse = cheval m; owl = hibou/hiboux m;
  cow = vache f; mouse/mice = souris f
food: apple = pomme f; orange = orange f; potato/potatoes = pomme de terre f; egg = œuf m;
  cake = gâteau m
text: book = livre m; letter = lettre f; newspaper = journal m
thing: key = clé f; knife/knives = couteau m; hat = chapeau m; flower = fleur f; watch = montre f;
  computer = ordinateur m; picture = image f
spot: table = table f; car = voiture f; chair = chaise f; tree = arbre m
room: kitchen = cuisine f; house = maison f; garden = jardin m; bathroom = salle de bain f
place: school = école f; hotel = hôtel m; hospital = hôpital m; church = église f;
  castle = château m; train station = gare f; swimming pool = piscine f
"""

# English = French masculine[/feminine[/masculine before a vowel]]: the kinds that it may qualify
# (not people where French means something else: petit ami, vieille fille, beau frère)
_ADJECTIVES_BEFORE_THE_NOUN = """
small = petit: animal food text thing spot room place
big = grand: animal thing spot room place
beautiful = beau/belle/bel: animal thing spot room place
old = vieux/vieille/vieil: animal text thing spot room place
young = jeune: person animal
new = nouveau/nouvelle/nouvel: text place
good = bon/bonne: food text
"""
_ADJECTIVES_AFTER_THE_NOUN = """
red = rouge: thing spot
white = blanc/blanche: animal thing spot
black = noir: animal thing spot
happy = heureux: person animal
sad = triste: person animal
tired = fatigué: person animal
intelligent = intelligent: person animal
famous = célèbre: person text place
cold = froid: food room
hot = chaud: food room
expensive = cher: food thing text
"""

# English = French[: je, tu, il, nous, ils] | subjects | objects
# What follows a plus is linked to what follows the other plus.
_VERBS = """
sleep = dormir: dors dors dort dormons dorment | person animal |
work = travailler | person |
sing = chanter | person |
arrive = arriver | person animal |
fall = tomber | person animal |
come back = revenir: reviens reviens revient revenons reviennent | person animal |
eat = manger | person animal | food
buy = acheter: achète achètes achète achetons achètent | person | food thing text
choose = choisir | person | food thing text
see = voir: vois vois voit voyons voient | person animal | person animal thing place
invite = inviter | person | person
read = lire: lis lis lit lisons lisent | person | text
write = écrire: écris écris écrit écrivons écrivent | person | text
look at = regarder | person animal | person animal thing place
look for = chercher | person animal | person animal thing
listen to = écouter | person animal | person animal
wait for = attendre | person animal | person
talk + to = parler + à | person | person animal
obey = obéir à | person animal | person
need = avoir besoin de: ai as a avons ont | person animal | person thing text
play + with = jouer + avec | person animal | person animal
go + to = aller + à: vais vas va allons vont | person animal | place
enter = entrer dans | person animal | room place
"""


class Noun(NamedTuple):
    kind: str
    english: tuple[str, str]  # singular, plural
    french: tuple[str, str]
    feminine: bool


class Adjective(NamedTuple):
    english: str
    french: tuple[tuple[str, str], tuple[str, str]]  # masculine, feminine: singular, plural
    before_vowel: str  # the masculine singular
    precedes: bool
    kinds: tuple[str, ...]

    def form(self, noun: Noun, plural: bool) -> str:
        """The form that stands beside the noun: un bel arbre, de beaux arbres."""
        vowel = starts_with_vowel(noun.french[0])
        if self.precedes and vowel and not plural and not noun.feminine:
            return self.before_vowel
        return self.french[noun.feminine][plural]


class Verb(NamedTuple):
    english: tuple[str, str]  # base, third person
    french: tuple[str, ...]  # je, tu, il, nous, ils
    tails: tuple[str, str]  # what belongs to the verb: "look at" regarder, "need" avoir "besoin de"
    prepositions: tuple[str, str]  # what means each other: talk "to", parler "à"
    subjects: tuple[str, ...]
    objects: tuple[str, ...]

    @property
    def direct(self) -> bool:
        """Whether French has no preposition before the object."""
        return not (self.tails[1] or self.prepositions[1])


def english_s(word: str) -> str:
    """The plural of a noun, the third person of a verb: cats, churches, parties, goes."""
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(("s", "x", "z", "ch", "sh", "o")) else "s")


def french_plural(word: str) -> str:
    """The first word of a compound changes: pommes de terre."""
    head, *rest = word.split()
    if head.endswith("al"):
        head = head[:-1] + "ux"
    elif head.endswith("eau"):
        head += "x"
    elif not head.endswith(("s", "x", "z")):
        head += "s"
    return " ".join([head, *rest])


def french_feminine(word: str) -> str:
    for masculine, feminine in (("e", "e"), ("eux", "euse"), ("er", "ère")):
        if word.endswith(masculine):
            return word.removesuffix(masculine) + feminine
    return word + "e"


def conjugated(infinitive: str) -> list[str]:
    """The present of je, tu, il, nous, ils, of a regular verb."""
    stem, group = infinitive[:-2], infinitive[-2:]
    endings = {
        "er": ["e", "es", "e", "eons" if stem.endswith("g") else "ons", "ent"],
        "ir": ["is", "is", "it", "issons", "issent"],
        "re": ["s", "s", "", "ons", "ent"],
    }
    return [stem + ending for ending in endings[group]]


def _noun(kind: str, entry: str) -> Noun:
    english, french = entry.split(" = ")
    singular, _, plural = english.partition("/")
    french, gender = french.rsplit(" ", 1)
    french_singular, _, french_many = french.partition("/")
    return Noun(
        kind,
        (singular, plural or english_s(singular)),
        (french_singular, french_many or french_plural(french_singular)),
        gender == "f",
    )


def _adjective(line: str, precedes: bool) -> Adjective:
    entry, kinds = line.split(": ")
    english, french = entry.split(" = ")
    masculine, feminine, before_vowel, *_ = [*french.split("/"), "", ""]
    feminine = feminine or french_feminine(masculine)
    forms = (masculine, french_plural(masculine)), (feminine, french_plural(feminine))
    return Adjective(english, forms, before_vowel or masculine, precedes, tuple(kinds.split()))


def _verb(line: str) -> Verb:
    entry, subjects, objects = line.split("|")
    english, french = entry.strip().split(" = ")
    english, _, english_preposition = english.partition(" + ")
    base, _, english_tail = english.partition(" ")
    french, _, forms = french.partition(": ")
    french, _, french_preposition = french.partition(" + ")
    infinitive, _, french_tail = french.partition(" ")
    return Verb(
        (base, english_s(base)),
        tuple(forms.split() or conjugated(infinitive)),
        (english_tail, french_tail),
        (english_preposition, french_preposition),
        tuple(subjects.split()),
        tuple(objects.split()),
    )


NOUNS = tuple(
    _noun(kind, entry)
    for kind, entries in re.findall(r"^(\w+): ((?:.|\n(?!\w))*)", _NOUNS, re.MULTILINE)
    for entry in re.split(r";\s+", entries.strip())
)
ADJECTIVES = tuple(
    _adjective(line, precedes=table is _ADJECTIVES_BEFORE_THE_NOUN)
    for table in (_ADJECTIVES_BEFORE_THE_NOUN, _ADJECTIVES_AFTER_THE_NOUN)
    for line in table.strip().splitlines()
)
VERBS = tuple(_verb(line) for line in _VERBS.strip().splitlines())
