// The calculations that several figures share. No page is needed for them.

export const sum = (numbers) => numbers.reduce((total, each) => total + each, 0);
export const mean = (numbers) => sum(numbers) / numbers.length;
export const dot = (a, b) => sum(a.map((each, i) => each * b[i]));

/** Of scores, of which some may be -Infinity; all of them: NaN, as in PyTorch. */
export function softmax(scores) {
  const most = Math.max(...scores);
  const exponentials = scores.map((score) => Math.exp(score - most));
  const total = sum(exponentials);
  return exponentials.map((each) => each / total);
}

export const entropy = (p) =>
  -sum(p.filter((each) => each > 0).map((each) => each * Math.log(each)));

/** Numbers from 0 to 1, the same for the same seed: mulberry32. */
export function uniform(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}
