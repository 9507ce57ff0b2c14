// What a model of the same build does before training, with the random numbers that it starts with.

import { generator, softmax } from "../numbers.js";
import { trace } from "../translator/decode.js";
import { Transformer } from "../translator/model.js";

/** How probable it finds each word that was written, a number for each round of a watched sentence. */
export function untrained({ model, source, rounds }, seed = 0) {
  const tokens = rounds.map(({ written }) => written.id);
  const { steps } = trace(atFirst(model, seed), source.ids, { bos: rounds[0].input.id }, tokens);
  return steps.map(({ logits }, t) => softmax(logits)[tokens[t]]);
}

/** A model of the same build with new numbers, as the package's models begin (chapter 8). */
export function atFirst({ stored: { metadata, tensors } }, seed) {
  const random = generator(seed);
  const filled = ([name, { shape, data }]) => [name, { shape, data: data.map(start(name, shape)) }];
  const start = (name, [rows, columns]) => {
    if (columns === undefined) return () => (name.endsWith("norm.weight") ? 1 : 0);
    if (name.includes("embedding")) return () => normal(random) / Math.sqrt(columns);
    const most = Math.sqrt(6 / (rows + columns));
    return () => most * (2 * random() - 1);
  };
  return new Transformer({
    metadata,
    tensors: Object.fromEntries(Object.entries(tensors).map(filled)),
  });
}

/** Box and Muller (1958). */
function normal(random) {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}
