// Where a word goes: its row as a point in a plane of two directions, after each part of the encoder.
// Python has made the directions (website/extensions/film_files.py); all else is calculated here.

import { dot, mean, order } from "../numbers.js";
import words from "../translator/words.js";
import plane from "./plane.js";
import { watch } from "./watch.js";

export const ARTICLES = ["le", "la", "les"];
export const VIEW = { left: -14, right: 16, low: -7.4, high: 12.8 }; // of the plane, around its middle
const NODES = { x: 16, y: 11 }; // in so many columns and rows the decoder is asked
export const SHOWN = ["cat", "queen", "cats", "cows"]; // whose ways are drawn together
const UNASKED = "horses"; // in the other nouns' sentences the borders lie a little elsewhere
const END = 4; // the last of a word's five places

export const spotOf = (row) => plane.axes.map((axis, i) => dot(axis, row) - plane.middle[i]);

/** Where all words are: at first, after the first look, layer 1, the second look, and at the end. */
export const waysOf = ({ encoder }) =>
  [
    encoder[0].attention.x,
    ...encoder.flatMap(({ attention, feedForward }) => [attention.sum, feedForward.sum]),
  ].map((rows) => rows.map(spotOf));

/** How much word t looks at each word in a layer's attention: the mean of its heads. */
export const meanLook = ({ heads }, t) =>
  heads[0].weights[t].map((_, s) => mean(heads.map(({ weights }) => weights[t][s])));

/**
 * What each word brings word t, as arrows in the plane that together are its move: of each head its
 * share times what the value becomes in W_o, whose bias is dealt out by the shares. With `whole` each
 * value counts in full, as if all shares were 1.
 */
export function pulls({ model, encoder }, layer, t, whole = false) {
  const { heads } = encoder[layer].attention;
  const { weight, bias, columns } = model.encoder[layer].attention.output;
  const size = columns / heads.length;
  return plane.axes.map((axis) => {
    const through = Float64Array.from({ length: columns }, (_, j) =>
      axis.reduce((sum, a, i) => sum + a * weight[i * columns + j], 0),
    );
    return heads[0].values.map((_, s) =>
      heads.reduce((sum, { weights, values }, h) => {
        const hands = dot(through.subarray(h * size, (h + 1) * size), values[s]);
        return sum + (whole ? 1 : weights[t][s]) * (hands + dot(axis, bias) / heads.length);
      }, 0),
    );
  });
}

/**
 * What the decoder would write first if the row of word 0 lay elsewhere in the plane and all else
 * stayed: at each spot its scores of the three articles, and the best of all other words.
 */
export function scoresAt({ model, encoder, memory }, spots) {
  const row = encoder.at(-1).feedForward.sum[0];
  const [x, y] = spotOf(row);
  const ids = ARTICLES.map((word) => words.french.indexOf(word));
  return spots.map(([u, v]) => {
    const [a, b] = plane.axes;
    const moved = row.map((value, i) => value + (u - x) * a[i] + (v - y) * b[i]);
    const state = model.remember([model.encoderNorm.of(moved), ...memory.slice(1)]);
    const { logits } = model.next(words.ids.bos, state);
    const other = order(logits).find((id) => !ids.includes(id) && id !== words.ids.pad);
    return [...ids.map((id) => logits[id]), logits[other]];
  });
}

/** A function that says what the decoder would write at a spot, from the nodes around it. */
function fieldOf(trace) {
  const { left, right, low, high } = VIEW;
  const [w, h] = [(right - left) / (NODES.x - 1), (high - low) / (NODES.y - 1)];
  const nodes = Array.from({ length: NODES.x * NODES.y }, (_, k) => [
    left + w * (k % NODES.x),
    low + h * Math.floor(k / NODES.x),
  ]);
  const scores = scoresAt(trace, nodes);
  return ([x, y]) => {
    const [u, v] = [(x - left) / w, (y - low) / h];
    const within = (k, most) => Math.max(0, Math.min(most - 2, Math.floor(k)));
    const [i, j] = [within(u, NODES.x), within(v, NODES.y)];
    const at = (di, dj) => scores[(j + dj) * NODES.x + i + di];
    const [a, b] = [u - i, v - j];
    const mixed = at(0, 0).map(
      (z, k) =>
        (1 - b) * ((1 - a) * z + a * at(1, 0)[k]) + b * ((1 - a) * at(0, 1)[k] + a * at(1, 1)[k]),
    );
    return ARTICLES[order(mixed)[0]];
  };
}

/** "the black NOUN sleeps", for each noun that can be followed, read once. */
export class Moves {
  constructor(model) {
    this.model = model;
    this.nouns = plane.followed;
    this.kept = new Map();
  }

  static sentence(noun) {
    const { forms } = plane.nouns.find((each) => each.forms.includes(noun));
    return ["the", "black", noun, noun === forms[1] ? "sleep" : "sleeps"];
  }

  /** What a *the* would become at any spot: one that has not asked its noun, for all sentences. */
  get field() {
    const unasked = this.of(Moves.sentence(UNASKED), ["0 2", "1 2"]);
    unasked.field ??= fieldOf(unasked.trace);
    return unasked.field;
  }

  /** What is known of a sentence whose first word is *the*; `cuts` are looks of it, as "layer word". */
  of(sentence, cuts = []) {
    const key = [...sentence, ...cuts].join();
    if (!this.kept.has(key)) {
      const part = { part: "encoder", query: 0 };
      const looks = cuts.map((cut) => ({ ...part, layer: Number(cut[0]), key: Number(cut[2]) }));
      const trace = watch(this.model, sentence, { cuts: looks });
      const { words } = trace.source;
      const ways = waysOf(trace);
      this.kept.set(key, { trace, words, ways, end: ways[END], article: trace.words[0] });
    }
    return this.kept.get(key);
  }

  /** What is known of a noun's sentence, and what `says` and `draw` of the first steps need besides. */
  told(noun, cuts = []) {
    const whole = this.of(Moves.sentence(noun));
    const place = whole.words.indexOf(noun);
    whole.arrows ??= [0, 1].map((layer) => transposed(pulls(whole.trace, layer, 0)));
    whole.value ??= pulls(whole.trace, 0, 0, true).map((axis) => axis[place]);
    const now = cuts.length ? this.of(Moves.sentence(noun), cuts) : whole;
    if (cuts.length) now.field ??= fieldOf(now.trace); // of this very row
    now.looks ??= now.trace.encoder.map(({ attention }) => meanLook(attention, 0));
    whole.looks ??= whole.trace.encoder.map(({ attention }) => meanLook(attention, 0));
    return {
      ...{ ...whole, noun, place, cuts, now, moves: this, cloud: plane.nouns },
      ...{ nouns: this.nouns, asks: this.nouns.indexOf(noun), field: now.field ?? this.field },
      idOf: (word) => words.english.indexOf(word),
    };
  }

  /** A sentence with two *the*, each with the place of its noun and what it becomes. */
  get twice() {
    const whole = this.of(["the", "queen", "sees", "the", "black", "cats"]);
    const looks = whole.trace.encoder.map(({ attention }) =>
      whole.words.map((_, t) => meanLook(attention, t)),
    );
    const articles = whole.trace.words.filter((word) => ARTICLES.includes(word));
    const seconds = [0, 3].map((t, i) => [t, [1, 5][i], articles[i]]);
    return { ...whole, looks, seconds };
  }

  /** What becomes of *the* before each noun if these looks are taken away. */
  all(cuts) {
    return this.nouns.map((noun) => {
      const { article } = this.of(Moves.sentence(noun));
      const now = this.of(Moves.sentence(noun), cuts);
      return { ...now, noun, right: now.article === article };
    });
  }
}

const transposed = ([x, y]) => Array.from(x, (each, s) => [each, y[s]]);
