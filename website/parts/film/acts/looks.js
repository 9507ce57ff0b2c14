// The second act: one question meets one key, who looks at whom, and the average. Whoever asks is on
// the right, in the decoder as well.

import { order, sum } from "../../numbers.js";
import { bend, ORDINALS, share, span, strengths, two } from "../scene.js";

/** A row of numbers that are written into their cells. */
function cells(scene, k, role, row, x, y, w, h, { most, size, asks, strong = false, d = 0 }) {
  const soft = strengths(row, most).map((each) => (role === "plain" ? 0.3 : 0.62) * each);
  scene.strip(k, role, soft, x, y, w, h, { asks, d, row: h + 2 });
  if (!size) return;
  const cell = w / row.length;
  const cls = strong ? "on-cell strong" : "on-cell";
  Array.from(row, (value, i) =>
    scene.text(`${k} ${i}`, two(value), x + cell * (i + 0.5), y, {
      anchor: "middle",
      size,
      cls,
      d,
    }),
  );
}

/** The size of figures in a cell so wide, or none where they do not fit. */
const figuresIn = (cell) => (cell >= 36 ? Math.min(12.5, Math.max(11, 0.28 * cell)) : 0);

/** The address of a number of the head that is drawn, of the word that asks. */
const inHead = ({ told }, of, more) => ({
  ...{ of, part: "encoder", layer: 0, head: told.head, query: told.asks },
  ...more,
});

const shareOf = (scene, key) => {
  const { words, asks, weights } = scene.told;
  const label = `${words[asks]} looks at ${words[key]}: ${share(weights[key])}`;
  return [inHead(scene, "share", { key }), label];
};

export function meet(scene) {
  const { told, roomy } = scene;
  const { words, asks, look, head, weights } = told;
  const key = order(weights)[0];
  const [query, met] = [look.queries[asks], look.keys[key]];
  const products = query.map((value, i) => value * met[i]);
  const names = roomy
    ? [`${words[asks]}’s query`, `${words[key]}’s key`, "multiplied"]
    : ["query", "key", "×"];
  const lines = [
    ["query", query, "query", `the query of ${words[asks]}`],
    ["key", met, "key", `the key of ${words[key]}`],
    ["product", products, "plain", "query times key"],
  ];
  const x = scene.left + Math.max(...names.map((name) => scene.width(name))) + 12;
  const w = scene.right - x;
  const h = roomy ? 25 : 19;
  const spare = scene.bottom - scene.top - 6 * h - 75 - 19 * words.length;
  const split = !figuresIn(w / query.length) && figuresIn((2 * w) / query.length) && spare > 0;
  const perLine = split ? query.length / 2 : query.length;
  const size = figuresIn(w / perLine);
  let y = scene.top + h / 2 + (roomy ? 4 : 0);
  for (let from = 0; from < query.length; from += perLine) {
    lines.forEach(([of, row, role, label], i) => {
      const d = 0.2 * i;
      const name = { anchor: "end", cls: "strong", size: scene.small, d };
      scene.text(`name ${of} ${from}`, names[i], x - 8, y, name);
      const part = row.slice(from, from + perLine);
      cells(scene, `${of} ${from}`, role, part, x, y, w, h - 3, {
        ...{ most: span([row]), size, strong: of === "product", d },
        asks: [
          inHead(scene, of, { key, from }),
          split ? `${label}, from number ${from + 1}` : label,
        ],
      });
      y += h;
    });
    y += split ? 7 : 0;
  }
  const score = look.scores[asks][key];
  const total = `${roomy ? "the sum of these 16: " : "sum "}${two(sum(products))}`;
  scene.number("sum", `${total}, ÷ √${query.length} = ${two(score)}, the score`, scene.right, y, {
    ...{ cls: "strong", size: roomy ? 14.5 : 13, d: 0.6 },
    asks: [inHead(scene, "score", { key }), `the score: ${two(score)}`],
  });
  scores(scene, y + (roomy ? 30 : 20), key);
  scene.title(`the ${ORDINALS[head]} of four heads, first layer: 16 numbers each`);
}

/** Each word's score, and the share that softmax makes of it. */
function scores(scene, top, met) {
  const { told, roomy } = scene;
  const { words, asks, look, weights } = told;
  const heading = roomy ? 20 : 16;
  const most = roomy ? 48 : 36;
  const bottom = Math.min(scene.bottom, top + heading + most * words.length);
  const { y, pitch, up } = scene.rows(words.length, { top, heading, bottom, most });
  const size = Math.min(scene.sizeIn(pitch), roomy ? 15 : 13);
  const x = scene.left + scene.label(words, size);
  const figure = x + (roomy ? 80 : 56);
  const from = figure + (roomy ? 44 : 24);
  const room = scene.right - from - scene.width("> 99 %") - 12;
  const heads = ["softmax: e to the score, as a share of all", "softmax: the share", "share"];
  scene.text("h score", "score", figure, up, { anchor: "end" });
  scene.text("h share", scene.fitting(heads, scene.right - from), from, up);
  scene.words(words, x, y, { on: met, size, d: 0.5 });
  words.forEach((word, key) => {
    const more = { on: key === met, d: 0.7 + 0.04 * key };
    const score = two(look.scores[asks][key]);
    scene.number(`score ${key}`, score, figure, y[key], {
      ...{ ...more, row: pitch },
      asks: [inHead(scene, "score", { key }), `${words[asks]} asks ${word}: ${score}`],
    });
    scene.bar(key, weights[key], share(weights[key]), from, y[key], {
      ...{ ...more, role: "query", room, pitch },
      asks: shareOf(scene, key),
    });
  });
}

/**
 * On the left those that are asked, with their rows, named `rowName`; lines to those that ask, on the
 * right, each { word, weights, writes, at }: what it writes, if it does, is at the end of its line, and
 * the word behind that. The shares are those of the one whose `at` is `on`. On the left `masked` more
 * places are hatched; on the right `free` more have no word yet.
 */
export function sides(
  scene,
  { asked, rows, role, rowName = "row", rowAsks, asking, on, asks, lang = "en", ...room },
) {
  const { roomy, left: x } = scene;
  const { masked = 0, free = 0, bottom } = room;
  const heading = roomy ? 22 : 17;
  const left = scene.rows(asked.length + masked, { heading, bottom });
  const right = scene.rows(asking.length + free, { heading, bottom });
  const who = [...asking.map(({ word }) => word), "asks"];
  const writes = asking[0].writes && [...asking.map((each) => each.writes), "writes"];
  const labelsAt = (size) => [
    scene.label(asked, size),
    scene.label(writes ?? who, size),
    writes ? scene.label(who, 0.85 * size) + (roomy ? 34 : 16) : 0,
  ];
  const size = scene.shrunk(
    Math.min(scene.sizeIn(left.pitch), scene.sizeIn(right.pitch)),
    (each) => sum(labelsAt(each)) + (roomy ? 260 : 128),
  );
  const [label, last, behind] = labelsAt(size);
  const end = scene.right - behind - last;
  const figures = roomy ? 62 : 60;
  const between = end - 8 - x - label;
  const half = (roomy ? 0.45 : 0.5) * between;
  const broad = Math.min(260, Math.max(38, Math.min(between - figures - 6, half)));
  const start = end - 8 - broad;
  scene.text("h asked", "is asked", x + label, left.up, { anchor: "end" });
  scene.text("h end", writes ? "writes" : "asks", end, right.up, { cls: "strong" });
  if (writes) scene.text("h asks", "asks", scene.right, right.up, { anchor: "end" });

  scene.words(asked, x + label, left.y, { size, lang, key: lang === "en" ? "word" : "asked" });
  const [from, w] = [x + label + 10, start - figures - x - label - 12];
  const [h, most] = [Math.min(26, 0.5 * left.pitch), span(rows)];
  if (w > 12)
    rows.forEach((row, s) => {
      const more = { asks: rowAsks?.(s), row: left.pitch };
      scene.strip(`${rowName} ${s}`, role, strengths(row, most), from, left.y[s], w, h, more);
    });
  if (w > 12 && rowName === "memory") scene.frame(from, left, w);

  asking.forEach(({ word, writes, weights, at }, i) => {
    const [follow, y, d] = [at === on, right.y[i], 0.15];
    const more = { lang: writes ? "fr" : lang, d };
    scene.word(`${writes ? "writes" : "asks"} ${at}`, writes ?? word, end, y, {
      ...{ ...more, size, on: follow },
    });
    const behind = { ...more, anchor: "end", size: 0.85 * size, cls: follow ? "word" : "quiet" };
    if (writes) scene.text(`asks ${at}`, word, scene.right, y, behind);
    weights.forEach((w, s) => {
      if (w < 0.004 && !follow) return;
      const p = bend(start, left.y[s], end - 8, y);
      const o = follow ? 0.18 + 0.78 * w : 0.05 + 0.28 * w;
      const b = 0.6 + (roomy ? 13 : 8) * w;
      scene.add("path", `look ${at} ${s}`, { cls: "curve query", p, b, o, d });
      if (!follow) return;
      const best = w === Math.max(...weights);
      const number = { on: best, asks: asks?.(s), row: left.pitch, d: 0.3 };
      scene.number(`share ${s}`, share(w), start - 6, left.y[s], number);
    });
  });
  const high = Math.min(26, 0.72 * left.pitch);
  const empty = (k, cls, x, y, w) =>
    scene.add("rect", k, { cls, x, y: y - high / 2, w, h: high, r: 5, d: 0.2 });
  left.y.slice(asked.length).forEach((y, i) => empty(`masked ${i}`, "hatched", x, y, label));
  right.y.slice(asking.length).forEach((y, i) => empty(`free ${i}`, "slot", end, y, last));
  return { left, label, start, broad, end };
}

export function looks(scene) {
  const { words, asks, look, head, trace, width } = scene.told;
  const { y, pitch } = sides(scene, {
    asked: words,
    rows: trace.encoder[0].attention.x,
    role: "memory",
    rowAsks: (query) => [
      { of: "input", part: "source", query },
      `${words[query]}: the ${width} numbers that go in`,
    ],
    asking: words.map((word, at) => ({ word, weights: look.weights[at], at })),
    on: asks,
    asks: (key) => shareOf(scene, key),
  }).left;
  scene.chooses(y, pitch);
  scene.title(`the ${ORDINALS[head]} of four heads, first layer`);
}

export function average(scene) {
  const { told, roomy, small } = scene;
  const { words, asks, look, head, weights } = told;
  const n = words.length;
  const tall = roomy ? 30 : 26;
  const foot = tall + (roomy ? 20 : 14);
  const heading = roomy ? 22 : 17;
  const room = scene.bottom - scene.top - heading - foot;
  const least = Math.min(roomy ? 18 : 15, (0.85 * room) / n);
  const size = Math.min(roomy ? 17 : 14, least + 1);
  const x = scene.left + scene.label(words, size) + 10;
  const from = x + scene.width("0.00 ×", small) + 14;
  const large = roomy ? 18 : 14.5;
  const end = scene.right - Math.max(scene.label([words[asks]], large) + 10, roomy ? 92 : 52);
  const w = end - from;
  const cell = figuresIn(w / look.values[0].length);
  const most = span(look.values);
  const y = scene.bottom - tall / 2;
  const up = scene.top + heading / 2 - 3;
  const what = roomy ? "value: 16 numbers that each word has to offer" : "value: 16 numbers";
  scene.text("h share", "share", from - 10, up, { anchor: "end" });
  scene.text("h value", what, from, up);
  let top = scene.top + heading;
  const middles = words.map((word, key) => {
    const share = weights[key];
    const h = least + (room - n * least) * share;
    const middle = top + h / 2;
    scene.number(`share ${key}`, `${two(share)} ×`, from - 8, middle, {
      ...{ size: Math.min(small, least), on: share === Math.max(...weights), row: h, d: 0.1 },
      asks: shareOf(scene, key),
    });
    cells(scene, `value ${key}`, "value", look.values[key], from, middle, w, h - 2, {
      ...{ most, size: Math.min(cell, 0.74 * least), d: 0.15 + 0.04 * key },
      asks: [inHead(scene, "value", { key }), `the value of ${word}`],
    });
    scene.add("path", `home ${key}`, {
      cls: "curve query",
      p: bend(end + 3, middle, scene.right - (roomy ? 20 : 12), y - tall / 2 - 4),
      ...{ b: 0.6 + (roomy ? 15 : 9) * share, o: 0.2 + 0.7 * share, d: 0.5 },
    });
    top += h;
    return middle;
  });
  scene.words(words, x - 10, middles, { size });
  scene.text("equals", "=", from - 10, y, { anchor: "end", cls: "strong", size: 17, d: 0.6 });
  cells(scene, `taken ${asks}`, "value", look.taken[asks], from, y, w, tall, {
    ...{ most, size: cell, strong: true, d: 0.6 },
    asks: [inHead(scene, "taken"), `what ${words[asks]} takes home`],
  });
  scene.word(`asks ${asks}`, words[asks], scene.right, y, { anchor: "end", size: large, on: true });
  scene.title(`what “${words[asks]}” takes home from the ${ORDINALS[head]} head`);
}
