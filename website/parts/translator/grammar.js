// The English sentences that the model has learnt from: which words may come next, and sentences by
// chance. What the rules are, website/extensions/grammar_rules.py finds when the site is built.

import { all, edges, follow, grown, oneOf } from "./tree.js";

export class Grammar {
  /**
   * `words` are lists by kinds. A rule is one of several sequences, in groups behind the weight that
   * each of the group has. A sequence is a list of numbers, or one, which count the words and then
   * the rules before this one. The last rule is that of a sentence.
   */
  constructor({ words, rules }) {
    this.kinds = Object.keys(words);
    const parts = this.kinds.flatMap((kind) => words[kind].map((word) => ({ word, kind })));
    this.kindOf = new Map(parts.map(({ word, kind }) => [word, kind]));
    const sequence = (numbers) => all(...[numbers].flat().map((i) => parts[i]));
    for (const groups of rules) {
      const weights = groups.flatMap(([weight, ...those]) => those.map(() => weight));
      parts.push(oneOf(groups.flatMap(([, ...those]) => those).map(sequence), weights));
    }
    this.sentence = parts.at(-1);
  }

  /** The words that may follow these, as a Map to their kinds; and whether a sentence may end. */
  next(before) {
    const wanted = new Map();
    const ends = follow(this.sentence, before, 0, wanted, new Map());
    const inOrder = ([a, kind], [b, other]) =>
      this.kinds.indexOf(kind) - this.kinds.indexOf(other) || (a < b ? -1 : 1);
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
}
