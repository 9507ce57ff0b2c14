// Chapter 10, section 10.4: what a word is drawn with, and draws.

import { drawFrom, generator, keepTopK, keepTopP, softmax } from "../numbers.js";

/** What a word is drawn with: first the temperature, then top-k, then top-p. */
export function reshaped(p, { tau, k, enough }) {
  const logits = p.map((each) => Math.log(each) / tau);
  return softmax(keepTopP(keepTopK(logits, k), enough));
}

/** The shares of `n` words that are drawn one after the other. */
export function drawn(p, n, seed) {
  const next = generator(seed);
  const counts = p.map(() => 0);
  for (let i = 0; i < n; i++) counts[drawFrom(p, next())] += 1;
  return counts.map((count) => count / n);
}
