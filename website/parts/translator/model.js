// The model of chapter 9 in plain loops, with the weights that the package has stored. It writes one
// token at a time, with a cache (chapter 10).

import { Cache, FeedForward, LayerNorm, Linear, MultiHeadAttention } from "./parts.js";
import { readSafetensors } from "./safetensors.js";

/** Pre-LN: x + f(LayerNorm(x)). `sum` is that; the rest is what was on the way. */
function residual(x, norm, sublayer) {
  const normed = norm.of(x);
  const found = sublayer(normed);
  return { x, normed, ...found, sum: x.map((value, i) => value + found.out[i]) };
}

function norms(tensors, name, count) {
  return Array.from({ length: count }, (_, i) => {
    return new LayerNorm(tensors, `${name}.residual_${i + 1}.norm`);
  });
}

class EncoderLayer {
  constructor(tensors, name, heads) {
    this.attention = new MultiHeadAttention(tensors, `${name}.self_attention`, heads);
    this.feedForward = new FeedForward(tensors, `${name}.feed_forward`);
    this.norms = norms(tensors, name, 2);
  }

  /** All rows at once, for every token sees every other. */
  of(rows, isCut) {
    const cache = new Cache();
    for (const x of rows) this.attention.extend(cache, this.norms[0].of(x));
    const attention = rows.map((row, t) => {
      const cut = isCut && ((head, s) => isCut(head, t, s));
      return residual(row, this.norms[0], (h) => this.attention.look(h, cache, cut));
    });
    const feedForward = attention.map(({ sum }) => {
      return residual(sum, this.norms[1], (h) => this.feedForward.of(h));
    });
    return { cache, attention, feedForward };
  }
}

class DecoderLayer {
  constructor(tensors, name, heads) {
    this.back = new MultiHeadAttention(tensors, `${name}.self_attention`, heads);
    this.across = new MultiHeadAttention(tensors, `${name}.cross_attention`, heads);
    this.feedForward = new FeedForward(tensors, `${name}.feed_forward`);
    this.norms = norms(tensors, name, 3);
  }

  /** One new token. It sees those before it, for no others are in the cache: no mask is needed. */
  of(token, { own, memory }, isCut) {
    const cut = (part) => isCut && ((head, s) => isCut(part, head, s));
    const self = residual(token, this.norms[0], (h) => {
      this.back.extend(own, h);
      return this.back.look(h, own, cut("self"));
    });
    const cross = residual(self.sum, this.norms[1], (h) => {
      return this.across.look(h, memory, cut("cross"));
    });
    const feedForward = residual(cross.sum, this.norms[2], (h) => this.feedForward.of(h));
    return { self, cross, feedForward };
  }
}

/** Where decoding stands: for each layer, the keys and values of both attentions. */
class State {
  constructor(layers, read, length = 0) {
    this.layers = layers; // [{ own, memory }]
    this.read = read; // what the encoder did: its layers, and the memory
    this.length = length;
  }

  copy() {
    const layers = this.layers.map(({ own, memory }) => ({ own: own.copy(), memory }));
    return new State(layers, this.read, this.length);
  }
}

export class Transformer {
  /** From the bytes of a safetensors file, as `store_trained` of the package writes it. */
  constructor(buffer) {
    const { metadata, tensors } = readSafetensors(buffer);
    this.config = JSON.parse(metadata.config);
    const { n_heads: heads, norm, position } = this.config;
    if (norm !== "pre") throw new Error(`norm must be "pre", got ${norm}`);
    if (position !== "sinusoidal")
      throw new Error(`position must be "sinusoidal", got ${position}`);
    const stack = (Layer, side, count) =>
      Array.from({ length: count }, (_, i) => new Layer(tensors, `${side}.layers.${i}`, heads));
    this.encoder = stack(EncoderLayer, "encoder", this.config.n_encoder_layers);
    this.decoder = stack(DecoderLayer, "decoder", this.config.n_decoder_layers);
    this.encoderNorm = new LayerNorm(tensors, "encoder.norm");
    this.decoderNorm = new LayerNorm(tensors, "decoder.norm");
    this.output = new Linear(tensors, "output");
    this.sourceTable = tensors["src_embedding.tokens.weight"];
    this.targetTable = tensors["tgt_embedding.tokens.weight"];
  }

  /**
   * Reads the source, ids with <eos>, and gets ready to write. Looks for which
   * `isCut(part, layer, head, t, s)` are taken away; the part is "encoder", "self" or "cross".
   */
  start(source, isCut) {
    let rows = source.map((token, t) => this.#embed(this.sourceTable, token, t));
    const read = { layers: [], isCut };
    this.encoder.forEach((layer, i) => {
      read.layers.push(layer.of(rows, isCut && ((...look) => isCut("encoder", i, ...look))));
      rows = read.layers[i].feedForward.map(({ sum }) => sum);
    });
    read.memory = rows.map((x) => this.encoderNorm.of(x));
    const layers = this.decoder.map((layer) => {
      const memory = new Cache();
      for (const x of read.memory) layer.across.extend(memory, x);
      return { own: new Cache(), memory };
    });
    return new State(layers, read);
  }

  /** One more token: the logits of the next, and what was on the way: the layers and the last row. */
  next(token, state) {
    const { isCut } = state.read;
    let x = this.#embed(this.targetTable, token, state.length);
    const layers = this.decoder.map((layer, i) => {
      const cut = (part, head, s) => isCut(part, i, head, state.length, s);
      const step = layer.of(x, state.layers[i], isCut && cut);
      x = step.feedForward.sum;
      return step;
    });
    state.length += 1;
    const last = this.decoderNorm.of(x);
    return { logits: this.output.of(last), layers, last };
  }

  #embed(table, token, position) {
    const [size, width] = table.shape;
    if (!(token >= 0 && token < size))
      throw new Error(`token must be 0 to ${size - 1}, got ${token}`);
    const { max_len: longest } = this.config;
    if (position >= longest) throw new Error(`a sentence must have at most ${longest} tokens`);
    const embedding = embeddingOf(table, token);
    return placeOf(position, width).map((value, i) => embedding[i] + value);
  }
}

/** A row of the table, times the root of its width, as the model takes it. */
export function embeddingOf({ shape: [, width], data }, token) {
  return data.slice(token * width, (token + 1) * width).map((value) => value * Math.sqrt(width));
}

/** The sines and cosines of a place. */
export function placeOf(position, width) {
  return Float32Array.from({ length: width }, (_, i) => {
    const angle = position / 10000 ** ((i - (i % 2)) / width);
    return i % 2 ? Math.cos(angle) : Math.sin(angle);
  });
}
