// The calculations that the translator and the living figures share. No page is needed for them.
// A vector is an array or, in the translator, a Float32Array; what comes out is of the same kind.

export const sum = (numbers) => numbers.reduce((total, each) => total + each, 0);
export const mean = (numbers) => sum(numbers) / numbers.length;

/** Of two vectors, or of the `width` numbers of both from `start` on. */
export function dot(a, b, start = 0, width = a.length) {
  let total = 0;
  for (let i = start; i < start + width; i++) total += a[i] * b[i];
  return total;
}

/** Of scores, of which some may be -Infinity; all of them: NaN, as in PyTorch. */
export function softmax(scores) {
  const most = Math.max(...scores);
  const exponentials = scores.map((score) => Math.exp(score - most));
  const total = sum(exponentials);
  return exponentials.map((each) => each / total);
}

export const entropy = (p) =>
  -sum(p.filter((each) => each > 0).map((each) => each * Math.log(each)));

/** The indices of `values`, the largest first; of equals, the first comes first. */
export const order = (values) =>
  Array.from(values.keys()).sort((i, j) => values[j] - values[i]);

/** -Infinity for all but the k largest. */
export function keepTopK(logits, k = logits.length) {
  const kth = logits[order(logits)[Math.min(k, logits.length) - 1]];
  return logits.map((each) => (each < kth ? -Infinity : each));
}

/** -Infinity for all but the fewest that together reach the probability p; 1 keeps all. */
export function keepTopP(logits, p = 1) {
  if (p >= 1) return logits;
  const shares = softmax(logits);
  const kept = new Set();
  let before = 0;
  for (const i of order(shares)) {
    if (before >= p) break;
    kept.add(i);
    before += shares[i];
  }
  return logits.map((each, i) => (kept.has(i) ? each : -Infinity));
}

/** The index at which the sum of the probabilities passes `share`, a number from 0 up to 1. */
export function drawFrom(probabilities, share) {
  let reached = 0;
  for (let i = 0; i < probabilities.length; i++) {
    reached += probabilities[i];
    if (share < reached) return i;
  }
  return probabilities.findLastIndex((each) => each > 0); // the sum was rounded down
}

/** Numbers from 0 up to 1, the same for the same seed: mulberry32. */
export function generator(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}
