// The steps: what lights up on the map, and what is said. Words come from the sentence and numbers
// from the model, so each text is made when it is shown, and holds for any sentence.

import { shown } from "../elements.js";
import { mean } from "../numbers.js";
import { crossing, goesIn, lookOf, LAYER, scores } from "./acts/decoder.js";
import { alone, memory } from "./acts/encoder.js";
import { end, training, why } from "./acts/end.js";
import { average, looks, meet } from "./acts/looks.js";
import { places } from "./acts/words.js";
import { meanLook } from "./moves.js";
import { best, counted, en, fr, likely, listed, looking, say, tally, term } from "./say.js";
import { chance, ORDINALS, share, two } from "./scene.js";
import { WHY } from "./why.js";

/** Whom a round looks at most, and how much. */
function most(trace, r) {
  const weights = lookOf(trace.rounds[r]);
  const s = best(weights);
  return { s, share: share(weights[s]) };
}

/** A loss, which is never nothing. */
const tiny = (loss) => (loss < 0.0005 ? "< 0.001" : shown(loss, 3));

const ENCODER = ["src", "emb", "pos", "sa1", "ff1", "sa2", "ff2"];
const READ = [...ENCODER, "memory"];
const FOOT = ["tgt", "temb", "tpos"];
const BEFORE = ["ma1", "ca1", "tff1", "ma2"];
const STACK = [...BEFORE, "ca2", "tff2"];

/**
 * Each is { name, draw, lens, lit, done, who, label, round, says, seen }: `draw` is its scene, `lens`
 * the part that it shows, `who` what can be chosen ("words", "rounds" or "nouns") under the words
 * `label`, `round` how many French words have gone in, "at" for the chosen one; `start` is the round
 * that is followed at first, where it isn't the one where lines cross; `seen` says the picture in words.
 */
export const STEPS = [
  ...WHY,
  {
    name: "Where a row comes from",
    draw: places,
    lens: "pos",
    lit: ["src", "emb", "pos"],
    done: [],
    who: "words",
    label: "Follow",
    says: ({ width, words, ids, asks, entries }) => say`
      Now number by number. ${en(words[asks])} is number ${ids[asks]} of ${entries.length} in the model’s
      list, and has there a row of ${width} numbers, its ${term("embedding")}, which training found. The
      row of its place is added, as attention takes an average, and that doesn’t know the order.`,
    seen({ words, asks, trace }) {
      const [a, b, c] = [trace.embedded, trace.positions, trace.encoder[0].attention.x].map((all) =>
        two(all[asks][0]),
      );
      return `The first number of “${words[asks]}”: ${a} for the word plus ${b} for its place is ${c}`;
    },
  },
  {
    name: "One question meets one key",
    draw: meet,
    lens: "sa1",
    lit: ["sa1"],
    done: ["src", "emb", "pos"],
    who: "words",
    label: "Who asks",
    says({ words, asks, weights, look }) {
      const met = best(weights);
      return say`
        In one of the four ways, or ${term("heads")}: the row of ${en(words[asks])} times a table that
        training found makes its query, and another table makes
        ${met === asks ? "its key" : ["the key of ", en(words[met])]}. Multiply the two, add up, divide by
        √${look.queries[0].length} (why: chapter 4). ${term("Softmax")} turns such scores into shares.`;
    },
    seen: ({ words, asks, look, weights }) =>
      `“${words[asks]}” asks: ${words.map((word, s) => `“${word}” scores ${two(look.scores[asks][s])}, which is ${share(weights[s])}`).join(", ")}`,
  },
  {
    name: "Who looks at whom",
    draw: looks,
    lens: "sa1",
    lit: ["sa1"],
    done: ["src", "emb", "pos"],
    who: "words",
    label: "Who asks",
    says({ words, asks, weights, head, trace }) {
      const s = best(weights);
      return say`
        Each head has its own tables, so that a word can ask several things at once. In the
        ${ORDINALS[head]}, which is drawn, ${en(words[asks])} looks most at
        ${s === asks ? "itself" : en(words[s])} (${share(weights[s])}; the mean of all four is
        ${share(meanLook(trace.encoder[0].attention, asks)[s])}).`;
    },
    seen: ({ words, asks, weights }) => looking(words[asks], weights, words),
  },
  {
    name: "It takes home an average",
    draw: average,
    lens: "sa1",
    lit: ["sa1"],
    done: ["src", "emb", "pos"],
    who: "words",
    label: "Who asks",
    says({ words, asks, weights }) {
      const s = best(weights);
      return say`
        A third table makes the values, of which ${en(words[asks])} takes home an average. The larger a
        word’s share, the more its value counts, and the taller it’s drawn:
        ${s === asks ? "its own" : ["that of ", en(words[s])]} most. Each head does this, and a fourth table
        mixes what they bring.`;
    },
    seen: ({ words, asks, weights, look }) =>
      `The first number that ${words[asks]} takes home: ${Array.from(weights, (w, s) => `${two(w)} times ${two(look.values[s][0])}`).join(" plus ")} is about ${two(look.taken[asks][0])}`,
  },
  {
    name: "Each row by itself",
    draw: alone,
    lens: "ff1",
    lit: ["ff1"],
    done: ["src", "emb", "pos", "sa1"],
    who: "words",
    label: "Follow",
    says: ({ width, inner, alive, asks, words }) => say`
      What the heads bring is added to the row: it has moved. But an average only mixes what’s there. So
      each row goes alone through a small network (grey before): ${width} numbers make ${inner}, those below
      zero become zero (${alive[asks] ? counted(alive[asks]) : "none"} of ${en(words[asks])}
      stay${alive[asks] === 1 ? "s" : ""}), and ${width} made of these are added.`,
    seen: ({ words, alive, inner }) =>
      `How many of ${inner} numbers stay above zero: ${words.map((word, t) => `“${word}” ${alive[t]}`).join(", ")}`,
  },
  {
    name: "Layer upon layer",
    draw: memory,
    lens: "ff2",
    lit: ["sa2", "ff2", "memory"],
    done: ["src", "emb", "pos", "sa1", "ff1"],
    who: "words",
    label: "Follow",
    says({ words, asks, trace }) {
      const [one, two] = trace.encoder.map(({ attention }) => {
        const s = best(meanLook(attention, asks));
        return s === asks ? { mark: "span", word: "itself" } : en(words[s]);
      });
      return say`
        A second layer does the same with tables of its own. Whoever is asked now has asked others
        before, so news can come in two steps. On average over the heads, ${en(words[asks])} looks most at
        ${one.word === two.word ? [one, " in both"] : [one, " in the first, at ", two, " in the second"]}.
        The result is the ${term("memory")}.`;
    },
    seen: ({ words, asks, trace }) =>
      `In the second layer, ${looking(words[asks], meanLook(trace.encoder[1].attention, asks), words)}`,
  },
  {
    name: "The decoder begins",
    draw: crossing,
    lens: "ca2",
    lit: ["ca2", "memory", ...FOOT],
    done: [...READ, ...BEFORE],
    round: 0,
    says({ trace, words }) {
      const looks = trace.rounds[0].layers[LAYER].cross.heads.map(({ weights }) => weights);
      const s = best(lookOf(trace.rounds[0]));
      const has = best(meanLook(trace.encoder[1].attention, s));
      const asked = words[s] === "the" && has !== s ? [" It has asked ", en(words[has]), "."] : [];
      return say`
        Now the ${term("decoder")} writes French. Nothing is written yet, so the mark ${fr("<bos>")} goes
        in. In ${term("cross-attention")} it asks, and the memory has the keys and values. In the second
        layer ${tally(looks, (s) => words[s])}.${asked} What they hand over is added to its row.`;
    },
    seen: ({ trace, words }) => looking("<bos>", lookOf(trace.rounds[0]), words),
  },
  {
    name: "A score for every French word",
    draw: scores,
    lens: "scores",
    lit: ["scores", "next"],
    done: [...READ, ...FOOT, ...STACK],
    round: "at",
    who: "rounds",
    start: 0,
    label: "Round",
    says({ trace, at, name }) {
      const { input, logits, top, probabilities } = trace.rounds[at];
      return say`
        The row of ${fr(input.word)} meets a column of numbers for each of the ${logits.length} entries of the
        French list, and each gets a score. After the ${term("softmax")} a word one point ahead of another
        is e ≈ 2.7 times as probable. The first is ${fr(name(top[0]))} (${chance(probabilities[top[0]])}), and
        it is written.`;
    },
    seen: ({ trace, at, name }) => `The most probable words: ${likely(trace.rounds[at], name, 5)}`,
  },
  {
    name: "The word goes back in",
    draw: goesIn,
    lens: "ma1",
    lit: ["loop", ...FOOT, "ma1"],
    done: READ,
    round: 1,
    says({ trace }) {
      if (trace.rounds.length < 2)
        return say`The first thing that is written is ${fr("<eos>")}, the end, so no French word goes in.`;
      return say`
        ${fr(trace.rounds[0].written.word)} goes back in behind ${fr("<bos>")} for the next
        round. Before it asks the memory, it looks at the French words so far, itself included. Later
        ones are ${term("masked")}: they don’t exist yet. ChatGPT is this alone: no encoder, no memory, the
        words so far, and the next.`;
    },
    seen({ trace }) {
      const round = trace.rounds[Math.min(1, trace.rounds.length - 1)];
      const inputs = trace.rounds.map(({ input }) => input.word);
      return looking(round.input.word, lookOf(round, "self", 0), inputs);
    },
  },
  {
    name: "Until the end",
    draw: end,
    lens: "ca2",
    lit: ["ca2", "memory", "next"],
    done: [...READ, ...FOOT, ...STACK, "scores"],
    round: "all",
    who: "rounds",
    label: "Round",
    says({ trace, at, words, crosses, back, strange }) {
      const { s, share } = most(trace, at);
      const { input, written } = trace.rounds[at];
      const before = back && en(words[most(trace, at - 1).s]);
      const crossing = crosses
        ? say`, which comes before ${before} in English, so the lines cross. It was given
          no rule, only examples`
        : back
          ? say`, before ${before}, where the last line starts`
          : "";
      return say`
        So it goes on, a word a round, until ${fr("<eos>")} is written and ends it. In round ${at + 1}
        ${fr(input.word)} looks most at ${en(words[s])} (${share})${crossing}. ${fr(written.word)} is written.${strange ? " It has never met these words together like this, so it may be wrong." : ""}`;
    },
    seen: ({ trace, words }) =>
      trace.rounds
        .map(({ written }, r) => `“${written.word}”, with a look at “${words[most(trace, r).s]}”`)
        .join("; "),
  },
  {
    name: "What is different in training",
    draw: training,
    lens: "scores",
    lit: [...FOOT, ...STACK, "scores"],
    done: READ,
    round: "all",
    says: ({ known, trace, before }) => say`
      Here the translation${known ? "" : ", its own choice,"} goes in whole, and all places guess at once. The ${term("mask")} keeps
      each from copying. The ${term("loss")} is the model’s surprise at it:
      ${two(Math.log(trace.rounds[0].logits.length))} for equal chances, ${two(-mean(before.map(Math.log)))}
      before training, ${tiny(trace.loss)} after it. Training changes all tables to lower it.`,
    seen: ({ trace, before }) =>
      `${trace.rounds.map(({ written, probabilities }, r) => `${written.word}: ${chance(before[r])} before training, ${chance(probabilities[written.id])} after it`).join("; ")}; loss ${two(-mean(before.map(Math.log)))} before, ${tiny(trace.loss)} after it`,
  },
  {
    name: "Why this word?",
    draw: why,
    lens: "ca2",
    lit: ["ca1", "ca2", "scores", "next"],
    done: [...READ, ...FOOT, ...STACK],
    round: "at",
    who: "rounds",
    start: 0,
    label: "Round",
    says({ trace, at, words, cuts, cut, name }) {
      const { input, written, probabilities } = trace.rounds[at];
      if (!cut)
        return say`
          Which look did it need for ${fr(written.word)}? Bet, then press × on a line:
          ${fr(input.word)} can’t look at that word in this round, in either layer, with any head. The
          other looks share what it got, and ${fr(written.word)} falls or stays.`;
      const looks = cuts.length > 3 ? [`${counted(cuts.length)} of its looks`] : ["its look at "];
      const without =
        cuts.length === words.length
          ? "any of its looks"
          : [...looks, ...(cuts.length > 3 ? [] : listed(cuts.map((s) => en(words[s]))))];
      const now = cut.rounds[at];
      const p = chance(now.probabilities[now.top[0]]);
      const [before, after] = [probabilities, now.probabilities].map((all) => all[written.id]);
      const them = cuts.length > 1 ? "them" : "it";
      if (now.written.id !== written.id)
        return say`
          Without ${without}, ${fr(written.word)} falls. The most probable word is now
          ${fr(name(now.top[0]))} (${p}).
          ${cut.text && cut.ended ? ["The sentence becomes ", fr(cut.text), "."] : ""}`;
      if (before - after > 0.05)
        return say`
          Without ${without}, ${fr(written.word)} stays, but falls from ${chance(before)} to ${p}. So it
          depends on ${them} in part.`;
      return say`
        Without ${without}, ${fr(written.word)} stays (${p}). Here it can do without ${them}. Other
        rows${at ? ", or the French so far," : ""} may know it, too.`;
    },
    seen({ trace, at, cut, name }) {
      const before = `With all looks: ${likely(trace.rounds[at], name)}`;
      return cut ? `${before}. Without: ${likely(cut.rounds[at], name)}` : before;
    },
  },
];
