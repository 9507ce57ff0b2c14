// The second act: one question meets one key, who looks at whom, and the average. Whoever asks is on
// the right, in the decoder as well.

import { order, sum } from "../../numbers.js";
import { ORDINALS, share, span, strengths, two } from "../scene.js";

/** A row of numbers that are written into their cells. */
function cells(scene, [x, y, w, h], role, row, { name, most, size, asks, bold = false, delay }) {
  const soft = strengths(row, most).map((each) => (role === "plain" ? 0.3 : 0.62) * each);
  scene.strip(x, y, w, h, role, soft, { name, asks, delay, row: h + 2 });
  if (!size) return;
  const cell = w / row.length;
  const look = { anchor: "middle", size, bold, quiet: false, delay };
  row.forEach((value, i) => {
    scene.text(x + cell * (i + 0.5), y, two(value), { name: `${name} ${i}`, ...look });
  });
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
      const delay = 0.2 * i;
      const name = { anchor: "end", bold: true, size: scene.small, delay };
      scene.text(x - 8, y, names[i], { name: `name ${of} ${from}`, ...name });
      const part = row.slice(from, from + perLine);
      cells(scene, [x, y, w, h - 3], role, part, {
        ...{ name: `${of} ${from}`, most: span([row]), size, bold: of === "product", delay },
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
  scene.number(scene.right, y, `${total}, ÷ √${query.length} = ${two(score)}, the score`, {
    ...{ name: "sum", bold: true, size: roomy ? 14.5 : 13, delay: 0.6 },
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
  scene.text(figure, up, "score", { name: "h score", anchor: "end" });
  scene.text(from, up, scene.fitting(heads, scene.right - from), { name: "h share" });
  scene.words(words, x, y, { on: met, size, delay: 0.5 });
  words.forEach((word, key) => {
    const more = { bold: key === met, delay: 0.7 + 0.04 * key };
    const score = two(look.scores[asks][key]);
    scene.number(figure, y[key], score, {
      ...{ ...more, name: `score ${key}`, row: pitch },
      asks: [inHead(scene, "score", { key }), `${words[asks]} asks ${word}: ${score}`],
    });
    scene.bar(from, y[key], weights[key], share(weights[key]), {
      ...{ ...more, name: key, role: "query", room, pitch },
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
  scene.text(x + label, left.up, "is asked", { name: "h asked", anchor: "end" });
  scene.text(end, right.up, writes ? "writes" : "asks", { name: "h end", bold: true });
  if (writes) scene.text(scene.right, right.up, "asks", { name: "h asks", anchor: "end" });

  scene.words(asked, x + label, left.y, { size, lang, key: lang === "en" ? "word" : "asked" });
  const [from, w] = [x + label + 10, start - figures - x - label - 12];
  const [h, most] = [Math.min(26, 0.5 * left.pitch), span(rows)];
  if (w > 12)
    rows.forEach((row, s) => {
      const more = { name: `${rowName} ${s}`, asks: rowAsks?.(s), row: left.pitch };
      scene.strip(from, left.y[s], w, h, role, strengths(row, most), more);
    });
  if (w > 12 && rowName === "memory") scene.frame(from, left, w);

  asking.forEach(({ word, writes, weights, at }, i) => {
    const [follow, y, delay] = [at === on, right.y[i], 0.15];
    const more = { lang: writes ? "fr" : lang, delay };
    const name = `${writes ? "writes" : "asks"} ${at}`;
    scene.word(end, y, writes ?? word, { name, ...more, size, on: follow });
    const behind = { ...more, anchor: "end", size: 0.85 * size, quiet: !follow };
    if (writes) scene.text(scene.right, y, word, { name: `asks ${at}`, ...behind });
    weights.forEach((w, s) => {
      if (w < 0.004 && !follow) return;
      const opacity = follow ? 0.18 + 0.78 * w : 0.05 + 0.28 * w;
      const width = 0.6 + (roomy ? 13 : 8) * w;
      const look = { name: `look ${at} ${s}`, width, opacity, delay };
      scene.curve(start, left.y[s], end - 8, y, look);
      if (!follow) return;
      const best = w === Math.max(...weights);
      const number = { bold: best, asks: asks?.(s), row: left.pitch, delay: 0.3 };
      scene.number(start - 6, left.y[s], share(w), { name: `share ${s}`, ...number });
    });
  });
  const high = Math.min(26, 0.72 * left.pitch);
  const look = { rx: 5, delay: 0.2 };
  left.y.slice(asked.length).forEach((y, i) => {
    const masked = { name: `masked ${i}`, class: "hatched" };
    scene.rect(x, y - high / 2, label, high, { ...masked, ...look });
  });
  right.y.slice(asking.length).forEach((y, i) => {
    const free = { name: `free ${i}`, strength: 0, dashed: "3 3" };
    scene.box(end, y - high / 2, last, high, "plain", { ...free, ...look });
  });
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
  scene.text(from - 10, up, "share", { name: "h share", anchor: "end" });
  scene.text(from, up, what, { name: "h value" });
  let top = scene.top + heading;
  const middles = words.map((word, key) => {
    const share = weights[key];
    const h = least + (room - n * least) * share;
    const middle = top + h / 2;
    scene.number(from - 8, middle, `${two(share)} ×`, {
      ...{ name: `share ${key}`, bold: share === Math.max(...weights), row: h, delay: 0.1 },
      size: Math.min(small, least),
      asks: shareOf(scene, key),
    });
    cells(scene, [from, middle, w, h - 2], "value", look.values[key], {
      ...{ name: `value ${key}`, most, size: Math.min(cell, 0.74 * least) },
      delay: 0.15 + 0.04 * key,
      asks: [inHead(scene, "value", { key }), `the value of ${word}`],
    });
    const width = 0.6 + (roomy ? 15 : 9) * share;
    scene.curve(end + 3, middle, scene.right - (roomy ? 20 : 12), y - tall / 2 - 4, {
      ...{ name: `home ${key}`, width, opacity: 0.2 + 0.7 * share, delay: 0.5 },
    });
    top += h;
    return middle;
  });
  scene.words(words, x - 10, middles, { size });
  const right = { anchor: "end", bold: true };
  scene.text(from - 10, y, "=", { name: "equals", ...right, size: 17, delay: 0.6 });
  cells(scene, [from, y, w, tall], "value", look.taken[asks], {
    ...{ name: `taken ${asks}`, most, size: cell, bold: true, delay: 0.6 },
    asks: [inHead(scene, "taken"), `what ${words[asks]} takes home`],
  });
  const home = { name: `asks ${asks}`, lang: "en", size: large };
  scene.text(scene.right, y, words[asks], { ...home, ...right });
  scene.title(`what “${words[asks]}” takes home from the ${ORDINALS[head]} head`);
}
