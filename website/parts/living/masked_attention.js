// Chapter 4, sections 4.4 and 4.5: four words, a mask, and five ways to hide a key.

import { dot, softmax } from "../numbers.js";

export const SCORES = [
  [0.5, -0.5, -0.5, -1],
  [0, 1, 0.5, 0],
  [-0.5, 1, 1.5, 2],
  [-1.5, 1, 2, 0.5],
];
export const VALUES = [
  [1, 0],
  [0, 1],
  [2, 1],
  [1, 3],
];
const NEW_VALUES = [
  [1, 0],
  [0, -2],
  [-1, 2],
  [3, -1],
];
const NEW_SCORES = [0, -1.5, 1.5, -1]; // added to the scores of an exchanged word, as key and as query
export const PLACES = [0, 1, 2, 3];
export const WORDS = ["<bos>", "le", "chat", "noir"];
export const OTHERS = ["", "un", "chien", "blanc"]; // what each word may be exchanged for

/** The words that stand there when the word at `place` is exchanged. */
export const wordsOf = ({ place }) =>
  WORDS.map((word, t) => (t === Number(place) ? OTHERS[t] : word));

const hide = (row, mask, number) => row.map((score, s) => (mask[s] ? score : number));

/** Chapter 4's five ways from a row of scores and its mask to weights. */
export const WAYS = {
  package: (row, mask) =>
    mask.some(Boolean) ? softmax(hide(row, mask, -Infinity)) : row.map(() => 0),
  infinity: (row, mask) => softmax(hide(row, mask, -Infinity)),
  billion: (row, mask) => softmax(hide(row, mask, -1e9)),
  before: (row, mask) => softmax(row.map((score, s) => score * mask[s])),
  after: (row, mask) => softmax(row).map((weight, s) => weight * mask[s]),
};

/** Scores and values when the word at `place` is exchanged; -1 exchanges none. */
export function sentence(place) {
  const shift = (t, s) => (t === place || s === place ? NEW_SCORES[place] : 0);
  return {
    scores: SCORES.map((row, t) => row.map((score, s) => score + (shift(t, s) * (s + 1)) / 2)),
    values: VALUES.map((value, s) => (s === place ? NEW_VALUES[s] : value)),
  };
}

export function attend(scores, values, mask, way) {
  const weights = scores.map((row, t) => WAYS[way](row, mask[t]));
  const columns = [0, 1].map((c) => values.map((value) => value[c]));
  return { weights, outputs: weights.map((row) => columns.map((column) => dot(row, column))) };
}

/** What each row gives in the same way if the sentence ends there. */
export function onPrefixes(scores, values, mask, way) {
  return PLACES.map((t) => {
    const until = (list) => list.slice(0, t + 1);
    const ended = attend([until(scores[t])], until(values), [until(mask[t])], way);
    return { weights: ended.weights[0], output: ended.outputs[0] };
  });
}

export const far = (a, b) => a.some((each, i) => !(Math.abs(each - b[i]) < 1e-9));
export const maskOf = (bits) => PLACES.map((t) => PLACES.map((s) => bits[4 * t + s] === "1"));
export const CAUSAL = "1000110011101111";

/** Everything that a state of the figure shows. */
export function seen({ bits, way, place }) {
  const { scores, values } = sentence(Number(place));
  const mask = maskOf(bits);
  return { scores, values, mask, ...attend(scores, values, mask, way) };
}

/** The rows whose output changes with the exchanged word. */
export function changed(state) {
  const before = seen({ ...state, place: "-1" }).outputs;
  return seen(state).outputs.map((output, t) =>
    output.some(
      (each, c) => !Object.is(each, before[t][c]) && !(Math.abs(each - before[t][c]) < 1e-9),
    ),
  );
}
