// The steps: what lights up on the map, and what is said. Words come from the sentence and numbers
// from the model, so each text is made when it is shown, and holds for any sentence.
//
// A text is a list of parts: what is said as it is, or { mark, word }, a word in italics (`lang` is its
// language), in bold (a term) or as a mark of the model's. `say` makes it of a template.

import { shown } from "../elements.js";
import { mean, order } from "../numbers.js";
import told from "../translator/words.js";
import { average, looks, meet } from "./acts/looks.js";
import { alone, meanLook, memory } from "./acts/encoder.js";
import { across, crossing, goesIn, LAYER, lookOf, scores } from "./acts/decoder.js";
import { end, training, why } from "./acts/end.js";
import { numbers, places, rows } from "./acts/words.js";
import { chance, ORDINALS, share, two } from "./scene.js";

/** The parts of a template, in which a line goes on as text does; a value may be a part or several. */
function say(texts, ...values) {
  const parts = texts
    .flatMap((text, i) => [text.replace(/\s*\n\s*/g, " "), values[i] ?? []])
    .flat();
  const last = parts.length - 1;
  return parts
    .map((part, i) => {
      if (i === 0) return part.trimStart();
      return i === last ? part.trimEnd() : typeof part === "number" ? String(part) : part;
    })
    .filter((part) => part !== "");
}
const special = (word) => /^<.*>$/.test(word);
const cited = (lang) => (word) =>
  special(word) ? { mark: "code", word } : { mark: "i", lang, word };
const en = cited("en");
const fr = cited("fr");
const term = (word) => ({ mark: "b", word });
const COUNTED = "no one two three four five six seven eight nine ten eleven twelve".split(" ");
const counted = (n) => COUNTED[n] ?? String(n);
const listed = (items) =>
  items.flatMap((item, i) => (i ? [i < items.length - 1 ? ", " : " and ", item] : [item]));
const few = (row) => `${Array.from(row.slice(0, 3), two).join(", ")} …`;
const looking = (who, weights, whom) =>
  `${who} looks at ${Array.from(weights, (w, s) => `${whom[s]} ${share(w)}`).join(", ")}`;
const likely = ({ top, probabilities }, name, count = 3) =>
  top
    .slice(0, count)
    .map((id) => `${name(id)} ${chance(probabilities[id])}`)
    .join(", ");
const best = (weights) => order(weights)[0];

/** How many of these heads look most at whom, as "two look most at …, one at …". */
function tally(looks, named) {
  const counts = new Map();
  for (const s of looks.map(best)) counts.set(named(s), (counts.get(named(s)) ?? 0) + 1);
  const most = [...counts].sort((a, b) => b[1] - a[1]);
  return listed(
    most.map(([word, n], i) => {
      const look = i ? "" : n === 1 ? "looks most " : "look most ";
      return [`${counted(n)} ${look}at `, word === "itself" ? word : en(word)];
    }),
  ).flat();
}

/** Whom a round looks at most, and how much. */
function most(trace, r) {
  const weights = lookOf(trace.rounds[r]);
  const s = best(weights);
  return { s, share: share(weights[s]) };
}

const ENCODER = ["src", "emb", "pos", "sa1", "ff1", "sa2", "ff2"];
const READ = [...ENCODER, "memory"];
const FOOT = ["tgt", "temb", "tpos"];
const BEFORE = ["ma1", "ca1", "tff1", "ma2"];
const STACK = [...BEFORE, "ca2", "tff2"];

/**
 * Each is { name, draw, lens, lit, done, who, label, round, says, seen }: `draw` is its scene, `lens`
 * the part that it shows, `who` what can be chosen ("words" or "rounds") under the words `label`,
 * `round` how many French words have gone in, "at" for the chosen one; `seen` says the picture in words.
 */
export const STEPS = [
  {
    name: "Words become numbers",
    draw: numbers,
    lens: "src",
    lit: ["src"],
    done: [],
    who: "words",
    label: "Follow",
    says: ({ words, ids, asks, entries }) => say`
      A computer can only calculate, so each word is replaced by its number in the model’s list.
      ${en(words[asks])} is number ${ids[asks]} of ${entries.length}. The mark ${en("<eos>")} says
      where the sentence ends.`,
    seen: ({ words, ids }) => words.map((word, t) => `${word} is number ${ids[t]}`).join(", "),
  },
  {
    name: "Numbers become rows of numbers",
    draw: rows,
    lens: "emb",
    lit: ["emb"],
    done: ["src"],
    who: "words",
    label: "Follow",
    says: ({ width, words, asks }) => say`
      Each number picks a row of ${width} numbers out of a table, the word’s ${term("embedding")}.
      Faint is low and strong is high. Nobody wrote these numbers down. Training found what the row of
      ${en(words[asks])} should be.`,
    seen: ({ words, asks, trace }) =>
      `The row of ${words[asks]} begins with ${few(trace.embedded[asks])}`,
  },
  {
    name: "Where each word stands",
    draw: places,
    lens: "pos",
    lit: ["pos"],
    done: ["src", "emb"],
    who: "words",
    label: "Follow",
    says: () => say`
      So far ${en("the dog sees the cat")} and ${en("the cat sees the dog")} have the same rows, but
      they don’t mean the same. So each row gets another one added to it, number by number, which
      belongs to its place alone.`,
    seen({ words, asks, trace }) {
      const [a, b, c] = [trace.embedded, trace.positions, trace.encoder[0].attention.x].map((all) =>
        two(all[asks][0]),
      );
      return `The first number of ${words[asks]}: ${a} for the word plus ${b} for its place is ${c}`;
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
        Each word’s row makes a ${term("query")}, what it looks for, and a ${term("key")}, how
        others find it. Here ${en(words[asks])} meets
        ${met === asks ? "its own key" : ["the key of ", en(words[met])]}. Multiply the two number by
        number, add up, and divide by √${look.queries[0].length} (why: chapter 4). That’s a score.
        ${term("Softmax")} turns the scores into shares.`;
    },
    seen: ({ words, asks, look, weights }) =>
      `${words[asks]} asks: ${words.map((word, s) => `${word} scores ${two(look.scores[asks][s])}, which is ${share(weights[s])}`).join(", ")}`,
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
      const { heads } = trace.encoder[0].attention;
      const others = heads.filter((_, h) => h !== head).map((each) => each.weights[asks]);
      return say`
        This is ${term("attention")}. Queries meet all keys, and a share says how much one word looks
        at another. ${counted(heads.length)[0].toUpperCase()}${counted(heads.length).slice(1)}
        ${term("heads")} do it, each in its own way. In the ${ORDINALS[head]}
        ${en(words[asks])} looks most at ${s === asks ? "itself" : en(words[s])}
        (${share(weights[s])}). Of the others,
        ${tally(others, (t) => (t === asks ? "itself" : words[t]))}.`;
    },
    seen: ({ words, asks, weights }) => looking(words[asks], weights, words),
  },
  {
    name: "… and takes home an average",
    draw: average,
    lens: "sa1",
    lit: ["sa1"],
    done: ["src", "emb", "pos"],
    who: "words",
    label: "Who asks",
    says({ words, asks, weights }) {
      const s = best(weights);
      return say`
        Each word also has a ${term("value")}, what it hands over to those who look.
        ${en(words[asks])} takes home an average of all the values. The larger a word’s share, the more
        its value counts, and the taller it’s drawn. Here
        ${s === asks ? ["its own"] : ["that of ", en(words[s])]} counts most. Each head does this.`;
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
    busy: true,
    says: ({ width, inner, alive, asks, words, first }) => say`
      What the heads found is added to each row. But an average only mixes. So each row goes
      alone through a small network. Its ${width} numbers make ${inner}, those below zero become zero
      (${en(words[asks])} keeps ${alive[asks]} of ${inner}${asks === first.busy && asks !== first.words ? ", most of all words" : ""}),
      and from these come ${width} that are added.`,
    seen: ({ words, alive, inner }) =>
      `Of ${inner} numbers in the middle stay above zero: ${words.map((word, t) => `${word} ${alive[t]}`).join(", ")}`,
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
        return s === asks ? "itself" : en(words[s]);
      });
      return say`
        A second layer does this again with its own numbers, on rows that already know of each other.
        The result is the ${term("memory")}, a row for each English word. On average over the heads,
        ${en(words[asks])} looks most at ${one} in the first layer, at ${two} in the second.`;
    },
    seen: ({ words, asks, trace }) =>
      `In the second layer, ${looking(words[asks], meanLook(trace.encoder[1].attention, asks), words)}`,
  },
  {
    name: "The decoder begins",
    draw: across,
    lens: "ca2",
    lit: ["ca2", "memory", ...FOOT],
    done: [...READ, ...BEFORE],
    round: 0,
    says({ trace, words }) {
      const looks = trace.rounds[0].layers[LAYER].cross.heads.map(({ weights }) => weights);
      return say`
        Now the ${term("decoder")} writes French. Nothing is written, so the mark ${fr("<bos>")}
        goes in. In ${term("cross-attention")} it asks, and the memory gives keys and values. Of the
        ${counted(looks.length)} heads ${tally(looks, (s) => words[s])}. What they find is added to the row of ${fr("<bos>")}.`;
    },
    seen: ({ trace, words }) => looking("<bos>", lookOf(trace.rounds[0]), words),
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
      const step = STEPS.findIndex(({ draw }) => draw === scores) + 1;
      return say`
        The first word is ${fr(trace.rounds[0].written.word)} (step ${step} shows how it’s chosen). It
        goes back in behind ${fr("<bos>")}, and the next round begins. It looks at the French words so
        far, itself included. Later ones don’t exist yet. In training they do, and are
        ${term("masked")}, which means hidden.`;
    },
    seen({ trace }) {
      const round = trace.rounds[Math.min(1, trace.rounds.length - 1)];
      const inputs = trace.rounds.map(({ input }) => input.word);
      return looking(round.input.word, lookOf(round, "self", 0), inputs);
    },
  },
  {
    draw: crossing,
    lens: "ca2",
    lit: ["ca2", "memory"],
    done: [...READ, ...FOOT, ...BEFORE],
    round: "at",
    who: "rounds",
    label: "Round",
    name: ({ crosses, back }) =>
      crosses
        ? "Where the lines cross"
        : back
          ? "Where a line goes back"
          : "On through the sentence",
    says({ trace, at, words, crosses, back }) {
      const { s, share } = most(trace, at);
      const { input, written } = trace.rounds[at];
      const before = back && en(words[most(trace, at - 1).s]);
      const here = say`Round ${at + 1}. ${fr(input.word)} asks what comes next and looks most at
        ${en(words[s])} (${share})`;
      const writes = say`The model writes ${fr(written.word)}`;
      if (crosses)
        return say`${here}, which comes before ${before} in English. ${writes}, so the lines cross.
          Nobody told it this rule. It was in the examples.`;
      if (back)
        return say`${here}. ${writes}. The line goes back here, for the one of the round before starts
          at ${before}.`;
      if (input.word === "<bos>") return say`${here}. ${writes}, its first word.`;
      if (special(written.word)) return say`${here}. ${writes}, and that is the end.`;
      return say`${here}. ${writes}. No crossing here, for the line starts where the last one did, or
        further on.`;
    },
    seen: ({ trace, at, words }) =>
      `${looking(trace.rounds[at].input.word, lookOf(trace.rounds[at]), words)}; ${trace.rounds[at].written.word} is written`,
  },
  {
    name: "A score for every French word",
    draw: scores,
    lens: "scores",
    lit: ["scores", "next"],
    done: [...READ, ...FOOT, ...STACK],
    round: "at",
    who: "rounds",
    label: "Round",
    says({ trace, at, name }) {
      const { input, logits, top, probabilities } = trace.rounds[at];
      return say`
        The row of ${fr(input.word)} meets a column of numbers for each of the ${logits.length} entries
        of the French list, which gives each of them a score. ${term("Softmax")} makes a word 2.7 times
        as probable for each point more. The most probable is ${fr(name(top[0]))}
        (${chance(probabilities[top[0]])}), and it is written.`;
    },
    seen: ({ trace, at, name }) => `The most probable words: ${likely(trace.rounds[at], name, 5)}`,
  },
  {
    name: "Until the end",
    draw: end,
    lens: "ca2",
    lit: ["ca2", "memory", "next"],
    done: [...READ, ...FOOT, ...STACK, "scores"],
    round: "all",
    says({ trace, strange, known }) {
      const n = trace.rounds.length;
      const reads = say`After ${counted(n)} rounds it reads ${fr(trace.text)}.`;
      const met = strange
        ? " It has never met these words together in this way, so it may be wrong."
        : known
          ? ` The model learned from ${told.learned.toLocaleString("en")} sentences, and not from this one.`
          : "";
      return say`
        So it goes on, a word a round, until the mark ${fr("<eos>")} is the most probable and ends the
        sentence. ${n === 1 ? "This was after the first round, so nothing is written." : reads}${met}`;
    },
    seen: ({ trace, words }) =>
      trace.rounds
        .map(({ written }, r) => `${written.word}, with a look at ${words[most(trace, r).s]}`)
        .join("; "),
  },
  {
    name: "What is different in training",
    draw: training,
    lens: "scores",
    lit: [...FOOT, ...STACK, "scores"],
    done: READ,
    round: "all",
    says: ({ known }) => say`
      In training the right translation${known ? "" : " (here: its choice)"} goes in whole, and all
      places guess at once. Without the ${term("mask")} each could copy the answer. The ${term("loss")}
      says how much ${known ? "the right" : "these"} words surprise the model. Training turns the
      model’s numbers, bit by bit, to lower it.`,
    seen: ({ trace, before }) =>
      `${trace.rounds.map(({ written, probabilities }, r) => `${written.word}: ${chance(before[r])} before training, ${chance(probabilities[written.id])} after it`).join("; ")}; loss ${two(-mean(before.map(Math.log)))} before, ${shown(trace.loss, 3)} after it`,
  },
  {
    name: "Why this word?",
    draw: why,
    lens: "ca2",
    lit: ["ca1", "ca2", "scores", "next"],
    done: [...READ, ...FOOT, ...STACK],
    round: "at",
    who: "rounds",
    label: "Round",
    says({ trace, at, words, cuts, cut, name }) {
      const { input, written, probabilities } = trace.rounds[at];
      if (!cut)
        return say`
          Take a look away and see. Press × on a line, and ${fr(input.word)} can’t look at that word in
          this round, in either layer, with any head. The model runs again, and ${fr(written.word)}
          falls or stays.`;
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
        rows, or the French so far, may know it, too.`;
    },
    seen({ trace, at, cut, name }) {
      const before = `With all looks: ${likely(trace.rounds[at], name)}`;
      return cut ? `${before}. Without: ${likely(cut.rounds[at], name)}` : before;
    },
  },
];
