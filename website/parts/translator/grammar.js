// The English sentences that the model has learnt from, as a tree: a word, all of some trees one
// after another, or one of some trees. The rules are those of transformer/data/grammar/sentences.py.

import { sum } from "../numbers.js";

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

const all = (...parts) => ({ all: parts });
const oneOf = (parts, weights = parts.map(() => 1)) => ({ oneOf: parts, weights });
const words = (text, kind) =>
  all(
    ...text
      .split(" ")
      .filter(Boolean)
      .map((word) => ({ word, kind })),
  );
const NOTHING = all();
const anyWord = () => true;
const hasVowel = (word) => /^[aeiou]/.test(word);

export class Grammar {
  constructor(tables) {
    this.tables = tables;
    this.nounPhrases = new Map();
    const clauses = tables.negations.map((negation) => this.#clause(negation));
    this.sentence = oneOf(clauses, [6, 1, 1]);
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
    if (!this.pairs) edges(this.sentence, (this.pairs = new Set()), new Map());
    return this.pairs.has(`${a} ${b}`);
  }

  /** A sentence by chance; `random` returns numbers from 0 up to 1. */
  random(random) {
    return grown(this.sentence, random).join(" ");
  }

  #clause(negation) {
    const adverbs = oneOf(this.tables.adverbs.map((adverb) => words(adverb, ADVERB)));
    const adverb = negation === "never" ? NOTHING : oneOf([NOTHING, adverbs], [4, 1]);
    const middle = all(words(negation, OTHER), adverb);
    const actions = this.tables.verbs.map((verb) => this.#action(verb, negation, middle));
    return oneOf([oneOf(actions), this.#state(negation, middle)], [2, 1]);
  }

  /** A verb and its object or, where it has none, sometimes a place. */
  #action(verb, negation, middle) {
    const [base, third] = verb.forms;
    const role = verb.direct ? "object" : "preposition";
    const rest = verb.objects.length
      ? all(words(verb.preposition, OTHER), this.#nounPhrase(verb.objects, role, negation))
      : oneOf([NOTHING, this.#place(negation)], [2, 3]);
    return this.#withSubject(verb.subjects, negation, (person) => {
      const negated = negation === "not";
      const finite = person === 2 && !negated ? third : base;
      const does = negated ? words(this.tables.do[person], VERB) : NOTHING;
      return all(does, middle, words(`${finite} ${verb.tail}`, VERB), rest);
    });
  }

  /** To be, with an adjective, a place or a feeling. */
  #state(negation, middle) {
    const { adjectives, feelings, be } = this.tables;
    const is = (kinds, complement) =>
      this.#withSubject(kinds, negation, (person) =>
        all(words(be[person], VERB), middle, complement),
      );
    const described = adjectives.map(({ word, kinds }) => is(kinds, words(word, ADJECTIVE)));
    const placed = is(["person", "animal", "thing", "text"], this.#place(negation));
    const felt = is(["person"], oneOf(feelings.map((word) => words(word, ADJECTIVE))));
    return oneOf([oneOf(described), placed, felt], [2, 1, 1]);
  }

  /** A subject, and the predicate that fits its person: 0 i, 1 you, 2 he, 3 we, 4 they. */
  #withSubject(kinds, negation, predicate) {
    const [one, many] = [false, true].map((plural) =>
      this.#numbered(kinds, "subject", negation, plural),
    );
    const nouns = oneOf([all(one, predicate(2)), all(many, predicate(4))], [65, 35]);
    if (!kinds.includes("person")) return nouns;
    const short = this.tables.pronouns.map(([word, person]) =>
      all(words(word, PRONOUN), predicate(person)),
    );
    return oneOf([oneOf(short), nouns], [45, 55]);
  }

  #place(negation) {
    const place = ([text, kinds]) =>
      all(words(text, OTHER), this.#nounPhrase(kinds, "preposition", negation));
    return oneOf(this.tables.places.map(place));
  }

  #nounPhrase(kinds, role, negation) {
    const phrases = [false, true].map((plural) => this.#numbered(kinds, role, negation, plural));
    return oneOf(phrases, [65, 35]);
  }

  /** A determiner and a noun, often with an adjective between them. */
  #numbered(kinds, role, negation, plural) {
    const key = [kinds, role, negation, plural].join();
    if (!this.nounPhrases.has(key))
      this.nounPhrases.set(key, this.#determined(kinds, role, negation, plural));
    return this.nounPhrases.get(key);
  }

  #determined(kinds, role, negation, plural) {
    const { the, determiners } = this.tables;
    const nouns = this.#described(kinds, plural, anyWord);
    const fits = (form) => form && !(negation && form === "every");
    const forms = determiners.map((both) => both[Number(plural)]).filter(fits);
    const others = all(oneOf(forms.map((form) => words(form, DETERMINER))), nouns);
    const definite = all(words(the[Number(plural)], DETERMINER), nouns);
    if (plural && role === "preposition") return oneOf([definite, others], [2, 3]);
    const indefinite = this.#indefinite(kinds, plural, negation && role === "object");
    return oneOf([definite, indefinite, others], [40, 21, 39]);
  }

  /** a, an or some; an object of what does not happen has a, an or any. */
  #indefinite(kinds, plural, negated) {
    const [a, some] = this.tables.a;
    const described = (fits) => this.#described(kinds, plural, fits);
    if (plural) return all(words(negated ? "any" : some, DETERMINER), described(anyWord));
    const alone = all(
      words(a, DETERMINER),
      described((word) => !hasVowel(word)),
    );
    return oneOf([alone, all(words("an", DETERMINER), described(hasVowel))], [3, 1]);
  }

  /** A noun of these kinds, with an adjective or without; the first word of both is one that fits. */
  #described(kinds, plural, fits) {
    const { nouns, adjectives } = this.tables;
    const phrases = kinds.map((kind) => {
      const forms = nouns
        .filter((noun) => noun.kind === kind)
        .map((noun) => noun.forms[Number(plural)]);
      const fitting = adjectives.filter(({ word, kinds }) => kinds.includes(kind) && fits(word));
      const chosen = (these) => oneOf(these.map((form) => words(form, NOUN)));
      const adjective = oneOf(fitting.map(({ word }) => words(word, ADJECTIVE)));
      return [
        { phrase: chosen(forms.filter(fits)), weight: 3 * forms.filter(fits).length },
        { phrase: all(adjective, chosen(forms)), weight: fitting.length && 2 * forms.length },
      ];
    });
    const possible = phrases.flat().filter(({ weight }) => weight > 0);
    return oneOf(
      possible.map(({ phrase }) => phrase),
      possible.map(({ weight }) => weight),
    );
  }
}

/**
 * Where this tree may end if it begins at word i: a Set of places. A tree that comes to the end of
 * the words puts what it wants next into `wanted`. `seen` keeps answers, for trees share parts.
 */
function follow(tree, before, i, wanted, seen) {
  if (tree.word !== undefined) {
    if (i === before.length) wanted.set(tree.word, tree.kind);
    return new Set(before[i] === tree.word ? [i + 1] : []);
  }
  if (!seen.has(tree)) seen.set(tree, []);
  const known = seen.get(tree);
  known[i] ??= tree.oneOf
    ? new Set(tree.oneOf.flatMap((part) => [...follow(part, before, i, wanted, seen)]))
    : tree.all.reduce(
        (ends, part) =>
          new Set([...ends].flatMap((j) => [...follow(part, before, j, wanted, seen)])),
        new Set([i]),
      );
  return known[i];
}

function grown(tree, random) {
  if (tree.word !== undefined) return [tree.word];
  if (tree.all) return tree.all.flatMap((part) => grown(part, random));
  let left = random() * sum(tree.weights);
  const chosen = tree.oneOf.findIndex((_, i) => (left -= tree.weights[i]) < 0);
  return grown(tree.oneOf.at(chosen), random);
}

/**
 * The words that a tree may begin and end with, and whether it may be empty. What may meet inside
 * of it is added to `pairs`. `seen` keeps answers, for trees share parts.
 */
function edges(tree, pairs, seen) {
  if (tree.word !== undefined) {
    const word = new Set([tree.word]);
    return { first: word, last: word, empty: false };
  }
  if (!seen.has(tree)) {
    const parts = (tree.oneOf ?? tree.all).map((part) => edges(part, pairs, seen));
    const nothing = { first: new Set(), last: new Set(), empty: !tree.oneOf };
    seen.set(tree, parts.reduce(tree.oneOf ? either : (a, b) => joined(a, b, pairs), nothing));
  }
  return seen.get(tree);
}

const both = (a, b) => new Set([...a, ...b]);
const either = (a, b) => ({
  first: both(a.first, b.first),
  last: both(a.last, b.last),
  empty: a.empty || b.empty,
});

function joined(a, b, pairs) {
  for (const left of a.last) for (const right of b.first) pairs.add(`${left} ${right}`);
  return {
    first: a.empty ? both(a.first, b.first) : a.first,
    last: b.empty ? both(a.last, b.last) : b.last,
    empty: a.empty && b.empty,
  };
}
