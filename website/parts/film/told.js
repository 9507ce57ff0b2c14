// What a scene and its caption are told: the trace, whom they follow, and what follows from that.

import { order } from "../numbers.js";
import { Grammar } from "../translator/grammar.js";
import words from "../translator/words.js";
import { lookOf } from "./acts/decoder.js";
import { untrained } from "./untrained.js";
import { watch } from "./watch.js";

const HEAD = 3; // of the encoder's first layer: the last of four
export const grammar = new Grammar(words.grammar);

/** The word whose row is followed: a *the* that looks at another word, or whoever does so most. */
function whoAsks({ source }, { weights }) {
  const away = (t) => Math.max(...weights[t].map((w, s) => (s === t ? 0 : w)));
  const all = [...source.words.keys()].slice(0, -1).sort((a, b) => away(b) - away(a));
  return all.find((t) => source.words[t] === "the" && away(t) > 0.3) ?? all[0];
}

const endsAt = ({ rounds }, r) => rounds[r].written.id === words.ids.eos;

/** Whether round r looks further to the front than the one before; `at` is where each looks most. */
const goesBack = (trace, at, r) => r > 0 && at[r] < at[r - 1] && !endsAt(trace, r);

/** Whether it goes back from a noun to its adjective, and the adjective is written. */
function crossesAt(trace, at, r) {
  if (!goesBack(trace, at, r)) return false;
  const kinds = trace.source.words
    .slice(at[r], at[r - 1] + 1)
    .map((each) => grammar.kindOf.get(each));
  const forms = words.behind[trace.source.words[at[r]]] ?? [];
  if (!forms.includes(trace.rounds[r].written.word)) return false;
  return kinds.pop() === "noun" && kinds.every((kind) => kind === "adjective");
}

/** The round to be followed: where lines cross most clearly, or else the first. */
function roundOf(trace, at) {
  const most = trace.rounds.map((round) => Math.max(...lookOf(round)));
  const clear = (r) => Math.min(most[r], most[r - 1]);
  const crossing = [...most.keys()].filter((r) => crossesAt(trace, at, r));
  return crossing.sort((a, b) => clear(b) - clear(a))[0] ?? 0;
}

/** All that is known of a sentence; `first` is whom each kind of step follows to begin with. */
export function factsOf(trace) {
  const { attention, feedForward } = trace.encoder[0];
  const [, width] = trace.model.sourceTable.shape;
  const look = attention.heads[HEAD];
  const alive = feedForward.hidden.map((row) => row.filter((value) => value > 0).length);
  const pointed = trace.rounds.map((round) => order(lookOf(round))[0]);
  const sentence = trace.source.words.slice(0, -1);
  const known = words.examples.includes(sentence.join(" "));
  const strange = !known && !grammar.next(sentence).complete;
  const rounds = strange ? 0 : roundOf(trace, pointed);
  return {
    ...{ trace, look, alive, pointed, width, head: HEAD, entries: words.english },
    ...{ words: trace.source.words, ids: trace.source.ids, name: (id) => words.french[id] },
    inner: feedForward.hidden[0].length,
    strange, // it has met no sentence with these words together in this way
    known, // the translation is right, and the sentence is none of those that it learned from
    before: untrained(trace),
    first: { words: whoAsks(trace, look), rounds },
  };
}

/** What a step is told: `chosen` are the reader's word and round, `cuts` the looks cut there. */
export function toldAt(facts, { start }, { chosen = {}, cuts = [] } = {}) {
  const { trace, first, look, pointed } = facts;
  const asks = chosen.words ?? first.words;
  const at = chosen.rounds ?? start ?? first.rounds;
  const looks = cuts.map((key) => ({ part: "cross", query: at, key }));
  return {
    ...{ ...facts, asks, at, cuts, weights: look.weights[asks] },
    back: goesBack(trace, pointed, at),
    crosses: !facts.strange && crossesAt(trace, pointed, at),
    cut: cuts.length ? watch(trace.model, facts.words.slice(0, -1), { cuts: looks }) : undefined,
  };
}
