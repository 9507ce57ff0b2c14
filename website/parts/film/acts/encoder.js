// The third act: each row by itself, and layer upon layer until the memory.

import { meanLook } from "../moves.js";
import { bend, span, strengths } from "../scene.js";

const firstAlive = (row) =>
  Math.max(
    0,
    row.findIndex((value) => value > 0),
  );

export function alone(scene) {
  const { told, roomy } = scene;
  const { words, asks, trace, alive } = told;
  const { x: ins, hidden, out, sum } = trace.encoder[0].feedForward;
  const n = words.length;
  const heading = roomy ? 20 : 16;
  const below = Math.min(n * (roomy ? 30 : 24), 0.5 * (scene.bottom - scene.top));
  const lines = [
    ["in", "memory", ins, "in", `${ins[0].length} numbers`],
    [
      "middle",
      "plain",
      hidden,
      "middle",
      `${hidden[0].length}, of which ${alive[asks]} above zero`,
    ],
    ["out", "value", out, "out", `${out[0].length}, to be added`],
    ["sum", "memory", sum, "in + out", "the row that goes on"],
  ];
  const top = scene.rows(lines.length, {
    bottom: scene.bottom - below - heading - (roomy ? 10 : 4),
    most: roomy ? 64 : 52,
  });
  const label = Math.max(
    ...lines.map(([, , , name]) => scene.width(name, roomy ? 15 : 13)),
    scene.label(words, scene.sizeIn(below / n)),
  );
  const x = scene.left + label + (roomy ? 16 : 9);
  const w = scene.right - x;
  const most = span([...ins, ...sum]);
  const inner = span(hidden);
  const live = (row) =>
    Array.from(row, (value) => (value > 0 ? Math.min(1, 0.25 + (0.75 * value) / inner) : 0.05));
  const h = Math.min(26, 0.5 * top.pitch);
  const small = Math.min(scene.small, 0.36 * top.pitch);
  lines.forEach(([k, role, rows, name, what], i) => {
    const y = top.y[i];
    const wide = k === "middle" ? w : w / 2;
    const start = x + (w - wide) / 2;
    const row =
      k === "middle" ? live(rows[asks]) : strengths(rows[asks], k === "out" ? span(out) : most);
    const address = {
      of: { in: "sum", middle: "hidden" }[k] ?? k,
      part: k === "in" ? "encoder" : "encoder-feed",
      layer: 0,
      query: asks,
    };
    scene.text(`name ${k}`, name, x - (roomy ? 16 : 9), y, {
      anchor: "end",
      cls: "strong",
      size: roomy ? 15 : 13,
    });
    scene.strip(k, role, row, start, y, wide, h, {
      d: 0.2 * i,
      asks: [
        address,
        `${words[asks]}: ${name}, ${what}`,
        k === "middle" ? firstAlive(rows[asks]) : 0,
      ],
    });
    scene.text(`what ${k}`, what, start, y + h / 2 + small * 0.75, { size: small, d: 0.2 * i });
  });
  const all = scene.rows(n, { top: scene.bottom - below, most: below / n });
  const size = Math.min(scene.sizeIn(all.pitch), roomy ? 15 : 13);
  const figures = scene.width("000", scene.small) + 8;
  scene.text(
    "h all",
    roomy ? "the middle of every word, and how many are above zero" : "the middle of every word",
    x,
    scene.bottom - below - heading / 2,
  );
  scene.chooses(all.y, all.pitch);
  words.forEach((word, t) => {
    const on = t === asks;
    scene.word(`word ${t}`, word, x - (roomy ? 16 : 9), all.y[t], { anchor: "end", size, on });
    scene.strip(
      `hidden ${t}`,
      "plain",
      live(hidden[t]),
      x,
      all.y[t],
      w - figures,
      0.6 * all.pitch,
      {
        ...{ d: 0.5 + 0.04 * t },
        asks: [
          { of: "hidden", part: "encoder-feed", layer: 0, query: t },
          `${word}: ${alive[t]} of ${hidden[t].length} above zero`,
          firstAlive(hidden[t]),
        ],
      },
    );
    scene.text(`alive ${t}`, String(alive[t]), scene.right, all.y[t], {
      anchor: "end",
      cls: on ? "number strong" : "number",
      d: 0.5,
    });
  });
  scene.title(
    `“${words[asks]}” in the feed-forward network, first layer`,
    `“${words[asks]}” by itself`,
  );
}

export function memory(scene) {
  const { told, roomy } = scene;
  const { words, asks, trace } = told;
  const heading = roomy ? 24 : 18;
  const { y, pitch } = scene.rows(words.length, {
    top: scene.top + heading,
    most: roomy ? 78 : 64,
  });
  const size = scene.sizeIn(pitch);
  const label = scene.label(words, size);
  const x = scene.left + label + (roomy ? 14 : 8);
  const gap = roomy ? 92 : 40;
  const w = (scene.right - 8 - x - 2 * gap) / 3;
  const h = Math.min(0.5 * pitch, 30);
  const columns = [
    [
      "in",
      roomy ? "what goes in" : "goes in",
      trace.encoder[0].attention.x,
      { of: "input", part: "source" },
    ],
    [
      "one",
      roomy ? "after the first layer" : "first layer",
      trace.encoder[0].feedForward.sum,
      { of: "sum", part: "encoder-feed", layer: 0 },
    ],
    ["two", roomy ? "the memory" : "memory", trace.memory, { of: "memory" }],
  ];
  scene.chooses(y, pitch);
  const from = reached(trace, asks);
  columns.forEach(([k, name, rows, address], c) => {
    const start = x + c * (w + gap);
    const most = span(rows);
    scene.text(`h ${k}`, name, start + w / 2, y[0] - pitch / 2 - heading / 2 + 2, {
      anchor: "middle",
      cls: c === 2 ? "strong" : "quiet",
      size: scene.fit([name], w + gap - 8, scene.small),
      d: 0.25 * c,
    });
    words.forEach((word, t) => {
      const used = c === 2 ? (t === asks ? 1 : 0) : from[c][t];
      scene.strip(`${k} ${t}`, "memory", strengths(rows[t], most), start, y[t], w, h, {
        ...{ o: 0.35 + 0.65 * Math.min(1, 2 * used), d: 0.25 * c + 0.04 * t },
        asks: [{ ...address, query: t }, `${word}: ${name}`],
      });
      if (c === 0) return;
      meanLook(trace.encoder[c - 1].attention, t).forEach((share, s) => {
        const weight = c === 2 ? (t === asks ? share : 0) : share * from[1][t];
        scene.add("path", `look ${c} ${t} ${s}`, {
          ...{
            cls: `curve query${weight > 0.05 ? " on" : ""}`,
            p: bend(start - gap + 4, y[s], start - 4, y[t]),
          },
          ...{
            b: 0.6 + (roomy ? 12 : 7) * weight,
            o: weight > 0 ? 0.2 + 0.7 * weight : 0.07,
            d: 0.3 * c,
          },
        });
      });
    });
    if (c === 2)
      scene.add("rect", "memory frame", {
        cls: "frame memory",
        x: start - 6,
        y: y[0] - pitch / 2 + 1,
        w: w + 12,
        h: pitch * words.length - 2,
        r: 6,
        d: 0.6,
      });
  });
  words.forEach((word, t) =>
    scene.word(`word ${t}`, word, scene.left + label, y[t], {
      anchor: "end",
      size,
      on: t === asks,
    }),
  );
  scene.title("lines: the mean of a layer’s four heads");
}

/** How much of each row, before the first layer and after it, the looks of `asks` lead back to. */
function reached(trace, asks) {
  const one = meanLook(trace.encoder[1].attention, asks);
  const none = one.map(() => 0);
  const before = one.reduce((all, share, t) => {
    const looks = meanLook(trace.encoder[0].attention, t);
    return all.map((sum, s) => sum + share * looks[s]);
  }, none);
  const own = (all) => all.map((share, t) => (t === asks ? 1 : share)); // its own row goes on, too
  return [own(before), own(one)];
}
