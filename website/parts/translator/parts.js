// The parts of the model in plain loops. A vector is a Float32Array, a matrix an array of its rows.

import { dot, softmax } from "../numbers.js";

const EPSILON = 1e-5; // LayerNorm's

/** A linear map: x W^T + b. The weights lie row after row, a row for each output. */
export class Linear {
  constructor(tensors, name) {
    const { shape, data } = tensors[`${name}.weight`];
    [this.rows, this.columns] = shape;
    this.weight = data;
    this.bias = tensors[`${name}.bias`]?.data;
  }

  of(x) {
    const y = new Float32Array(this.rows);
    for (let i = 0; i < this.rows; i++) {
      let sum = this.bias ? this.bias[i] : 0;
      for (let j = 0; j < this.columns; j++) sum += this.weight[i * this.columns + j] * x[j];
      y[i] = sum;
    }
    return y;
  }
}

export class LayerNorm {
  constructor(tensors, name) {
    this.weight = tensors[`${name}.weight`].data;
    this.bias = tensors[`${name}.bias`].data;
  }

  of(x) {
    const mean = x.reduce((sum, value) => sum + value, 0) / x.length;
    const variance = x.reduce((sum, value) => sum + (value - mean) ** 2, 0) / x.length;
    const scale = 1 / Math.sqrt(variance + EPSILON);
    return x.map((value, i) => (value - mean) * scale * this.weight[i] + this.bias[i]);
  }
}

export class FeedForward {
  constructor(tensors, name) {
    this.first = new Linear(tensors, `${name}.W_1`);
    this.second = new Linear(tensors, `${name}.W_2`);
  }

  /** What comes out, and the numbers in between. */
  of(x) {
    const hidden = this.first.of(x).map((value) => Math.max(0, value));
    return { out: this.second.of(hidden), hidden };
  }
}

/** The keys and values of the tokens so far, a row for each. Rows never change: copies share them. */
export class Cache {
  constructor(keys = [], values = []) {
    this.keys = keys;
    this.values = values;
  }

  copy() {
    return new Cache([...this.keys], [...this.values]);
  }
}

export class MultiHeadAttention {
  constructor(tensors, name, heads) {
    this.heads = heads;
    this.query = new Linear(tensors, `${name}.W_q`);
    this.key = new Linear(tensors, `${name}.W_k`);
    this.value = new Linear(tensors, `${name}.W_v`);
    this.output = new Linear(tensors, `${name}.W_o`);
  }

  /** Adds the keys and values of one more token. */
  extend(cache, x) {
    cache.keys.push(this.key.of(x));
    cache.values.push(this.value.of(x));
  }

  /**
   * What the token x takes from all in the cache, and what was on the way: the query and the
   * averages, of all heads side by side, the scores and the weights of each head. Looks for which
   * `isCut(head, s)` are taken away, the others of their row share its weight (chapter 12); a head
   * with no look left takes nothing.
   */
  look(x, { keys, values }, isCut) {
    const query = this.query.of(x);
    const width = query.length / this.heads;
    const taken = new Float32Array(query.length);
    const [scores, weights] = [[], []];
    for (let head = 0; head < this.heads; head++) {
      const start = head * width;
      const scored = (key) => dot(query, key, start, width) / Math.sqrt(width);
      scores.push(Float32Array.from(keys, scored));
      const shares = sharesOf(scores[head], isCut && ((s) => isCut(head, s)));
      shares.forEach((share, s) => {
        for (let i = start; i < start + width; i++) taken[i] += share * values[s][i];
      });
      weights.push(shares);
    }
    return { out: this.output.of(taken), query, scores, weights, taken };
  }
}

function sharesOf(scores, isCut) {
  const left = isCut ? scores.map((score, s) => (isCut(s) ? -Infinity : score)) : scores;
  return left.every((score) => score === -Infinity) ? left.map(() => 0) : softmax(left);
}
