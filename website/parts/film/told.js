// What a scene and its caption are told: the trace, whom they follow, and what follows from that.

import { entropy, order } from "../numbers.js";
import { Grammar } from "../translator/grammar.js";
import words from "../translator/words.js";
import { lookOf } from "./acts/decoder.js";
import { untrained } from "./untrained.js";
import { watch } from "./watch.js";

const HEAD = 2; // of the encoder's first layer: the third of four
const adjectives = new Set(words.grammar.words.adjective);
export const grammar = new Grammar(words.grammar);

/** The word whose row is followed: an adjective that looks at another word, or whoever does so most. */
function whoAsks({ source }, { weights }) {
  const away = (t) => Math.max(...weights[t].map((w, s) => (s === t ? 0 : w)));
  const all = [...source.words.keys()].slice(0, -1).sort((a, b) => away(b) - away(a));
  return all.find((t) => adjectives.has(source.words[t]) && away(t) > 0.3) ?? all[0];
}

const endsAt = ({ rounds }, r) => rounds[r].written.id === words.ids.eos;

/** Whether the line of round r crosses that of the round before; `at` is where each round looks most. */
const crossesAt = (trace, at, r) => r > 0 && at[r] < at[r - 1] && !endsAt(trace, r);

/** The round to be followed: where lines cross most clearly, or where there is most choice. */
function roundOf(trace, at) {
  const { rounds } = trace;
  const all = [...rounds.keys()];
  const most = rounds.map((round) => Math.max(...lookOf(round)));
  const clear = (r) => Math.min(most[r], most[r - 1]);
  const crossing = all.filter((r) => crossesAt(trace, at, r)).sort((a, b) => clear(b) - clear(a));
  const doubt = (r) => entropy(Array.from(rounds[r].probabilities));
  const open = all.filter((r) => !endsAt(trace, r)).sort((a, b) => doubt(b) - doubt(a));
  return [...crossing, ...open, 0][0];
}

/** All that is known of a sentence; `first` is whom each kind of step follows to begin with. */
export function factsOf(trace) {
  const { attention, feedForward } = trace.encoder[0];
  const { data, shape } = trace.model.sourceTable;
  const [, width] = shape;
  const look = attention.heads[HEAD];
  const alive = feedForward.hidden.map((row) => row.filter((value) => value > 0).length);
  const pointed = trace.rounds.map((round) => order(lookOf(round))[0]);
  const sentence = trace.source.words.slice(0, -1);
  return {
    ...{ trace, look, alive, pointed, width, head: HEAD, entries: words.english },
    ...{ words: trace.source.words, ids: trace.source.ids, name: (id) => words.french[id] },
    table: (id) => data.subarray(id * width, (id + 1) * width).map((x) => x * Math.sqrt(width)),
    inner: feedForward.hidden[0].length,
    heads: attention.heads.length,
    strange: !grammar.next(sentence).complete, // it has learned from no sentence like this one
    known: words.examples.includes(sentence.join(" ")), // of these the translation is right
    before: untrained(trace),
    first: { words: whoAsks(trace, look), busy: order(alive)[0], rounds: roundOf(trace, pointed) },
  };
}

/** Of a step: `chosen` are the word and the round that the reader chose, `cuts` the looks cut there. */
export function toldAt(facts, { busy }, { chosen = {}, cuts = [] } = {}) {
  const { trace, first, look, pointed } = facts;
  const asks = chosen.words ?? (busy ? first.busy : first.words);
  const at = chosen.rounds ?? first.rounds;
  const looks = cuts.map((key) => ({ part: "cross", query: at, key }));
  return {
    ...{ ...facts, asks, at, cuts, weights: look.weights[asks] },
    crosses: crossesAt(trace, pointed, at),
    cut: cuts.length ? watch(trace.model, facts.words.slice(0, -1), { cuts: looks }) : undefined,
  };
}
