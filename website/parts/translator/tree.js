// Sentences as a tree: { word, kind }, or { all } of some trees one after another, or { oneOf } some
// trees, with weights.

import { drawFrom, sum } from "../numbers.js";

export const all = (...parts) => ({ all: parts });
export const oneOf = (parts, weights = parts.map(() => 1)) => ({ oneOf: parts, weights });

/**
 * Where this tree may end if it begins at word i: a Set of places. A tree that comes to the end of
 * the words puts what it wants next into `wanted`. `seen` keeps answers, for trees share parts.
 */
export function follow(tree, before, i, wanted, seen) {
  if (tree.word !== undefined) {
    if (i === before.length) wanted.set(tree.word, tree.kind);
    return new Set(before[i] === tree.word ? [i + 1] : []);
  }
  if (!seen.has(tree)) seen.set(tree, []);
  const known = seen.get(tree);
  if (!known[i]) {
    const after = (parts, starts) =>
      new Set(
        parts.flatMap((part) => starts.flatMap((j) => [...follow(part, before, j, wanted, seen)])),
      );
    let ends = new Set([i]);
    for (const part of tree.all ?? []) ends = after([part], [...ends]);
    known[i] = tree.oneOf ? after(tree.oneOf, [i]) : ends;
  }
  return known[i];
}

/** The words of a tree, one by chance of each that may stand in a place. */
export function grown(tree, random) {
  if (tree.word !== undefined) return [tree.word];
  if (tree.all) return tree.all.flatMap((part) => grown(part, random));
  return grown(tree.oneOf[drawFrom(tree.weights, random() * sum(tree.weights))], random);
}

/**
 * The words that a tree may begin and end with, and whether it may be empty. What may meet inside
 * of it is added to `pairs`. `seen` keeps answers, for trees share parts.
 */
export function edges(tree, pairs, seen) {
  if (tree.word !== undefined) {
    const word = new Set([tree.word]);
    return { first: word, last: word, empty: false };
  }
  if (!seen.has(tree)) {
    const parts = (tree.oneOf ?? tree.all).map((part) => edges(part, pairs, seen));
    const nothing = { first: new Set(), last: new Set(), empty: !tree.oneOf };
    seen.set(tree, parts.reduce(tree.oneOf ? united : (a, b) => joined(a, b, pairs), nothing));
  }
  return seen.get(tree);
}

const both = (a, b) => new Set([...a, ...b]);
const united = (a, b) => ({
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
