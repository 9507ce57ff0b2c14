// Chapter 10, section 10.4: what a word is drawn with, and draws.

import { softmax, uniform } from "./numbers.js";

/** -Infinity for all but the k largest. */
export function keepTopK(logits, k) {
  const kth = [...logits].sort((a, b) => b - a)[Math.min(k, logits.length) - 1];
  return logits.map((each) => (each < kth ? -Infinity : each));
}

/** -Infinity for all but the fewest that together reach the probability p; 1 keeps all. */
export function keepTopP(logits, p) {
  if (p >= 1) return logits;
  const shares = softmax(logits);
  const order = shares.map((_, i) => i).sort((a, b) => shares[b] - shares[a] || a - b);
  const kept = new Set();
  let before = 0;
  for (const i of order) {
    if (before >= p) break;
    kept.add(i);
    before += shares[i];
  }
  return logits.map((each, i) => (kept.has(i) ? each : -Infinity));
}

/** What a word is drawn with: first the temperature, then top-k, then top-p. */
export function reshaped(p, { tau, k, enough }) {
  const logits = p.map((each) => Math.log(each) / tau);
  return softmax(keepTopP(keepTopK(logits, k), enough));
}

/** The shares of `n` words that are drawn one after the other. */
export function drawn(p, n, seed) {
  const next = uniform(seed);
  const counts = p.map(() => 0);
  for (let i = 0; i < n; i++) {
    const at = next();
    let reached = 0;
    let word = p.findLastIndex((share) => share > 0); // where rounding leaves a sum just below 1
    for (let j = 0; j < p.length; j++) {
      reached += p[j];
      if (at < reached) {
        word = j;
        break;
      }
    }
    counts[word] += 1;
  }
  return counts.map((count) => count / n);
}
