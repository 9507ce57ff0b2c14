// Where a number of the film comes from: what is multiplied or added, the largest terms, the sum.
//
// An address is { of, part, layer, head, query, key, cell, id }, with what its kind needs:
//   of                                part                    and
//   embedding, position               source                  query, cell
//   input                             source, target          query, cell
//   query, taken                      encoder                 layer, head, query, cell
//   key, value                        encoder                 layer, head, key, cell
//   product                           encoder                 layer, head, query, key, cell
//   score, share                      encoder                 layer, head, query, key
//   share, the mean of all heads      encoder, self, cross    layer, query, key
//   sum                               encoder, encoder-feed   layer, query, cell
//   hidden, out                       encoder-feed            layer, query, cell
//   memory, last                                              query, cell
//   logit, power, probability, before                         query, id
// `query` is the row that asks: in the decoder, the round. All count from 0; `cell` counts within a
// row, of a head's 16 numbers within these.
//
// An origin is { label, of, terms, rest, bias, sum, value, text }: `of` says what is multiplied or
// added; terms are { a, b, value }, where value is a × b (or, with b null, a, or e^a for a softmax); of
// many, they are the largest, and rest is { count, sum } of the others; sum is that of all terms and
// the bias; value is what comes of it; text is the equation.

import { shown } from "../elements.js";
import { sum } from "../numbers.js";
import { LayerNorm } from "../translator/parts.js";
import told from "../translator/words.js";
import { large, ORDINALS } from "./scene.js";
import { untrained } from "./untrained.js";

const MOST = 3; // terms
const IN_ENCODER = ["encoder", "encoder-feed", "source"];
const NAMES = { encoder: "encoder", "encoder-feed": "encoder", self: "decoder" };

const quoted = (word) => `“${word}”`;
/** To two digits behind the point; below a tenth, to two that count; none of a large number. */
function figure(value) {
  const size = Math.abs(value);
  if (value >= 1000) return large(value);
  if (size >= 0.095 || size < 0.00005) return shown(value, 2);
  return shown(value, Math.min(4, 1 - Math.floor(Math.log10(size))));
}
const factor = (value) => (value < 0 ? `(${figure(value)})` : figure(value));

/** What the address names of the trace: its parts of the model, its rows, and words for both. */
class Place {
  constructor(trace, address) {
    Object.assign(this, { ...address, trace });
    this.reads = IN_ENCODER.includes(this.part);
    this.tables = trace.model.encoder[this.layer];
  }

  /** The layer's part, as the trace has it. */
  get record() {
    const { part, trace, layer, query } = this;
    if (!this.reads) return trace.rounds[query].layers[layer][part];
    return trace.encoder[layer][part === "encoder" ? "attention" : "feedForward"];
  }

  row(name) {
    return this.record[name][this.query];
  }

  /** What a head has of the row that asks. */
  asking(name, head = this.head) {
    const found = this.record.heads[head][name];
    return this.reads ? found[this.query] : found;
  }

  /** What a head has of all that are asked. */
  offered(name) {
    return this.record.heads[this.head][name];
  }

  get asks() {
    const { trace, query } = this;
    return quoted(this.reads ? trace.source.words[query] : trace.rounds[query].input.word);
  }

  get asked() {
    const { part, trace, key } = this;
    return quoted(part === "self" ? trace.rounds[key].input.word : trace.source.words[key]);
  }

  get where() {
    const head = this.head === undefined ? "" : `, ${ORDINALS[this.head]} head`;
    return `${NAMES[this.part] ?? "cross-attention"}, ${ORDINALS[this.layer]} layer${head}`;
  }

  get numbered() {
    return `number ${this.cell + 1}`;
  }
}

/** A row times a column, both lists of numbers. */
const products = (row, column) =>
  Array.from(row, (a, i) => ({ a, b: column[i], value: a * column[i] }));
const summands = (...numbers) => numbers.map((a) => ({ a, b: null, value: a }));

/** Number i of what a linear map makes of a row. */
const linear = (row, map, i) => ({
  terms: products(row, map.weight.subarray(i * map.columns, (i + 1) * map.columns)),
  bias: map.bias?.[i],
});

/** Score i of those that are in the softmax. */
function softmaxed(scores, i) {
  const [own] = exponentials([scores[i]]).terms;
  return {
    ...exponentials(scores),
    after: (total) => own.value / total,
    wrap: (equation, total) =>
      `exp(${figure(own.a)}) ÷ (${equation}) ≈ ${figure(own.value)} ÷ ${figure(total)}`,
  };
}

const exponentials = (scores) => ({
  terms: Array.from(scores, (a) => ({ a, b: null, value: Math.exp(a) })),
  exponential: true,
});

function normalised(row, norm, i, whose) {
  const { mean, spread } = LayerNorm.measure(row);
  const a = (row[i] - mean) / spread;
  return {
    of: `(the row of ${whose} − its mean) ÷ its spread × weights`,
    terms: [{ a, b: norm.weight[i], value: a * norm.weight[i] }],
    bias: norm.bias[i],
    wrap(equation) {
      const far = `(${figure(row[i])} − ${factor(mean)}, the mean) ÷ ${figure(spread)}, the spread`;
      return `${far} ≈ ${figure(a)}; ${equation}`;
    },
  };
}

const divided = (by, written) => ({
  after: (total) => total / by,
  wrap: (equation, total) => `${equation} ≈ ${figure(total)}; ÷ ${written}`,
});

function share(p) {
  const label = `how much ${p.asks} looks at ${p.asked} (${p.where}`;
  if (p.head !== undefined) {
    const scores = p.asking("scores");
    return { label: `${label})`, of: `scores of ${p.asks}`, ...softmaxed(scores, p.key) };
  }
  const shares = p.record.heads.map((_, head) => p.asking("weights", head)[p.key]);
  return {
    label: `${label}, mean of ${shares.length} heads)`,
    of: "the heads’ shares",
    terms: summands(...shares),
    ...divided(shares.length, String(shares.length)),
  };
}

/** A number of a query, a key or a value, which `map` makes of row t. */
function made(p, map, t, whose) {
  const at = p.head * (map.rows / p.trace.model.config.n_heads) + p.cell;
  return {
    label: `the ${p.of} of ${whose}, ${p.numbered} (${p.where})`,
    of: `the row of ${whose} after its norm × weights`,
    ...linear(p.record.normed[t], map, at),
  };
}

const KINDS = {
  embedding(p) {
    const { data, shape } = p.trace.model.sourceTable;
    const [id, width] = [p.trace.source.ids[p.query], shape[1]];
    const [a, b] = [data[id * width + p.cell], Math.sqrt(width)];
    return {
      label: `the embedding of ${p.asks}, ${p.numbered}`,
      of: `row ${id} of the table`,
      terms: [{ a, b, value: a * b }],
      wrap: () => `the table’s number × √${width}: ${shown(a, 4)} × ${b}`,
    };
  },
  position(p) {
    const wave = p.cell % 2 ? "cos" : "sin";
    const slow = 10000 ** ((p.cell - (p.cell % 2)) / p.trace.model.config.d_model);
    return {
      label: `place ${p.query}, counted from 0, ${p.numbered}`,
      of: "the place ÷ how slow this wave is, from 1 to nearly 10,000",
      terms: summands(Math[wave](p.query / slow)),
      wrap: () => `${wave}(${p.query} ÷ ${figure(slow)})`,
    };
  },
  input(p) {
    const { trace, query, cell } = p;
    const round = trace.rounds[query];
    const [embedded, position] = p.reads
      ? [trace.embedded[query], trace.positions[query]]
      : [round.embedded, round.position];
    return {
      label: `what goes in for ${p.asks}, ${p.numbered}`,
      of: `the embedding of ${p.asks} + place ${query}`,
      terms: summands(embedded[cell], position[cell]),
    };
  },
  query: (p) => made(p, p.tables.attention.query, p.query, p.asks),
  key: (p) => made(p, p.tables.attention.key, p.key, p.asked),
  value: (p) => made(p, p.tables.attention.value, p.key, p.asked),
  product(p) {
    const [a, b] = [p.asking("queries")[p.cell], p.offered("keys")[p.key][p.cell]];
    return {
      label: `${p.numbered} of the query times ${p.numbered} of the key (${p.where})`,
      of: `the query of ${p.asks} × the key of ${p.asked}`,
      terms: [{ a, b, value: a * b }],
    };
  },
  score(p) {
    const query = p.asking("queries");
    return {
      label: `the score of ${p.asks} for ${p.asked} (${p.where})`,
      of: `the query of ${p.asks} × the key of ${p.asked}`,
      terms: products(query, p.offered("keys")[p.key]),
      ...divided(Math.sqrt(query.length), `√${query.length}`),
    };
  },
  share,
  taken(p) {
    const column = p.offered("values").map((row) => row[p.cell]);
    return {
      label: `what ${p.asks} takes home, ${p.numbered} (${p.where})`,
      of: `shares of ${p.asks} × ${p.numbered} of each value`,
      terms: products(p.asking("weights"), column),
    };
  },
  out(p) {
    const label = `what is added to the row of ${p.asks}, ${p.numbered} (${p.where})`;
    const { feedForward, attention } = p.tables;
    if (p.part === "encoder-feed") {
      const made = linear(p.row("hidden"), feedForward.second, p.cell);
      return { label, of: "numbers in between × weights", ...made };
    }
    const taken = p.record.heads.flatMap((head) => [...head.taken[p.query]]);
    const made = linear(taken, attention.output, p.cell);
    return { label, of: "what all heads take home × weights", ...made };
  },
  sum(p) {
    const part = p.part === "encoder" ? "self-attention" : "feed-forward network";
    return {
      label: `the row of ${p.asks} after the ${part}, ${p.numbered} (${p.where})`,
      of: "what went in + what is added",
      terms: summands(p.row("x")[p.cell], p.row("out")[p.cell]),
    };
  },
  hidden: (p) => ({
    label: `${p.numbered} in between, for ${p.asks} (${p.where})`,
    of: `the row of ${p.asks} after its norm × weights`,
    ...linear(p.row("normed"), p.tables.feedForward.first, p.cell),
    after: (total) => Math.max(0, total),
    wrap: (equation, total) =>
      total < 0 ? `${equation} ≈ ${figure(total)}; max(0, ${figure(total)})` : equation,
  }),
  memory({ trace: { model, encoder, source }, query, cell, numbered }) {
    const word = quoted(source.words[query]);
    return {
      label: `the memory’s row of ${word}, ${numbered}`,
      ...normalised(encoder.at(-1).feedForward.sum[query], model.encoderNorm, cell, word),
    };
  },
  last(p) {
    const row = p.trace.rounds[p.query].layers.at(-1).feedForward.sum;
    return {
      label: `the last row of ${p.asks}, ${p.numbered}`,
      ...normalised(row, p.trace.model.decoderNorm, p.cell, p.asks),
    };
  },
  logit(p) {
    const word = quoted(told.french[p.id]);
    return {
      label: `the score of ${word} after ${p.asks}`,
      of: `the last row of ${p.asks} × the column of ${word}`,
      ...linear(p.trace.rounds[p.query].last, p.trace.model.output, p.id),
    };
  },
  power: (p) => ({
    label: `e to the score of ${quoted(told.french[p.id])} after ${p.asks}`,
    ...exponentials([p.trace.rounds[p.query].logits[p.id]]),
  }),
  before: (p) => ({
    label: `the probability of ${quoted(told.french[p.id])} after ${p.asks}, before training`,
    terms: summands(untrained(p.trace)[p.query]),
    wrap: () => "calculated in the same way, with random weights:",
  }),
  probability: (p) => ({
    label: `the probability of ${quoted(told.french[p.id])} after ${p.asks}`,
    of: "the scores of all words",
    ...softmaxed(p.trace.rounds[p.query].logits, p.id),
  }),
};

export function origin(trace, address) {
  const kind = KINDS[address.of](new Place(trace, address));
  const { label, of = "", bias = 0, after = (total) => total } = kind;
  const few = kind.terms.length <= MOST + 1; // one alone is no rest
  const bySize = kind.terms.toSorted((x, y) => Math.abs(y.value) - Math.abs(x.value));
  const [terms, others] = few ? [kind.terms, []] : [bySize.slice(0, MOST), bySize.slice(MOST)];
  const total = (some) => sum(some.map(({ value }) => value));
  const rest = { count: others.length, sum: total(others) };
  const inAll = total(terms) + rest.sum + bias;
  const found = { label, of, terms, rest, bias, sum: inAll, value: after(inAll) };
  return { ...found, text: written(found, kind) };
}

function written(
  { terms, rest, bias, sum, value },
  { exponential, wrap = (equation) => equation },
) {
  const added = (each, more = "") => [each < 0 ? "−" : "+", `${figure(Math.abs(each))}${more}`];
  const parts = terms.map(({ a, b }) => {
    if (exponential) return ["+", `exp(${figure(a)})`];
    return b === null ? added(a) : ["+", `${factor(a)} × ${factor(b)}`];
  });
  if (rest.count) parts.push(added(rest.sum, ` from ${rest.count} others`));
  if (bias) parts.push(added(bias, " bias"));
  const [[sign, first], ...more] = parts;
  const equation = [sign === "−" ? `−${first}` : first, ...more.flat()].join(" ");
  return `${wrap(equation, sum)} ≈ ${figure(value)}`;
}
