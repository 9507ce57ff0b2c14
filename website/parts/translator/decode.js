// From logits to sentences, as transformer/decoding does it (chapter 10).

import { keepBeams, scoreOf } from "../beams_kept.js";
import { drawFrom, keepTopK, keepTopP, order, softmax } from "../numbers.js";

/**
 * The ids { pad, bos, eos } and the longest sentence, maxLen, are `limits`. Each search returns
 * the ids that it has written, with <eos> where it came to it.
 */
export function greedy(model, source, limits) {
  return write(model, source, limits, (logits) => order(logits)[0]);
}

/** A token drawn at each step; `random` returns numbers from 0 up to 1. */
export function sample(model, source, limits, { temperature = 1, topK, topP, random }) {
  const draw = (logits) => drawFrom(filtered(logits, { temperature, topK, topP }), random());
  return write(model, source, limits, draw);
}

function write(model, source, { pad, bos, eos, maxLen }, choose) {
  const state = model.start(source);
  const written = [];
  for (let token = bos; written.length < maxLen && token !== eos; written.push(token)) {
    const { logits } = model.next(token, state);
    logits[pad] = -Infinity; // padding is not a word
    token = choose(logits);
  }
  return written;
}

/** The probabilities that a sample is drawn from: temperature, then top-k, then top-p. */
export function filtered(logits, { temperature = 1, topK, topP } = {}) {
  const scaled = Float32Array.from(logits, (logit) => logit / temperature);
  return softmax(keepTopP(keepTopK(scaled, topK), topP));
}

/**
 * Beam search: at each step the `beamSize` best continuations stay; those that end are set aside,
 * until none that goes on could be better. Returns the best one with its log-probability and
 * score, and all that were set aside, the best first.
 */
export function beamSearch(model, source, limits, { beamSize = 4, lengthPenalty = 0.6 } = {}) {
  const start = { tokens: [limits.bos], logP: 0, state: model.start(source) };
  const { beams, ended } = keepBeams(start, {
    lengthen: (beams) => continuations(model, beams, limits, 2 * beamSize),
    hasEnded: ({ ends }) => ends,
    logOf: ({ logP }) => logP,
    K: beamSize,
    alpha: lengthPenalty,
    maxLen: limits.maxLen,
  });
  const found = (ended.length ? ended : beams).map(({ tokens, logP }) => ({
    tokens: tokens.slice(1),
    logP,
    score: scoreOf(logP, tokens.length - 1, lengthPenalty),
  }));
  found.sort((a, b) => b.score - a.score); // stable: of equals, the one that was found first
  return { ...found[0], found };
}

/** The `count` likeliest ways to go on from all beams. */
function continuations(model, beams, { pad, eos }, count) {
  const ways = [];
  beams.forEach((beam, b) => {
    const state = beam.state.copy();
    const { logits } = model.next(beam.tokens.at(-1), state);
    const logShares = logSoftmax(logits);
    for (const token of order(logShares)
      .filter((i) => i !== pad)
      .slice(0, count))
      ways.push({ b, token, state, logP: Math.fround(beam.logP + logShares[token]) });
  });
  ways.sort((x, y) => y.logP - x.logP || x.b - y.b || x.token - y.token);
  return ways.slice(0, count).map(({ b, token, state, logP }) => {
    return { tokens: [...beams[b].tokens, token], logP, state, ends: token === eos };
  });
}

function logSoftmax(logits) {
  const highest = Math.max(...logits);
  const sum = logits.reduce((total, logit) => total + Math.exp(logit - highest), 0);
  return logits.map((logit) => logit - highest - Math.log(sum));
}

/**
 * The logits and the weights of all heads at each step of a sentence that is written already:
 * encoder[layer][head][t], and decoder[layer][head] and cross[layer][head] of a step.
 */
export function trace(model, source, { bos }, tokens) {
  const state = model.start(source);
  const steps = [bos, ...tokens.slice(0, -1)].map((token) => {
    const { logits, layers } = model.next(token, state);
    const weights = (part) => layers.map((layer) => layer[part].weights);
    return { logits, decoder: weights("self"), cross: weights("cross") };
  });
  const encoder = state.read.layers.map(({ attention }) =>
    attention[0].weights.map((_, head) => attention.map(({ weights }) => weights[head])),
  );
  return { encoder, steps };
}
