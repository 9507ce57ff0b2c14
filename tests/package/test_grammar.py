"""The French of the checks below is written by hand, not taken from the lexicon."""

import unicodedata
from collections import Counter
from functools import cache

import jaxtyping
import pytest

from tests.package.unchecked import unchecked
from transformer.data.grammar import SOURCE_WORDS, TARGET_WORDS, grammar_pairs, held_out
from transformer.data.grammar.alignment import aligned, unit
from transformer.data.grammar.lexicon import ADJECTIVES, NOUNS, VERBS
from transformer.data.text import Vocabulary
from transformer.data.tokens import UNK_ID

# English = French : source-target links
GOLDEN = """
i am hungry = j' ai faim : 0-0 1-1 2-2
she is not right = elle n' a pas raison : 0-0 1-2 2-1 2-3 3-4
we are never thirsty = nous n' avons jamais soif : 0-0 1-2 2-1 2-3 3-4
i am never tired = je ne suis jamais fatigué : 0-0 1-2 2-1 2-3 3-4
she is happy = elle est heureuse : 0-0 1-1 2-2
they are sad = ils sont tristes : 0-0 1-1 2-2
we are intelligent = nous sommes intelligents : 0-0 1-1 2-2
i do not work = je ne travaille pas : 0-0 2-1 2-3 3-2
i arrive = j' arrive : 0-0 1-1
you come back = tu reviens : 0-0 1-1 2-1
they never come back = ils ne reviennent jamais : 0-0 1-1 1-3 2-2 3-2
the cars are white = les voitures sont blanches : 0-0 1-1 2-2 3-3
i read the letter = je lis la lettre : 0-0 1-1 2-2 3-3
i eat the orange = je mange l' orange : 0-0 1-1 2-2 3-3
she goes to the castle = elle va au château : 0-0 1-1 2-2 3-2 4-3
she obeys the doctor = elle obéit au médecin : 0-0 1-1 1-2 2-2 3-3
she does not read a book = elle ne lit pas de livre : 0-0 2-1 2-3 3-2 4-4 5-5
she looks at the friend = elle regarde l' ami : 0-0 1-1 2-1 3-2 4-3
you need a lot of students = tu as besoin de beaucoup d' étudiants : 0-0 1-1 1-2 1-3 2-4 3-4 4-5 5-6
he needs the hat = il a besoin du chapeau : 0-0 1-1 1-2 1-3 2-3 3-4
he is in front of her church = il est devant son église : 0-0 1-1 2-2 3-2 4-2 5-3 6-4
she plays with the mice = elle joue avec les souris : 0-0 1-1 2-2 3-3 4-4
i do not eat any cakes = je ne mange pas de gâteaux : 0-0 2-1 2-3 3-2 4-4 5-5
every potato is good = chaque pomme de terre est bonne : 0-0 1-1 1-2 1-3 2-4 3-5
two brothers often arrive = deux frères arrivent souvent : 0-0 1-1 2-3 3-2
"""
FIRST = [
    "his sad queen comes back next to a lot of hospitals",
    "my girl is behind the chair",
    "he is behind the chairs",
]
# feminine; masculine
GENDERS = """
femme fille reine actrice vache souris pomme orange lettre clé fleur montre image table voiture
chaise cuisine maison salle école église gare piscine;
homme garçon enfant ami frère médecin étudiant héros chien chat oiseau cheval hibou œuf gâteau
livre journal couteau chapeau ordinateur arbre jardin hôtel hôpital château
"""
FEMININE, MASCULINE = (nouns.split() for nouns in GENDERS.split(";"))
IN_X = {"oiseau", "gâteau", "couteau", "chapeau", "château", "hibou"}
PLURAL = {
    **{noun: noun + "s" for noun in FEMININE + MASCULINE},
    **{noun: noun + "x" for noun in IN_X},
    **{"cheval": "chevaux", "hôpital": "hôpitaux", "journal": "journaux"},
    **{"souris": "souris", "héros": "héros"},
}
# masculine, feminine, masculine plural, feminine plural; a fifth before a vowel
FORMS = """
petit petite petits petites; grand grande grands grandes; jeune jeune jeunes jeunes;
beau belle beaux belles bel; vieux vieille vieux vieilles vieil; bon bonne bons bonnes;
nouveau nouvelle nouveaux nouvelles nouvel; rouge rouge rouges rouges;
blanc blanche blancs blanches; noir noire noirs noires; triste triste tristes tristes;
heureux heureuse heureux heureuses; fatigué fatiguée fatigués fatiguées;
intelligent intelligente intelligents intelligentes; célèbre célèbre célèbres célèbres;
froid froide froids froides; chaud chaude chauds chaudes; cher chère chers chères
"""
ADJECTIVE_FORMS = [forms.split() for forms in FORMS.replace("\n", " ").split(";")]
ADJECTIVE_WORDS = {form for forms in ADJECTIVE_FORMS for form in forms}
BEFORE = {form for forms in ADJECTIVE_FORMS[:7] for form in forms}
# masculine; feminine; plural
ARTICLES = """
le l' un ce cet mon son notre leur chaque du au;
la l' une cette ma mon sa son notre leur chaque;
les des ces mes ses nos leurs deux de d' aux
"""
DETERMINERS = {
    (feminine, plural): ARTICLES.split(";")[2 if plural else feminine].split()
    for feminine in (False, True)
    for plural in (False, True)
}
SINGULAR = ("le", "la", "l'", "un", "une", "ce", "cette", "mon", "ma", "son", "sa")
SINGULAR += ("notre", "leur", "chaque")
PERSONS = {"je": 0, "j'": 0, "tu": 1, "il": 2, "elle": 2, "nous": 3, "ils": 4}
# English: French, of je, tu, il, nous, ils
PRESENT = """
be: suis es est sommes sont
have: ai as a avons ont
sleep: dors dors dort dormons dorment
work: travaille travailles travaille travaillons travaillent
sing: chante chantes chante chantons chantent
arrive: arrive arrives arrive arrivons arrivent
fall: tombe tombes tombe tombons tombent
come: reviens reviens revient revenons reviennent
eat: mange manges mange mangeons mangent
buy: achète achètes achète achetons achètent
choose: choisis choisis choisit choisissons choisissent
see: vois vois voit voyons voient
invite: invite invites invite invitons invitent
read: lis lis lit lisons lisent
write: écris écris écrit écrivons écrivent
look-at: regarde regardes regarde regardons regardent
look-for: cherche cherches cherche cherchons cherchent
listen: écoute écoutes écoute écoutons écoutent
wait: attends attends attend attendons attendent
talk: parle parles parle parlons parlent
obey: obéis obéis obéit obéissons obéissent
play: joue joues joue jouons jouent
go: vais vas va allons vont
enter: entre entres entre entrons entrent
"""
PRESENT_OF = {
    english: forms.split()
    for english, forms in (line.split(": ") for line in PRESENT.strip().splitlines())
}
VERB_FORMS = list(PRESENT_OF.values())
FINITE = {form for forms in VERB_FORMS for form in forms}
ENGLISH_PERSONS = {"i": 0, "you": 1, "he": 2, "she": 2, "we": 3, "they": 4}


def starts_with_vowel(word):
    return word[0] in "aeiouéêèàâîôœh" and word not in ("héros", "hibou", "hiboux")


def nouns_of(words):
    """Place, feminine, plural (None for souris and héros) of each French noun."""
    for i, word in enumerate(words):
        for noun, plural in PLURAL.items():
            if word in (noun, plural) and words[i - 1 : i] != ("terre",):
                number = None if noun == plural else word == plural
                yield i, noun in FEMININE, number


def form_of(word, feminine, plural, following=""):
    for forms in ADJECTIVE_FORMS:
        if word in forms:
            masculine_vowel = len(forms) == 5 and starts_with_vowel(following or "x")
            wanted = 4 if masculine_vowel and not feminine and not plural else feminine + 2 * plural
            return word == forms[wanted]
    raise AssertionError(word)


@cache
def some_pairs(split="train", n=10000):
    with unchecked():
        return grammar_pairs(n, seed=1, split=split)


def every_pair():
    return [*some_pairs(), *some_pairs("test", 1000)]


def test_sentences_are_translated_and_aligned_as_by_hand():
    pairs = {" ".join(p.source): p for p in every_pair()}
    lines = GOLDEN.strip().splitlines()
    assert len(lines) >= 20
    for line in lines:
        source, rest = line.split(" = ")
        target, links = rest.split(" : ")
        pair = pairs[source]
        assert " ".join(pair.target) == target
        assert " ".join(f"{i}-{j}" for i, j in sorted(pair.alignment)) == links, line


def test_the_first_sentences_are_the_same_everywhere():
    assert [" ".join(p.source) for p in grammar_pairs(3, seed=0)] == FIRST
    assert grammar_pairs(50, seed=0) == grammar_pairs(50, seed=0)
    assert grammar_pairs(50, seed=0)[:9] == grammar_pairs(9, seed=0)
    assert grammar_pairs(50, seed=0) != grammar_pairs(50, seed=1)
    assert grammar_pairs(0, seed=0) == []


def test_sentences_are_the_same_where_annotations_are_checked():
    assert not jaxtyping.config.jaxtyping_disable
    assert grammar_pairs(500, seed=1) == some_pairs()[:500]
    assert grammar_pairs(50, seed=1, split="test") == some_pairs("test", 1000)[:50]


def test_articles_and_adjectives_agree_with_the_noun():
    checked = Counter()
    for pair in every_pair():
        words = pair.target
        for i, feminine, plural in nouns_of(words):
            adjective_before = words[i - 1] in BEFORE
            determiner = words[i - 1 - adjective_before]
            numbers = [plural] if plural is not None else [False, True]
            fits = [n for n in numbers if determiner in DETERMINERS[feminine, n]]
            negated = determiner in ("de", "d'")  # ne voit pas de chat; près d'un ...
            assert fits or negated, words
            numbers = numbers if negated else fits
            if adjective_before:
                assert any(form_of(words[i - 1], feminine, n, words[i]) for n in numbers), words
            end = i + 3 if words[i + 1 : i + 3] in (("de", "terre"), ("de", "bain")) else i + 1
            after = words[end : end + 1]
            if after and after[0] in ADJECTIVE_WORDS:
                assert any(form_of(after[0], feminine, n) for n in numbers), words
            checked[feminine, plural, adjective_before] += 1
    assert len(checked) == 12
    assert min(checked.values()) > 5


def test_verbs_and_predicates_agree_with_the_subject():
    predicates = 0
    for pair in every_pair():
        words = pair.target
        if words[0] in PERSONS:
            persons, feminine, at = [PERSONS[words[0]]], words[0] == "elle", 1
        else:
            at, feminine, plural = next(nouns_of(words))
            persons = [2, 4] if plural is None else [4 if plural else 2]
            persons = [2] if plural is None and words[0] in SINGULAR else persons
        rest = [w for w in words[at:] if w not in ("ne", "n'", "pas", "jamais")]
        verb = next(w for w in rest if any(w in forms for forms in VERB_FORMS))
        fitting = [p for p in persons if any(forms[p] == verb for forms in VERB_FORMS)]
        assert fitting, words
        complement = [w for w in rest if w not in ("souvent", "toujours", "vraiment")]
        predicate = complement[complement.index(verb) + 1 :][:1]
        if verb in VERB_FORMS[0] and predicate and predicate[0] in ADJECTIVE_WORDS:
            assert any(form_of(predicate[0], feminine, p > 2) for p in fitting), words
            predicates += 1
    assert predicates > 500


def english_person(source):
    """From the pronoun, or the first noun, of an English sentence."""
    if source[0] in ENGLISH_PERSONS:
        return ENGLISH_PERSONS[source[0]]
    number = {form.split()[-1]: i for noun in NOUNS for i, form in enumerate(noun.english)}
    return next(4 if number[word] else 2 for word in source if word in number)


def french_forms(source, at):
    """All forms of the French verb that translates the English one at ``at``."""
    word, following = source[at], source[at + 1 :]
    if word in ("am", "is", "are"):
        feels = {"hungry", "thirsty", "right"} & {*following[-1:]}
        return PRESENT_OF["have" if feels else "be"]
    if word in ("need", "needs"):
        return PRESENT_OF["have"]  # avoir besoin de
    if word in ("look", "looks"):
        return PRESENT_OF[f"look-{following[0]}"]
    return next(f for verb, f in PRESENT_OF.items() if word in (verb, verb + "s", verb + "es"))


def test_a_verb_is_the_form_of_its_person_in_both_languages():
    thirds = {"is", "does"} | {verb.english[1] for verb in VERBS}
    bases = {"am", "are"} | {verb.english[0] for verb in VERBS}
    seen = Counter()
    for pair in every_pair():
        person, words = english_person(pair.source), pair.source
        at = next(i for i, word in enumerate(words) if word in thirds | bases and word != "does")
        finite = words.index("does") if "does" in words else at
        third = "do" not in words and words[finite] in thirds
        assert third == (person == 2), words
        assert words[finite] != "am" or person == 0, words
        linked = {pair.target[j] for i, j in pair.alignment if i == at}
        forms = french_forms(words, at)
        assert forms[person] in linked, pair
        assert not (linked - {forms[person]}) & FINITE, pair
        seen[forms[0], person] += 1
    assert len(seen) == 5 * len(VERB_FORMS)


def test_some_is_de_before_an_adjective_and_des_before_a_noun():
    seen = Counter()
    for pair in every_pair():
        for i, word in enumerate(pair.source):
            if word in ("some", "any"):
                (j,) = (j for k, j in pair.alignment if k == i)
                short = word == "any" or pair.target[j + 1] in BEFORE
                assert pair.target[j] in (("de", "d'") if short else ("des",)), pair
                seen[word, short] += 1
    assert len(seen) == 3
    assert min(seen.values()) > 20


def test_an_adverb_follows_the_finite_verb_and_its_negation():
    seen = Counter()
    for pair in every_pair():
        for adverb in {"souvent", "toujours", "vraiment"} & {*pair.target}:
            before = pair.target[: pair.target.index(adverb)]
            negated = before[-1] == "pas"
            assert before[-1 - negated] in FINITE, pair
            seen[adverb, negated] += 1
    assert len(seen) == 6


def test_words_elide_before_vowels_only():
    seen = Counter()
    for pair in every_pair():
        for word, following in zip(pair.target, pair.target[1:], strict=False):
            if word in ("le", "la", "de", "ne", "je", "ce", "ma", "sa", "beau", "nouveau", "vieux"):
                plural = word == "vieux" and following.endswith(("s", "x"))
                assert plural or not starts_with_vowel(following) or following == "est", pair
            if word in ("l'", "d'", "n'", "j'", "cet", "bel", "nouvel", "vieil"):
                assert starts_with_vowel(following), pair
                seen[word] += 1
            assert (word, following) not in {("de", "le"), ("de", "les"), ("à", "le"), ("à", "les")}
    assert len(seen) == 8


def test_a_before_a_vowel_is_an():
    for pair in every_pair():
        for word, following in zip(pair.source, pair.source[1:], strict=False):
            if word in ("a", "an"):
                assert (word == "an") == (following[0] in "aeiou"), pair


def test_every_word_is_linked_but_do_and_does():
    for pair in every_pair():
        sources, targets = ({link[side] for link in pair.alignment} for side in (0, 1))
        assert targets == set(range(len(pair.target)))
        unlinked = set(range(len(pair.source))) - sources
        assert sources <= set(range(len(pair.source)))
        assert {pair.source[i] for i in unlinked} <= {"do", "does"}
        assert all(i in unlinked for i, word in enumerate(pair.source) if word in ("do", "does"))


def test_an_english_sentence_has_one_translation():
    pairs = every_pair()
    assert len({p.source for p in pairs}) == len(set(pairs))


def combinations(source):
    """The (adjective, noun) and (verb, noun) pairs of an English sentence, read from its words."""
    singular = {form: noun.english[0] for noun in NOUNS for form in noun.english}
    verbs = {form: verb for verb in VERBS for form in verb.english}
    text = " ".join(source).replace("train station", "train_station").replace("ice cream", "x")
    text = text.replace("swimming pool", "swimming_pool")
    words = [word.replace("_", " ") for word in text.split()]
    nouns = [singular.get(word) for word in words]
    adjectives = {adjective.english for adjective in ADJECTIVES}
    verb = next((i for i, word in enumerate(words) if word in verbs), None)
    first = next(filter(None, nouns[:verb]), None) if verb else next(filter(None, nouns), None)
    for i, word in enumerate(words):
        if word in adjectives:
            noun = next(filter(None, nouns[i + 1 : i + 2]), None)
            yield word, noun or (first if i == len(words) - 1 else None)
    if verb is not None:
        lemma = verbs[words[verb]]
        noun = next(filter(None, nouns[verb:]), None) if lemma.objects else first
        yield lemma.english[0], noun


def test_held_out_combinations_stay_in_the_test_split():
    def held(pair):
        return [c for c in combinations(pair.source) if c[1] and held_out(*c)]

    assert not any(held(pair) for pair in some_pairs())
    assert all(held(pair) for pair in some_pairs("test", 1000))
    seen = {c for pair in some_pairs("test", 1000) for c in held(pair)}
    assert len(seen) > 30


def test_train_has_every_word_and_the_vocabulary_no_other():
    train = some_pairs()
    assert {w for p in train for w in p.source} == set(SOURCE_WORDS)
    assert {w for p in train for w in p.target} == set(TARGET_WORDS)
    assert len(SOURCE_WORDS) >= 200
    assert len(TARGET_WORDS) >= 250
    for words in (SOURCE_WORDS, TARGET_WORDS):
        assert list(words) == sorted(words)
        assert all(word == unicodedata.normalize("NFC", word).lower() for word in words)
        assert UNK_ID not in Vocabulary(words).encode(words)


def test_sentences_are_short():
    lengths = [len(pair.target) for pair in every_pair()]
    assert max(lengths) <= 20
    assert 5 < sum(lengths) / len(lengths) < 10


def test_a_contraction_belongs_to_two_units():
    pair = aligned(unit("near + the + cat", "près de + le + chat"))
    assert pair.target == ("près", "du", "chat")
    assert pair.alignment == {(0, 0), (0, 1), (1, 1), (2, 2)}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": -1}, "n must not be negative, got -1"),
        ({"n": 1, "split": "dev"}, "split must be 'train' or 'test', got 'dev'"),
    ],
)
def test_bad_arguments_are_refused(arguments, message, unchecked):
    with pytest.raises(ValueError, match=message):
        grammar_pairs(seed=0, **arguments)
