// The English sentences that the model has learnt from: which words may come next, and sentences by
// chance. What the rules are, website/extensions/grammar_rules.py finds when the site is built.

import { drawFrom, sum } from "../numbers.js";

export class Grammar {
  /**
   * `words` are lists by kinds. A rule is one of several sequences. Each is a list of numbers: its
   * weight, and then its parts, which count the words and then the rules before this one. The last
   * rule is that of a sentence.
   */
  constructor({ words, rules }) {
    const pairs = Object.entries(words).flatMap(([kind, those]) =>
      those.map((word) => [word, kind]),
    );
    this.kindOf = new Map(pairs);
    const parts = [...this.kindOf.keys()]; // words, then rules as { ways, weights }
    for (const rule of rules) {
      const ways = rule.map(([, ...numbers]) => numbers.map((i) => parts[i]));
      parts.push({ ways, weights: rule.map(([weight]) => weight) });
    }
    this.sentence = parts.at(-1);
  }

  /** The words that may follow these, as a Map to their kinds; and whether a sentence may end. */
  next(before) {
    const wanted = new Set();
    const complete = follow(this.sentence, before, 0, wanted, new Map()).has(before.length);
    return { words: new Map([...this.kindOf].filter(([word]) => wanted.has(word))), complete };
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
}

/**
 * Where a part may end if it begins at word i: a Set of places. A part that comes to the end of the
 * words puts what it wants next into `wanted`. `seen` keeps answers, for rules share parts.
 */
function follow(part, before, i, wanted, seen) {
  if (typeof part === "string") {
    if (i === before.length) wanted.add(part);
    return new Set(before[i] === part ? [i + 1] : []);
  }
  if (!seen.has(part)) seen.set(part, []);
  const after = (places, each) =>
    new Set([...places].flatMap((j) => [...follow(each, before, j, wanted, seen)]));
  const ends = () => part.ways.flatMap((way) => [...way.reduce(after, new Set([i]))]);
  seen.get(part)[i] ??= new Set(ends());
  return seen.get(part)[i];
}

/** The words of a part, one way by chance of each rule. */
function grown(part, random) {
  if (typeof part === "string") return [part];
  const { ways, weights } = part;
  return ways[drawFrom(weights, random() * sum(weights))].flatMap((each) => grown(each, random));
}

/**
 * The words that a part may begin and end with. What may meet inside of it is added to `pairs`.
 * `seen` keeps answers, for rules share parts. A part that may be empty ends a sentence.
 */
function edges(part, pairs, seen) {
  if (typeof part === "string") return { first: [part], last: [part] };
  if (!seen.has(part)) {
    const ways = part.ways.map((way) => way.map((each) => edges(each, pairs, seen)));
    for (const way of ways)
      for (const [i, { first }] of way.slice(1).entries())
        for (const a of way[i].last) for (const b of first) pairs.add(`${a} ${b}`);
    const first = new Set(ways.flatMap((way) => way[0]?.first ?? []));
    const last = new Set(ways.flatMap((way) => way.at(-1)?.last ?? []));
    seen.set(part, { first: [...first], last: [...last] });
  }
  return seen.get(part);
}
