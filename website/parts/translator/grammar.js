// The English sentences that the model has learnt from, as a tree: a word, all of some trees one
// after another, or one of some trees. The rules are those of transformer/data/grammar/sentences.py.

import { sum } from "../numbers.js";
import { all, edges, either, follow, grown, NOTHING, oneOf, words } from "./tree.js";

export const KINDS = [
  "pronoun",
  "determiner",
  "adjective",
  "noun",
  "verb",
  "adverb",
  "other words",
];
const [PRONOUN, DETERMINER, ADJECTIVE, NOUN, VERB, ADVERB, OTHER] = KINDS;

const anyWord = () => true;
const hasVowel = (word) => /^[aeiou]/.test(word);

export class Grammar {
  constructor(tables) {
    this.tables = tables;
    this.nounPhrases = new Map();
    const [plain, ...negated] = tables.negations.map((negation) => this.#clause(negation));
    this.sentence = either(tables.odds.negated, oneOf(negated), plain);
  }

  /** The words that may follow these, as a Map to their kinds; and whether a sentence may end. */
  next(before) {
    const wanted = new Map();
    const ends = follow(this.sentence, before, 0, wanted, new Map());
    const inOrder = ([a, kind], [b, other]) =>
      KINDS.indexOf(kind) - KINDS.indexOf(other) || (a < b ? -1 : 1);
    return { words: new Map([...wanted].sort(inOrder)), complete: ends.has(before.length) };
  }

  /** The place of the first word with which no sentence goes on; -1 if there is none. */
  leaves(words) {
    return words.findIndex((word, i) => !this.next(words.slice(0, i)).words.has(word));
  }

  /** Whether the word b stands right behind the word a in any sentence. */
  joins(a, b) {
    if (!this.pairs) {
      this.pairs = new Set();
      edges(this.sentence, this.pairs, new Map());
    }
    return this.pairs.has(`${a} ${b}`);
  }

  /** A sentence by chance; `random` returns numbers from 0 up to 1. */
  random(random) {
    return grown(this.sentence, random).join(" ");
  }

  #clause(negation) {
    const adverbs = oneOf(this.tables.adverbs.map((adverb) => words(adverb, ADVERB)));
    const { odds } = this.tables;
    const adverb = negation === "never" ? NOTHING : either(odds.adverb, adverbs, NOTHING);
    const middle = all(words(negation, OTHER), adverb);
    const actions = this.tables.verbs.map((verb) => this.#action(verb, negation, middle));
    return either(odds.action, oneOf(actions), this.#state(negation, middle));
  }

  /** A verb and its object or, where it has none, sometimes a place. */
  #action(verb, negation, middle) {
    const [base, third] = verb.forms;
    const role = verb.direct ? "object" : "preposition";
    const rest = verb.objects.length
      ? all(words(verb.preposition, OTHER), this.#nounPhrase(verb.objects, role, negation))
      : either(this.tables.odds.place, this.#place(negation), NOTHING);
    return this.#withSubject(verb.subjects, negation, (person) => {
      const negated = negation === "not";
      const finite = person === 2 && !negated ? third : base;
      const does = negated ? words(this.tables.do[person], VERB) : NOTHING;
      return all(does, middle, words(`${finite} ${verb.tail}`, VERB), rest);
    });
  }

  /** To be, with an adjective, a place or a feeling. */
  #state(negation, middle) {
    const { adjectives, feelings, be, odds } = this.tables;
    const is = (kinds, complement) =>
      this.#withSubject(kinds, negation, (person) =>
        all(words(be[person], VERB), middle, complement),
      );
    const described = adjectives.map(({ word, kinds }) => is(kinds, words(word, ADJECTIVE)));
    const placed = is(this.tables.placed, this.#place(negation));
    const felt = is(this.tables.feeling, oneOf(feelings.map((word) => words(word, ADJECTIVE))));
    const weights = ["adjective", "place", "feeling"].map((state) => odds[`is ${state}`]);
    return oneOf([oneOf(described), placed, felt], weights);
  }

  /** A subject, and the predicate that fits its person: 0 i, 1 you, 2 he, 3 we, 4 they. */
  #withSubject(kinds, negation, predicate) {
    const [one, many] = [false, true].map((plural) =>
      this.#numbered(kinds, "subject", negation, plural),
    );
    const { odds } = this.tables;
    const nouns = either(odds.plural, all(many, predicate(4)), all(one, predicate(2)));
    if (!kinds.includes("person")) return nouns;
    const short = this.tables.pronouns.map(([word, person]) =>
      all(words(word, PRONOUN), predicate(person)),
    );
    return either(odds.pronoun, oneOf(short), nouns);
  }

  #place(negation) {
    const place = ([text, kinds]) =>
      all(words(text, OTHER), this.#nounPhrase(kinds, "preposition", negation));
    return oneOf(this.tables.places.map(place));
  }

  #nounPhrase(kinds, role, negation) {
    const [one, many] = [false, true].map((plural) =>
      this.#numbered(kinds, role, negation, plural),
    );
    return either(this.tables.odds.plural, many, one);
  }

  /** A determiner and a noun, often with an adjective between them. */
  #numbered(kinds, role, negation, plural) {
    const key = [kinds, role, negation, plural].join();
    if (!this.nounPhrases.has(key))
      this.nounPhrases.set(key, this.#determined(kinds, role, negation, plural));
    return this.nounPhrases.get(key);
  }

  #determined(kinds, role, negation, plural) {
    const { the, determiners, every, odds } = this.tables;
    const { phrase: nouns } = this.#described(kinds, plural, anyWord);
    const fits = (form) => form && !(negation && form === every);
    const forms = determiners.map((both) => both[Number(plural)]).filter(fits);
    const others = all(oneOf(forms.map((form) => words(form, DETERMINER))), nouns);
    const definite = all(words(the[Number(plural)], DETERMINER), nouns);
    if (plural && role === "preposition") return either(odds.definite, definite, others);
    const indefinite = this.#indefinite(kinds, plural, negation && role === "object");
    return either(odds.definite, definite, either(odds.indefinite, indefinite, others));
  }

  /** a, an or some; an object of what does not happen has a, an or any. */
  #indefinite(kinds, plural, negated) {
    const [a, some] = this.tables.a;
    const described = (fits) => this.#described(kinds, plural, fits);
    if (plural) return all(words(negated ? "any" : some, DETERMINER), described(anyWord).phrase);
    const [alone, before] = [described((word) => !hasVowel(word)), described(hasVowel)];
    return oneOf(
      [all(words(a, DETERMINER), alone.phrase), all(words(`${a}n`, DETERMINER), before.phrase)],
      [alone.weight, before.weight],
    );
  }

  /**
   * A noun of these kinds, with an adjective or without, where the first word of both is one that
   * fits; and how many nouns' worth of phrases these are.
   */
  #described(kinds, plural, fits) {
    const { nouns, adjectives, odds } = this.tables;
    const phrases = kinds.flatMap((kind) => {
      const forms = nouns
        .filter((noun) => noun.kind === kind)
        .map((noun) => noun.forms[Number(plural)]);
      const fitting = forms.filter(fits);
      const possible = adjectives.filter((adjective) => adjective.kinds.includes(kind));
      const describing = possible.filter(({ word }) => fits(word));
      const chosen = (these) => oneOf(these.map((form) => words(form, NOUN)));
      const adjective = oneOf(describing.map(({ word }) => words(word, ADJECTIVE)));
      const share = describing.length / possible.length;
      return [
        { phrase: chosen(fitting), weight: (1 - odds.adjective) * fitting.length },
        { phrase: all(adjective, chosen(forms)), weight: odds.adjective * forms.length * share },
      ];
    });
    const likely = phrases.filter(({ weight }) => weight > 0);
    const weights = likely.map(({ weight }) => weight);
    return {
      phrase: oneOf(
        likely.map(({ phrase }) => phrase),
        weights,
      ),
      weight: sum(weights),
    };
  }
}
