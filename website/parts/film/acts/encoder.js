// The third act: each row by itself, and layer upon layer until the memory.

import { meanLook } from "../moves.js";
import { span, strengths } from "../scene.js";

export function alone(scene) {
  const { told, roomy } = scene;
  const { words, asks, trace, alive } = told;
  const [{ attention, feedForward }] = trace.encoder;
  const word = words[asks];
  const middle = feedForward.hidden[asks];
  const inner = span(feedForward.hidden);
  const live = (value) => (value > 0 ? Math.min(1, 0.25 + (0.75 * value) / inner) : 0.05);
  const most = span([...attention.x, ...feedForward.sum]);
  const n = attention.x[0].length;
  const row = (all) => strengths(all[asks], most);
  const added = (all) => strengths(all[asks], span(all));
  const lines = [
    ["input", "memory", row(attention.x), word, `its ${n} numbers that went in`, "source"],
    ["out", "value", added(attention.out), "+", "what the heads bring", "encoder"],
    ["sum", "memory", row(attention.sum), "=", "it has moved", "encoder"],
    [
      "hidden",
      "plain",
      Array.from(middle, live),
      "→",
      `${middle.length}, ${alive[asks]} above zero`,
    ],
    ["out", "value", added(feedForward.out), "+", `${n} numbers made of these`],
    ["sum", "memory", row(feedForward.sum), "=", "the row that goes on"],
  ];
  const { y, pitch } = scene.rows(lines.length, { most: roomy ? 110 : 84 });
  const size = roomy ? 15 : 13;
  const gap = roomy ? 16 : 9;
  const x = scene.left + scene.width(word, size) + gap;
  const cell = (scene.right - x) / middle.length;
  const h = Math.min(34, 0.42 * pitch);
  lines.forEach(([of, role, cells, name, what, part = "encoder-feed"], i) => {
    const w = cell * cells.length;
    const start = x + (scene.right - x - w) / 2;
    const more = { bold: true, anchor: "end", size };
    scene.text(x - gap, y[i], name, { name: i ? `name ${i}` : `word ${asks}`, ...more });
    const first = of === "hidden" && alive[asks] ? middle.findIndex((value) => value > 0) : 0;
    const address = { of, part, layer: 0, query: asks };
    const asked = [address, `${word}: ${what}`, first];
    const delay = 0.2 * i;
    scene.strip(start, y[i], w, h, role, cells, { name: `alone ${i}`, asks: asked, delay });
    const under = y[i] + h / 2 + 0.8 * scene.small;
    scene.text(start, under, what, { name: `what ${i}`, delay });
  });
  scene.title(`what is added to “${word}” in the first layer`, `“${word}” by itself`);
}

export function memory(scene) {
  const { told, roomy } = scene;
  const { words, asks, trace } = told;
  const [one] = trace.encoder;
  const heading = roomy ? 24 : 18;
  const rows = scene.rows(words.length, { heading, most: roomy ? 78 : 64 });
  const { y, pitch, up } = rows;
  const size = scene.sizeIn(pitch);
  const label = scene.left + scene.label(words, size);
  const gap = roomy ? 92 : 40;
  const x = label + (roomy ? 14 : 8);
  const w = (scene.right - 8 - x - 2 * gap) / 3;
  const h = Math.min(0.5 * pitch, 30);
  const names = roomy
    ? ["what goes in", "after the first layer", "the memory"]
    : ["goes in", "first layer", "memory"];
  const columns = [
    ["row", one.attention.x, { of: "input", part: "source" }],
    ["one", one.feedForward.sum, { of: "sum", part: "encoder-feed", layer: 0 }],
    ["memory", trace.memory, { of: "memory" }],
  ];
  scene.chooses(y, pitch);
  columns.forEach(([k, all, address], c) => {
    const start = x + c * (w + gap);
    const most = span(all);
    const small = scene.fit([names[c]], w + gap - 8, scene.small);
    const head = { anchor: "middle", size: small, bold: k === "memory", delay: 0.25 * c };
    scene.text(start + w / 2, up, names[c], { name: `h ${k}`, ...head });
    words.forEach((word, query) => {
      const asked = [{ ...address, query }, `${word}: ${names[c]}`];
      const more = { delay: 0.25 * c + 0.04 * query, asks: asked, row: pitch };
      const row = strengths(all[query], most);
      scene.strip(start, y[query], w, h, "memory", row, { name: `${k} ${query}`, ...more });
    });
  });
  const lines = (layer, t, strong) =>
    meanLook(trace.encoder[layer].attention, t).forEach((share, s) => {
      const start = x + layer * (w + gap) + w + 4;
      scene.curve(start, y[s], start + gap - 8, y[t], {
        name: `look ${layer} ${t} ${s}`,
        width: 0.6 + (roomy ? 12 : 7) * share,
        opacity: strong ? 0.2 + 0.7 * share : 0.04 + 0.2 * share,
        delay: 0.3 * (layer + 1),
      });
    });
  words.forEach((_, t) => lines(0, t, t === asks));
  lines(1, asks, true);
  scene.frame(x + 2 * (w + gap), rows, w, 0.6);
  scene.words(words, label, y, { on: asks, size });
  scene.title("lines: the mean of a layer’s four heads");
}
