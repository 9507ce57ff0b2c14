// The fourth act: the decoder looks into the memory, a word goes in, the lines cross, a word is chosen.

import { shown } from "../../elements.js";
import { mean } from "../../numbers.js";
import { chance, filled, large, share, span, strengths, two } from "../scene.js";
import { sides } from "./looks.js";

export const LAYER = 1; // the second of the decoder: where its looks are shown

/** Where a round looks: the mean of the heads of this layer. */
export const lookOf = (round, part = "cross", layer = LAYER) => {
  const { heads } = round.layers[layer][part];
  return Array.from(heads[0].weights, (_, s) => mean(heads.map(({ weights }) => weights[s])));
};

const looked = (who, whom, w) => `${who} looks at ${whom}: ${share(w)}`;

/** The memory is asked by `rounds` of a trace, of which `on` is followed; `more` is for `sides`. */
export function across(scene, { rounds, on, trace = scene.told.trace, ...more }) {
  const { words } = scene.told;
  const asking = rounds.map((at) => {
    const { input, written } = trace.rounds[at];
    return { word: input.word, writes: written.word, weights: lookOf(trace.rounds[at]), at };
  });
  const { word, weights } = asking.find(({ at }) => at === on);
  return sides(scene, {
    ...{ asked: words, rows: trace.memory, role: "memory", rowName: "memory", asking, on },
    rowAsks: (query) => [{ of: "memory", query }, `the memory’s row of ${words[query]}`],
    asks: (key) => [
      { of: "share", part: "cross", layer: LAYER, query: on, key },
      looked(word, words[key], weights[key]),
    ],
    ...more,
  });
}

export function crossing(scene) {
  const { rounds } = scene.told.trace;
  const [{ input }] = rounds;
  const asking = [{ word: input.word, writes: "?", weights: lookOf(rounds[0]), at: 0 }];
  across(scene, { rounds: [0], on: 0, asking, free: Math.min(6, rounds.length) - 1 });
  scene.title("second layer, mean of its four heads");
}

export function goesIn(scene) {
  const { trace } = scene.told;
  const rounds = trace.rounds.slice(0, 2);
  const inputs = rounds.map(({ input }) => input.word);
  const on = rounds.length - 1;
  const weights = rounds.map((round) => lookOf(round, "self", 0));
  const masked = Math.min(3, Math.max(0, trace.rounds.length - 2));
  const { left, label } = sides(scene, {
    ...{ asked: inputs, role: "word", on, lang: "fr", masked, free: masked },
    rows: rounds.map(({ layers }) => layers[0].self.x),
    rowAsks: (query) => [{ of: "input", part: "target", query }, `${inputs[query]}: word + place`],
    asking: inputs.map((word, at) => ({ word, weights: weights[at], at })),
    asks: (key) => [
      { of: "share", part: "self", layer: 0, query: on, key },
      looked(inputs[on], inputs[key], weights[on][key]),
    ],
  });
  const x = scene.left + label + 10;
  const note = scene.fitting(["masked: not written yet", "masked"], scene.right - x - 100);
  if (masked) scene.text(x, (left.y[2] + left.y.at(-1)) / 2, note, { name: "masked", delay: 0.2 });
  scene.title("first layer, mean of its four heads");
}

/** Round numbers for an axis. */
function ticks(low, high) {
  const step = high - low > 24 ? 10 : 5;
  const first = Math.ceil(low / step) * step;
  return Array.from({ length: Math.floor((high - first) / step) + 1 }, (_, i) => first + i * step);
}

export function scores(scene) {
  const { told, roomy, left, right } = scene;
  const { trace, at } = told;
  const { last, logits, top, input } = trace.rounds[at];
  const shape = roomy ? 24 : 18;
  const asks = [{ of: "last", query: at }, `the last row of ${input.word}`];
  const strong = strengths(last, span([last]));
  scene.strip(left, scene.top + shape / 2, right - left, shape, "word", strong, {
    name: "last",
    asks,
  });
  const from = scene.top + shape + (roomy ? 32 : 26);
  const table = roomy ? 214 : 175;
  const base = Math.max(from + 40, scene.bottom - table);
  const seen = [...logits].filter((_, id) => id > 3 || id === 2); // the other marks are never written
  const [low, high] = [Math.min(...seen), Math.max(...seen)];
  const axis = left + (roomy ? 34 : 26);
  const w = (right - axis - 4) / logits.length;
  const y = (z) => base - ((base - from) * (z - low)) / (high - low);
  const many = `${logits.length} scores`;
  const head = roomy ? `times a column of numbers for each word: ${many}` : many;
  scene.text(left, from - (roomy ? 14 : 12), head, { name: "h scores" });
  for (const tick of ticks(low, high)) {
    const axes = { width: 1, lit: false, opacity: tick ? 0.55 : 1 };
    scene.segment(axis - 4, y(tick), right, y(tick), { name: `tick ${tick}`, ...axes });
    scene.text(axis - 8, y(tick), shown(tick), { name: `axis ${tick}`, anchor: "end", size: 11.5 });
  }
  const zero = y(Math.max(low, Math.min(high, 0)));
  logits.forEach((z, id) => {
    const [wide, high] = [Math.max(0.6, 0.72 * w), Math.max(0.8, Math.abs(y(z) - zero))];
    const look = filled(id === top[0] ? "loss" : "plain", { delay: 0.1 + 0.0008 * id });
    const place = [axis + id * w, Math.min(zero, y(z)), wide, high];
    scene.rect(...place, { name: `score ${id}`, layer: "cell", ...look });
  });
  choice(scene, base + (roomy ? 14 : 12));
  const round = `round ${at + 1}: the row`;
  scene.title(`${round} that “${input.word}” has become`, `${round} of “${input.word}”`);
}

/** The five most probable words: their scores, e to the score, and their shares of all. */
function choice(scene, top) {
  const { told, roomy } = scene;
  const { trace, at: query, name } = told;
  const { logits, probabilities, top: best } = trace.rounds[query];
  const heading = roomy ? 20 : 17;
  const { y, pitch, up } = scene.rows(best.length, { top, heading, most: 38 });
  const labelAt = (size) => scene.label(best.map(name), size);
  const largest = Math.min(roomy ? 17 : 14, 0.72 * pitch);
  const size = scene.shrunk(largest, (each) => labelAt(each) + (roomy ? 330 : 205));
  const gap = roomy ? 34 : 11;
  const label = scene.left + labelAt(size);
  const score = label + scene.width("−00.00") + gap;
  const powers = best.map((id) => large(Math.exp(logits[id])));
  const raised = roomy ? "e to the score" : "e to it";
  const power = score + Math.max(...[raised, ...powers].map((s) => scene.width(s))) + gap;
  const from = power + (roomy ? 30 : 12);
  const room = scene.right - from - scene.width("> 99.9 %") - 10;
  const heads = ["its share of all: the probability", "its share of all", "share"];
  scene.text(score, up, "score", { name: "h score", anchor: "end" });
  scene.text(power, up, raised, { name: "h power", anchor: "end" });
  scene.text(from, up, scene.fitting(heads, scene.right - from), { name: "h chance" });
  best.forEach((id, i) => {
    const [on, delay, word, p] = [i === 0, 0.5 + 0.07 * i, name(id), chance(probabilities[id])];
    const asks = (of, says) => [{ of, query, id }, `${word}: ${says}`];
    const look = { bold: on, row: pitch, delay };
    const number = (of, s, x, says) =>
      scene.number(x, y[i], s, { name: `${of} ${id}`, asks: asks(of, says), ...look });
    const french = { anchor: "end", size, lang: "fr", on, delay };
    scene.word(label, y[i], word, { name: `top ${id}`, ...french });
    number("logit", two(logits[id]), score, `score ${two(logits[id])}`);
    number("power", powers[i], power, "e to its score");
    scene.bar(from, y[i], probabilities[id], p, {
      ...{ name: id, role: on ? "loss" : "plain", room, pitch, bold: on, delay: delay + 0.3 },
      asks: asks("probability", p),
    });
  });
}
