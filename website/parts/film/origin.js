// Where a number of the film comes from: its row, its column, the largest terms, the sum.
//
// An address is { of, part, layer, head, query, key, cell, id }, with what its kind needs:
//   of                              part                               and
//   id                                                                 query
//   embedding, position, input      source, target                     query, cell
//   normed, out, sum                encoder, self, cross, encoder-feed, decoder-feed
//                                                                      layer, query, cell
//   query                           encoder, self, cross               layer, head, query, cell
//   key, value                      encoder, self, cross               layer, head, key, cell
//   product                         encoder, self, cross               layer, head, query, key, cell
//   score                           encoder, self, cross               layer, head, query, key
//   share                           the same; without head: the mean of the layer's heads
//   taken                           encoder, self, cross               layer, head, query, cell
//   hidden                          encoder-feed, decoder-feed         layer, query, cell
//   memory, last                                                       query, cell
//   logit, power, probability, before                                  query, id
//   loss                                                               before, if before training
// `query` is the row that asks: in the decoder, the round. All count from 0; `cell` counts within a
// row, of a head's 16 numbers within these.
//
// An origin is { label, row, column, joins, terms, rest, bias, sum, value, text }: row and column are
// { label, numbers } or null, `joins` the sign between them; terms, the largest first, are { label, a, b, value }, where value is
// a × b (or, with b null, a, or e^a for a softmax); rest is { count, sum } of the other terms; sum is
// that of all terms and the bias; value is what comes of it; text is the equation.

import { shown } from "../elements.js";
import { sum } from "../numbers.js";
import { LayerNorm } from "../translator/parts.js";
import told from "../translator/words.js";
import { large, ORDINALS } from "./scene.js";
import { untrained } from "./untrained.js";

const MOST = 3; // terms
const IN_ENCODER = ["encoder", "encoder-feed", "source"];
const SUBLAYERS = {
  ...{ encoder: "self-attention", self: "masked attention", cross: "cross-attention" },
  ...{ "encoder-feed": "feed-forward network", "decoder-feed": "feed-forward network" },
};
const NAMES = {
  ...{ encoder: "encoder", self: "decoder", cross: "cross-attention" },
  ...{ "encoder-feed": "encoder", "decoder-feed": "decoder" },
};

const quoted = (word) => `“${word}”`;
/** To two digits behind the point: more where these would be nothing, none of a large number. */
function figure(value) {
  if (value >= 1000) return large(value);
  return shown(value, value === 0 || Math.abs(value) >= 0.095 ? 2 : 4);
}
const factor = (value) => (value < 0 ? `(${figure(value)})` : figure(value));

/** What the address names of the trace: its parts of the model, its rows, and words for both. */
class Place {
  constructor(trace, address) {
    Object.assign(this, { part: "", ...address, trace });
    this.reads = IN_ENCODER.includes(this.part);
    const { model } = trace;
    const layer = (this.reads ? model.encoder : model.decoder)[this.layer];
    if (layer) {
      const { attention, back, across } = layer;
      this.attention = { encoder: attention, self: back, cross: across }[this.part];
      const norm = { cross: 1, "encoder-feed": 1, "decoder-feed": 2 }[this.part] ?? 0;
      this.norm = layer.norms[norm];
      this.feedForward = layer.feedForward;
    }
  }

  /** The layer's part, as the trace has it. */
  get record() {
    const { part, trace, layer, query } = this;
    const kind = part.endsWith("-feed") ? "feedForward" : part;
    if (!this.reads) return trace.rounds[query].layers[layer][kind];
    return trace.encoder[layer][part === "encoder" ? "attention" : kind];
  }

  row(name) {
    return this.reads ? this.record[name][this.query] : this.record[name];
  }

  headAt(head) {
    const found = this.record.heads[head];
    if (!this.reads) return found;
    const at = (name) => found[name][this.query];
    const rows = { query: at("queries"), scores: at("scores"), weights: at("weights") };
    return { ...rows, taken: at("taken"), keys: found.keys, values: found.values };
  }

  /** The row that a key and a value are made from. */
  get offered() {
    const { part, trace, layer, key } = this;
    if (part === "cross") return trace.memory[key];
    if (part === "self") return trace.rounds[key].layers[layer].self.normed;
    return trace.encoder[layer].attention.normed[key];
  }

  get asks() {
    const { trace, query } = this;
    return quoted(this.reads ? trace.source.words[query] : trace.rounds[query].input.word);
  }

  asked(key = this.key) {
    const { part, trace } = this;
    return quoted(part === "self" ? trace.rounds[key].input.word : trace.source.words[key]);
  }

  get where() {
    const head = this.head === undefined ? "" : `, ${ORDINALS[this.head]} head`;
    return `${NAMES[this.part]}, ${ORDINALS[this.layer]} layer${head}`;
  }

  get numbered() {
    return `number ${this.cell + 1}`;
  }
}

/** A row times a column, both lists of numbers. */
const products = (row, column, label = (i) => `number ${i + 1}`) =>
  Array.from(row, (a, i) => ({ label: label(i), a, b: column[i], value: a * column[i] }));
const summands = (...pairs) => pairs.map(([label, a]) => ({ label, a, b: null, value: a }));

/** Number i of what a linear map makes of a row. */
function linear(row, map, i, label, columnLabel = "weights") {
  const column = map.weight.subarray(i * map.columns, (i + 1) * map.columns);
  return {
    row: { label, numbers: row },
    column: { label: columnLabel, numbers: column },
    terms: products(row, column),
    bias: map.bias?.[i],
  };
}

/** Score i of those that are in the softmax. */
function softmaxed(scores, labels, i, label) {
  const terms = scores.map((a, k) => ({ label: labels[k], a, b: null, value: Math.exp(a) }));
  const exponential = (a) => `e^${figure(a)}`;
  return {
    ...{ row: { label, numbers: scores }, column: null, terms, exponential },
    after: (total) => Math.exp(scores[i]) / total,
    wrap: (equation, total) =>
      `${exponential(scores[i])} ÷ (${equation}) ≈ ${figure(Math.exp(scores[i]))} ÷ ${figure(total)}`,
  };
}

function normalised(row, norm, i, label) {
  const { mean, spread } = LayerNorm.measure(row);
  const a = (row[i] - mean) / spread;
  return {
    row: {
      label: `${label} less its mean, ÷ its spread`,
      numbers: row.map((each) => (each - mean) / spread),
    },
    column: { label: "weights", numbers: norm.weight },
    terms: [{ label: "how far from the mean", a, b: norm.weight[i], value: a * norm.weight[i] }],
    bias: norm.bias[i],
    wrap: (equation) => {
      const far = `(${figure(row[i])} − ${factor(mean)}, the mean) ÷ ${figure(spread)}, the spread`;
      return `${far} ≈ ${figure(a)}; ${equation}`;
    },
  };
}

function shareOf(p) {
  const label = `how much ${p.asks} looks at ${p.asked()} (${p.where}`;
  if (p.head === undefined) {
    const heads = Array.from(p.record.heads, (_, head) => p.headAt(head).weights[p.key]);
    const named = heads.map((share, head) => [`${ORDINALS[head]} head`, share]);
    return {
      label: `${label}, mean of ${heads.length} heads)`,
      row: { label: "the heads’ shares", numbers: heads },
      terms: summands(...named),
      ...divided(heads.length, String(heads.length)),
    };
  }
  const { scores, weights } = p.headAt(p.head);
  const seen = [...scores.keys()].filter((s) => weights[s] > 0); // the others are cut
  const at = seen.indexOf(p.key);
  const full = `${label})`;
  if (at < 0) return { label: full, terms: [], text: "this look is taken away: 0" };
  const [numbers, labels] = [seen.map((s) => scores[s]), seen.map((s) => p.asked(s))];
  return { label: full, ...softmaxed(numbers, labels, at, `scores of ${p.asks}`) };
}

const divided = (by, written) => ({
  after: (total) => total / by,
  wrap: (equation, total) => `${equation} ≈ ${figure(total)}; ÷ ${written}`,
});

function asking(p, map, row, whose) {
  const at = p.head * (map.rows / p.trace.model.config.n_heads) + p.cell;
  return {
    label: `the ${p.of} of ${whose}, ${p.numbered} (${p.where})`,
    ...linear(row, map, at, `the row of ${whose} after its norm`),
  };
}

/** What was put side by side, the averages of all heads. */
function attended(p) {
  const heads = Array.from(p.record.heads, (_, head) => [...p.headAt(head).taken]);
  return Float32Array.from(heads.flat());
}

const KINDS = {
  id({ trace: { source }, query }) {
    const word = quoted(source.words[query]);
    const terms = summands(["place", source.ids[query]]);
    return { label: `the number of ${word}`, terms, text: "its place in the list, counted from 0" };
  },
  embedding(p) {
    const { model, source, rounds } = p.trace;
    const { data, shape } = p.reads ? model.sourceTable : model.targetTable;
    const id = p.reads ? source.ids[p.query] : rounds[p.query].input.id;
    const row = data.subarray(id * shape[1], (id + 1) * shape[1]);
    const root = Math.sqrt(shape[1]);
    return {
      label: `the embedding of ${p.asks}, ${p.numbered}`,
      row: { label: `row ${id} of the table`, numbers: row },
      terms: [{ label: `√${shape[1]}`, a: row[p.cell], b: root, value: row[p.cell] * root }],
      wrap: () => `the table’s number × √${shape[1]}: ${shown(row[p.cell], 4)} × ${root}`,
    };
  },
  position(p) {
    const width = p.trace.model.config.d_model;
    const wave = p.cell % 2 ? "cos" : "sin";
    const angle = p.query / 10000 ** ((p.cell - (p.cell % 2)) / width);
    return {
      label: `place ${p.query}, counted from 0, ${p.numbered}`,
      terms: summands([wave, Math[wave](angle)]),
      wrap: () => `${wave}(${p.query} ÷ 10000^(${p.cell - (p.cell % 2)}/${width}))`,
    };
  },
  input(p) {
    const from = p.reads ? p.trace : p.trace.rounds[p.query];
    const [embedded, position] = p.reads
      ? [from.embedded[p.query], from.positions[p.query]]
      : [from.embedded, from.position];
    return {
      label: `what goes in for ${p.asks}, ${p.numbered}`,
      row: { label: `the embedding of ${p.asks}`, numbers: embedded },
      column: { label: `place ${p.query}`, numbers: position },
      joins: "+",
      terms: summands(["word", embedded[p.cell]], ["place", position[p.cell]]),
    };
  },
  normed: (p) => ({
    label: `the row of ${p.asks} after its norm, ${p.numbered} (${p.where})`,
    ...normalised(p.row("x"), p.norm, p.cell, `the row of ${p.asks}`),
  }),
  query: (p) => asking(p, p.attention.query, p.row("normed"), p.asks),
  key: (p) => asking(p, p.attention.key, p.offered, p.asked()),
  value: (p) => asking(p, p.attention.value, p.offered, p.asked()),
  product(p) {
    const { query, keys } = p.headAt(p.head);
    const [a, b] = [query[p.cell], keys[p.key][p.cell]];
    return {
      label: `${p.numbered} of the query times ${p.numbered} of the key (${p.where})`,
      row: { label: `the query of ${p.asks}`, numbers: query },
      column: { label: `the key of ${p.asked()}`, numbers: keys[p.key] },
      terms: [{ label: p.numbered, a, b, value: a * b }],
    };
  },
  score(p) {
    const { query, keys } = p.headAt(p.head);
    const row = { label: `the query of ${p.asks}`, numbers: query };
    const column = { label: `the key of ${p.asked()}`, numbers: keys[p.key] };
    return {
      label: `the score of ${p.asks} for ${p.asked()} (${p.where})`,
      ...{ row, column, terms: products(query, keys[p.key]) },
      ...divided(Math.sqrt(query.length), `√${query.length}`),
    };
  },
  share: shareOf,
  taken(p) {
    const { weights, values } = p.headAt(p.head);
    const column = values.map((row) => row[p.cell]);
    return {
      label: `what ${p.asks} takes home, ${p.numbered} (${p.where})`,
      row: { label: `shares of ${p.asks}`, numbers: weights },
      column: { label: `${p.numbered} of each value`, numbers: column },
      terms: products(weights, column, (s) => p.asked(s)),
    };
  },
  out(p) {
    const label = `what is added to the row of ${p.asks}, ${p.numbered} (${p.where})`;
    if (p.attention)
      return { label, ...linear(attended(p), p.attention.output, p.cell, "the heads’ averages") };
    return {
      label,
      ...linear(p.row("hidden"), p.feedForward.second, p.cell, "numbers in between"),
    };
  },
  sum: (p) => ({
    label: `the row of ${p.asks} after the ${SUBLAYERS[p.part]}, ${p.numbered} (${p.where})`,
    row: { label: "what went in", numbers: p.row("x") },
    column: { label: "what is added", numbers: p.row("out") },
    joins: "+",
    terms: summands(["went in", p.row("x")[p.cell]], ["added", p.row("out")[p.cell]]),
  }),
  hidden: (p) => ({
    label: `${p.numbered} in between, for ${p.asks} (${p.where})`,
    ...linear(p.row("normed"), p.feedForward.first, p.cell, `the row of ${p.asks} after its norm`),
    after: (total) => Math.max(0, total),
    wrap: (equation, total) =>
      total < 0 ? `${equation} ≈ ${figure(total)}; max(0, ${figure(total)})` : equation,
  }),
  memory(p) {
    const { model, encoder, source } = p.trace;
    const row = encoder.at(-1).feedForward.sum[p.query];
    const word = quoted(source.words[p.query]);
    return {
      label: `the memory’s row of ${word}, ${p.numbered}`,
      ...normalised(row, model.encoderNorm, p.cell, `the row of ${word}`),
    };
  },
  last: (p) => ({
    label: `the last row of ${p.asks}, ${p.numbered}`,
    ...normalised(
      p.trace.rounds[p.query].layers.at(-1).feedForward.sum,
      p.trace.model.decoderNorm,
      p.cell,
      `the row of ${p.asks}`,
    ),
  }),
  logit: (p) => ({
    label: `the score of ${quoted(told.french[p.id])} after ${p.asks}`,
    ...linear(
      p.trace.rounds[p.query].last,
      p.trace.model.output,
      p.id,
      `the last row of ${p.asks}`,
      `the column of ${quoted(told.french[p.id])}`,
    ),
  }),
  power(p) {
    const logit = p.trace.rounds[p.query].logits[p.id];
    const power = `e^${figure(logit)}`;
    return {
      label: `e to the score of ${quoted(told.french[p.id])} after ${p.asks}`,
      terms: [{ label: power, a: logit, b: null, value: Math.exp(logit) }],
      wrap: () => power,
    };
  },
  before(p) {
    const probability = untrained(p.trace)[p.query];
    const label = `the probability of ${quoted(told.french[p.id])} after ${p.asks}, before training`;
    const terms = summands(["calculated like the other", probability]);
    return { label, terms, wrap: () => "calculated in the same way, with random weights:" };
  },
  probability(p) {
    const { logits } = p.trace.rounds[p.query];
    const labels = told.french.map(quoted);
    return {
      label: `the probability of ${labels[p.id]} after ${p.asks}`,
      ...softmaxed([...logits], labels, p.id, "the scores of all words"),
    };
  },
  loss({ trace, before }) {
    const { rounds } = trace;
    const after = () => rounds.map(({ probabilities, written: { id } }) => probabilities[id]);
    const surprise = (before ? untrained(trace) : after()).map((p, t) => ({
      label: quoted(rounds[t].written.word),
      a: p,
      b: null,
      value: -Math.log(p),
    }));
    return {
      label: `the loss of this sentence${before ? ", before training" : ""}`,
      row: { label: "probabilities", numbers: surprise.map(({ a }) => a) },
      ...{ terms: surprise, exponential: (p) => `(−log ${shown(p, 4)})` },
      ...divided(rounds.length, String(rounds.length)),
    };
  },
};

export function origin(trace, address) {
  const kind = KINDS[address.of];
  if (!kind)
    throw new Error(`an address is of ${Object.keys(KINDS).join(", ")}; got ${address.of}`);
  const made = kind(new Place(trace, address));
  const { label, row = null, column = null, joins = "×" } = made;
  const { bias = 0, after = (total) => total } = made;
  const all = made.terms.toSorted((x, y) => Math.abs(y.value) - Math.abs(x.value));
  const most = all.length === MOST + 1 ? all.length : MOST; // one alone is no rest
  const terms = all.slice(0, most);
  const others = all.slice(most).map((term) => term.value);
  const rest = { count: others.length, sum: sum(others) };
  const total = sum(terms.map((term) => term.value)) + rest.sum + bias;
  const value = after(total);
  const origin = { label, row, column, joins, terms, rest, bias, sum: total, value };
  return { ...origin, text: made.text ?? written(origin, made) };
}

function written(
  { terms, rest, bias, sum, value },
  { exponential, wrap = (equation) => equation },
) {
  const term = ({ a, b }) => {
    if (exponential) return exponential(a);
    return b === null ? factor(a) : `${factor(a)} × ${factor(b)}`;
  };
  const parts = terms.map(term);
  if (rest.count) parts.push(`${factor(rest.sum)} (${rest.count} others)`);
  if (bias) parts.push(`${factor(bias)} (bias)`);
  return `${wrap(parts.join(" + "), sum)} ≈ ${figure(value)}`;
}
