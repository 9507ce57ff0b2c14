// The model of chapter 9 in plain loops, with the weights that the package has stored. It writes one
// token at a time, with a cache (chapter 10).

import { Cache, FeedForward, LayerNorm, Linear, MultiHeadAttention } from "./parts.js";
import { readSafetensors } from "./safetensors.js";

/** Pre-LN: x + f(LayerNorm(x)). */
function residual(x, norm, sublayer) {
  const change = sublayer(norm.of(x));
  return x.map((value, i) => value + change[i]);
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

  /** All rows at once, for every token sees every other; maps[head][t] are the weights of row t. */
  of(rows) {
    const cache = new Cache();
    for (const x of rows) this.attention.extend(cache, this.norms[0].of(x));
    const maps = Array.from({ length: this.attention.heads }, () => []);
    const out = rows.map((row) => {
      const x = residual(row, this.norms[0], (h) => {
        const { out, weights } = this.attention.look(h, cache);
        weights.forEach((shares, head) => maps[head].push(shares));
        return out;
      });
      return residual(x, this.norms[1], (h) => this.feedForward.of(h));
    });
    return { rows: out, maps };
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
  of(token, { own, memory }) {
    let decoder, cross;
    let x = residual(token, this.norms[0], (h) => {
      this.back.extend(own, h);
      const looked = this.back.look(h, own);
      decoder = looked.weights;
      return looked.out;
    });
    x = residual(x, this.norms[1], (h) => {
      const looked = this.across.look(h, memory);
      cross = looked.weights;
      return looked.out;
    });
    x = residual(x, this.norms[2], (h) => this.feedForward.of(h));
    return { x, decoder, cross };
  }
}

/** Where decoding stands: for each layer, the keys and values of both attentions. */
class State {
  constructor(layers, encoder, length = 0) {
    this.layers = layers; // [{ own, memory }]
    this.encoder = encoder; // the encoder's weights: [layer][head][t][s]
    this.length = length;
  }

  copy() {
    const layers = this.layers.map(({ own, memory }) => ({ own: own.copy(), memory }));
    return new State(layers, this.encoder, this.length);
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

  /** Reads the source, ids with <eos>, and gets ready to write. */
  start(source) {
    let rows = source.map((token, t) => this.#embed(this.sourceTable, token, t));
    const encoder = [];
    for (const layer of this.encoder) {
      const read = layer.of(rows);
      rows = read.rows;
      encoder.push(read.maps);
    }
    const memories = rows.map((x) => this.encoderNorm.of(x));
    const layers = this.decoder.map((layer) => {
      const memory = new Cache();
      for (const x of memories) layer.across.extend(memory, x);
      return { own: new Cache(), memory };
    });
    return new State(layers, encoder);
  }

  /** One more token: the logits of the next, and where all heads looked: [layer][head][s]. */
  next(token, state) {
    let x = this.#embed(this.targetTable, token, state.length);
    const looked = this.decoder.map((layer, i) => {
      const step = layer.of(x, state.layers[i]);
      x = step.x;
      return step;
    });
    state.length += 1;
    return {
      logits: this.output.of(this.decoderNorm.of(x)),
      decoder: looked.map((step) => step.decoder),
      cross: looked.map((step) => step.cross),
    };
  }

  #embed({ shape: [size, width], data }, token, position) {
    if (!(token >= 0 && token < size))
      throw new Error(`token must be 0 to ${size - 1}, got ${token}`);
    const { max_len: longest } = this.config;
    if (position >= longest) throw new Error(`a sentence must have at most ${longest} tokens`);
    return Float32Array.from({ length: width }, (_, i) => {
      const angle = position / 10000 ** ((i - (i % 2)) / width);
      return (
        data[token * width + i] * Math.sqrt(width) + (i % 2 ? Math.cos(angle) : Math.sin(angle))
      );
    });
  }
}
