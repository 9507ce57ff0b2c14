// The fourth act: the decoder looks into the memory, a word goes in, the lines cross, a word is chosen.

import { shown } from "../../elements.js";
import { mean } from "../../numbers.js";
import { bend, chance, large, share, span, straight, strengths, two } from "../scene.js";
import { fan } from "./looks.js";

export const LAYER = 1; // the second of the decoder: where its looks are shown

/** Where a round looks: the mean of the heads of this layer. */
export const lookOf = (round, part = "cross", layer = LAYER) => {
  const { heads } = round.layers[layer][part];
  return Array.from(heads[0].weights, (_, s) => mean(heads.map(({ weights }) => weights[s])));
};

const askedMemory = (scene, s) => [
  { of: "memory", query: s },
  `the memory’s row of ${scene.told.words[s]}`,
];
const looked = (round, who, whom, key, w, more = {}) => [
  { of: "share", part: "cross", layer: LAYER, query: round, key, ...more },
  `${who} looks at ${whom}: ${share(w)}`,
];

export function goesIn(scene) {
  const { trace } = scene.told;
  const rounds = trace.rounds.slice(0, 2);
  const inputs = rounds.map(({ input }) => input.word);
  const on = rounds.length - 1;
  const weights = rounds.map((round) => lookOf(round, "self", 0));
  fan(scene, {
    ...{ asked: inputs, asking: inputs, weights, on, role: "word", lang: "fr" },
    rows: rounds.map(({ layers }) => layers[0].self.x),
    masked: Math.min(3, Math.max(0, trace.rounds.length - 2)),
    asks: (key) => [
      { of: "share", part: "self", layer: 0, query: on, key },
      `${inputs[on]} looks at ${inputs[key]}: ${share(weights[on][key])}`,
    ],
    rowAsks: (query) => [{ of: "input", part: "target", query }, `${inputs[query]}: word + place`],
  });
  scene.title("first layer, mean of its four heads");
}

/**
 * English on the left with the memory; on the right, at the end of its line, each word that is written,
 * and behind it the one that asked for it. `rounds` are drawn, `on` is the one that is followed.
 */
export function sides(
  scene,
  { rounds, on, bottom = scene.bottom, press, looks, out = ({ written }) => written.word },
) {
  const { told, roomy } = scene;
  const { words, trace } = told;
  const heading = roomy ? 22 : 17;
  const top = scene.top + heading;
  const left = scene.rows(words.length, { top, bottom });
  const slots = press ? 1 : Math.max(rounds.length, Math.min(6, trace.rounds.length));
  const right = scene.rows(slots, { top, bottom });
  const labelsAt = (size) => ({
    asked: scene.label(words, size),
    written: scene.label([...rounds.map((r) => out(trace.rounds[r])), "writes"], size),
    asks: scene.label([...rounds.map((r) => trace.rounds[r].input.word), "asks"], 0.85 * size),
  });
  const largest = Math.min(scene.sizeIn(left.pitch), scene.sizeIn(right.pitch));
  const needed = ({ asked, written, asks }) => asked + written + asks + (roomy ? 260 : 128);
  const size = scene.shrunk(largest, (each) => needed(labelsAt(each)));
  const labels = labelsAt(size);
  const asks = scene.right;
  const written = asks - labels.asks - (roomy ? 34 : 16) - labels.written;
  const room = written - 8 - scene.left - labels.asked;
  const figures = roomy ? 62 : 54;
  const broad = Math.min(
    260,
    Math.max(38, Math.min(room - figures - 6, (roomy ? 0.45 : 0.5) * room)),
  );
  const start = written - 8 - broad;
  const strip = start - figures - scene.left - labels.asked - 12;
  const most = span(trace.memory);
  const x = scene.left + labels.asked + 10;
  if (strip > 12)
    scene.add("rect", "memory frame", {
      cls: "frame memory",
      x: x - 5,
      y: left.top + 1,
      w: strip + 10,
      h: left.pitch * words.length - 2,
      r: 6,
    });
  const up = (rows) => rows.y[0] - rows.pitch / 2 - heading / 2 + 2;
  scene.text("h asked", "is asked", scene.left + labels.asked, up(left), { anchor: "end" });
  scene.text("h writes", "writes", written, up(right), { cls: "strong" });
  scene.text("h asks", "asks", asks, up(right), { anchor: "end" });
  words.forEach((word, s) => {
    scene.word(`asked ${s}`, word, scene.left + labels.asked, left.y[s], { anchor: "end", size });
    if (strip > 12)
      scene.strip(
        `memory ${s}`,
        "memory",
        strengths(trace.memory[s], most),
        x,
        left.y[s],
        strip,
        Math.min(0.5 * left.pitch, 26),
        { asks: press ? undefined : askedMemory(scene, s) },
      );
  });
  for (let i = 0; i < slots; i++) {
    if (i >= rounds.length) {
      scene.add("rect", `free ${i}`, {
        cls: "slot",
        x: written,
        y: right.y[i] - Math.min(13, 0.36 * right.pitch),
        w: labels.written,
        h: Math.min(26, 0.72 * right.pitch),
        r: 5,
      });
      continue;
    }
    const r = rounds[i];
    const { input } = trace.rounds[r];
    const follow = on === undefined || r === on;
    const weights = looks ?? lookOf(trace.rounds[r]);
    scene.word(`writes ${r}`, out(trace.rounds[r]), written, right.y[i], {
      size,
      lang: "fr",
      on: follow,
      d: 0.4 + (on === undefined ? 0.1 * i : 0),
    });
    scene.text(`asks ${r}`, input.word, asks, right.y[i], {
      anchor: "end",
      lang: "fr",
      size: 0.85 * size,
      cls: r === on ? "word" : "quiet",
    });
    weights.forEach((w, s) => {
      if (w < 0.004 && r !== on) return;
      const o = on === undefined ? 0.08 + 0.72 * w : r === on ? 0.14 + 0.8 * w : 0.05 + 0.3 * w;
      scene.add("path", `cross ${r} ${s}`, {
        ...{ cls: `curve query${follow ? " on" : ""}`, b: 0.6 + (roomy ? 13 : 8) * w, o },
        ...{
          p: bend(start, left.y[s], written - 8, right.y[i]),
          d: 0.1 + (on === undefined ? 0.1 * i : 0),
        },
      });
      if (r === on)
        scene.number(`share ${s}`, share(w), start - 6, left.y[s], {
          ...{ cls: w === Math.max(...weights) ? "number strong" : "number", d: 0.35 },
          asks: press ? undefined : looked(r, input.word, words[s], s, w),
        });
    });
  }
  return { left, right, size, start, broad, written, figures, labels };
}

export function crossing(scene) {
  sides(scene, { rounds: [0], on: 0, out: () => "?" });
  scene.title("second layer, mean of its four heads");
}

/** Round numbers for an axis. */
function ticks(low, high) {
  const step = high - low > 24 ? 10 : 5;
  const first = Math.ceil(low / step) * step;
  return Array.from({ length: Math.floor((high - first) / step) + 1 }, (_, i) => first + i * step);
}

export function scores(scene) {
  const { told, roomy } = scene;
  const { trace, at, name } = told;
  const { last, logits, probabilities, top, input } = trace.rounds[at];
  const shape = roomy ? 24 : 18;
  const ask = (of, id) => [
    { of, query: at, id },
    `${name(id)}: ${of === "logit" ? `score ${two(logits[id])}` : chance(probabilities[id])}`,
  ];
  scene.strip(
    "last",
    "word",
    strengths(last, span([last])),
    scene.left,
    scene.top + shape / 2,
    scene.right - scene.left,
    shape,
    {
      asks: [{ of: "last", query: at }, `the last row of ${input.word}`],
    },
  );
  const from = scene.top + shape + (roomy ? 32 : 26);
  const table = (roomy ? 5 * 34 : 5 * 27) + (roomy ? 44 : 40);
  const base = Math.max(from + 40, scene.bottom - table);
  const listed = logits.map((z, id) => (id < 4 && id !== 2 ? null : z)); // marks that are never written
  const seen = [...listed].filter((z) => z !== null);
  const [low, high] = [Math.min(...seen), Math.max(...seen)];
  const axis = scene.left + (roomy ? 34 : 26);
  const w = (scene.right - axis - 4) / logits.length;
  const y = (z) => base - ((base - from) * (z - low)) / (high - low);
  scene.text(
    "h scores",
    roomy
      ? `times a column of numbers for each word: ${logits.length} scores`
      : `${logits.length} scores`,
    scene.left,
    from - (roomy ? 14 : 12),
  );
  for (const tick of ticks(low, high)) {
    scene.add("path", `tick ${tick}`, {
      cls: "axis",
      p: straight([axis - 4, y(tick), scene.right, y(tick)]),
      o: tick ? 0.55 : 1,
    });
    scene.text(`axis ${tick}`, shown(tick), axis - 8, y(tick), {
      anchor: "end",
      size: 11.5,
      cls: "number",
    });
  }
  const zero = y(Math.max(low, Math.min(high, 0)));
  logits.forEach((z, id) =>
    scene.add("rect", `score ${id}`, {
      ...{ cls: `fill ${id === top[0] ? "loss" : "plain"}`, layer: "cell", d: 0.1 + 0.0008 * id },
      ...{
        x: axis + id * w,
        y: Math.min(zero, y(z)),
        w: Math.max(0.6, 0.72 * w),
        h: Math.max(0.8, Math.abs(y(z) - zero)),
      },
    }),
  );
  choice(scene, { top: base + (roomy ? 14 : 12), ask });
  const round = `round ${at + 1}: the row`;
  scene.title(`${round} that “${input.word}” has become`, `${round} of “${input.word}”`);
}

/** The five most probable words: their scores, e to the score, and their shares of all. */
function choice(scene, { top, ask }) {
  const { told, roomy } = scene;
  const { trace, at, name } = told;
  const { logits, probabilities, top: best } = trace.rounds[at];
  const heading = roomy ? 20 : 17;
  const { y, pitch } = scene.rows(best.length, { top: top + heading, most: 38 });
  const labelAt = (each) => scene.label(best.map(name), each);
  const size = scene.shrunk(
    Math.min(roomy ? 17 : 14, 0.72 * pitch),
    (each) => labelAt(each) + (roomy ? 330 : 205),
  );
  const label = labelAt(size);
  const figures = scene.left + label + scene.width("−00.00") + (roomy ? 34 : 8);
  const powers = best.map((id) => large(Math.exp(logits[id])));
  const raised = roomy ? "e to the score" : "e to it";
  const power =
    figures +
    Math.max(scene.width(raised, scene.small, false), ...powers.map((s) => scene.width(s))) +
    (roomy ? 34 : 8);
  const from = power + (roomy ? 30 : 12);
  const room = scene.right - from - scene.width("> 99.9 %") - 10;
  const up = y[0] - pitch / 2 - heading / 2 + 2;
  scene.text("h score", "score", figures, up, { anchor: "end" });
  scene.text("h power", raised, power, up, { anchor: "end" });
  scene.text(
    "h chance",
    scene.fitting(
      ["its share of all: the probability", "its share of all", "share"],
      scene.right - from,
    ),
    from,
    up,
  );
  best.forEach((id, i) => {
    const d = 0.5 + 0.07 * i;
    const cls = i === 0 ? "number strong" : "number";
    const bar = Math.max(1.5, room * probabilities[id]);
    scene.word(`top ${id}`, name(id), scene.left + label, y[i], {
      anchor: "end",
      size,
      lang: "fr",
      on: i === 0,
      d,
    });
    scene.number(`logit ${id}`, two(logits[id]), figures, y[i], { cls, asks: ask("logit", id), d });
    const asks = [{ of: "power", query: at, id }, `${name(id)}: e to its score`];
    scene.number(`power ${id}`, powers[i], power, y[i], { cls, asks, d: d + 0.15 });
    scene.add("rect", `chance ${i}`, {
      cls: `fill ${i === 0 ? "loss" : "plain"}`,
      layer: "cell",
      x: from,
      y: y[i] - 0.24 * pitch,
      w: bar,
      h: 0.48 * pitch,
      r: 2,
      d: d + 0.3,
    });
    scene.number(`share ${id}`, chance(probabilities[id]), from + bar + 8, y[i], {
      anchor: "start",
      cls,
      asks: ask("probability", id),
      d: d + 0.3,
    });
  });
}
