// The first act: from words to the rows of numbers that go in.

import { bend, span, strengths, two } from "../scene.js";

/** As many entries of the list as there is room for: those of the sentence and their neighbours. */
function excerpt(ids, size, room) {
  const lines = (reach) => {
    const near = new Set();
    for (const id of ids)
      for (let i = id - reach; i <= id + reach; i++) if (i >= 0 && i < size) near.add(i);
    const sorted = [...near].sort((a, b) => a - b);
    return sorted
      .flatMap((id, i) => ((i === 0 ? id > 0 : id > sorted[i - 1] + 1) ? [null, id] : [id]))
      .concat(sorted.at(-1) < size - 1 ? [null] : []);
  };
  let best = lines(0);
  for (let reach = 1; lines(reach).length <= room && reach < 4; reach++) best = lines(reach);
  return best;
}

/** The model's list of words on the right, and a line to each word's entry. */
function list(scene, { w, row }) {
  const { words, ids, entries, asks } = scene.told;
  const h = scene.bottom - scene.top;
  const place = { x: scene.right - w, y: scene.top, w, h };
  const size = scene.roomy ? 13 : 11.5;
  const lines = excerpt(
    ids,
    entries.length,
    Math.floor((h - 8) / (size * (scene.roomy ? 1.45 : 1.4))),
  );
  const pitch = (h - 8) / lines.length;
  const middle = new Map();
  scene.add("rect", "list", { cls: "box", ...place, r: 6 });
  lines.forEach((id, i) => {
    const y = place.y + 4 + pitch * (i + 0.5);
    if (id === null) {
      const dots = [-3.5, 0, 3.5].flatMap((dy) => [
        place.x + w * 0.3,
        y + Math.min(1, pitch / 12) * dy,
      ]);
      for (let j = 0; j < 3; j++)
        scene.add("rect", `dots ${i} ${j}`, {
          cls: "dot",
          x: dots[2 * j] - 1,
          y: dots[2 * j + 1] - 1,
          w: 2,
          h: 2,
          r: 1,
        });
      return;
    }
    middle.set(id, y);
    row(id, y, { ...place, pitch, size: Math.min(size, 0.9 * pitch) });
  });
  return { place, y: words.map((_, t) => middle.get(ids[t])), on: ids[asks] };
}

function ways(scene, from, y, { place, y: to }) {
  const { words, asks } = scene.told;
  words.forEach((_, t) =>
    scene.add("path", `way ${t}`, {
      ...{ cls: `curve word${t === asks ? " on" : ""}`, b: t === asks ? 2.2 : 1.3 },
      p: bend(from, y[t], place.x, to[t]),
      d: 0.2 + 0.06 * t,
    }),
  );
}

function wordsWithNumbers(scene) {
  const { words, ids, asks } = scene.told;
  const { y, pitch } = scene.rows(words.length);
  const size = scene.sizeIn(pitch);
  const x = scene.left + scene.label(words, size);
  scene.chooses(y, pitch);
  const number = x + (scene.roomy ? 64 : 38);
  words.forEach((word, t) => {
    const on = t === asks;
    scene.word(`word ${t}`, word, x, y[t], { anchor: "end", size, on });
    scene.number(`id ${t}`, String(ids[t]), number, y[t], {
      asks: [{ of: "id", query: t }, `${word} is number ${ids[t]}`],
      size: Math.min(size, 15),
      cls: on ? "number strong" : "number",
      d: 0.3 + 0.06 * t,
    });
  });
  return { y, pitch, x, from: number + 8 };
}

export function numbers(scene) {
  const { entries, ids } = scene.told;
  const { y, from } = wordsWithNumbers(scene);
  const shown = list(scene, {
    w: scene.roomy ? 190 : 122,
    row(id, middle, { x, w, size }) {
      const more = { size, cls: ids.includes(id) ? "number strong" : "number" };
      scene.text(`entry ${id}`, String(id), x + 0.3 * w, middle, { ...more, anchor: "end" });
      scene.text(`entry word ${id}`, entries[id], x + 0.3 * w + 9, middle, { ...more, lang: "en" });
    },
  });
  ways(scene, from, y, shown);
  scene.title(`each word’s number in the model’s list of ${entries.length}`);
}

export function rows(scene) {
  const { entries, ids, trace, words, asks, width, table } = scene.told;
  const { y, pitch, from } = wordsWithNumbers(scene);
  const most = span(trace.embedded);
  const w = scene.roomy ? 190 : 96;
  const shown = list(scene, {
    w,
    row(id, middle, { x, w, pitch, size }) {
      const own = ids.includes(id);
      const edge = scene.roomy ? 38 : 27;
      scene.text(`entry ${id}`, String(id), x + edge, middle, {
        size,
        anchor: "end",
        cls: own ? "number strong" : "number",
      });
      scene.strip(
        `table ${id}`,
        own ? "word" : "word pale",
        strengths(table(id), most),
        x + edge + 6,
        middle,
        w - edge - 12,
        0.62 * pitch,
      );
    },
  });
  const gap = scene.roomy ? 96 : 46;
  const end = shown.place.x - gap;
  const h = Math.min(0.5 * pitch, 28);
  words.forEach((word, t) =>
    scene.strip(`row ${t}`, "word", strengths(trace.embedded[t], most), from, y[t], end - from, h, {
      ...{ d: 0.25 + 0.08 * t, from: [gap, shown.y[t] - y[t]] },
      asks: [{ of: "embedding", part: "source", query: t }, `${word}: its row of ${width} numbers`],
    }),
  );
  ways(scene, end + 5, y, shown);
  const count = Math.floor((end - from) / 52);
  const first = Array.from(trace.embedded[asks].slice(0, count), two).join("  ");
  if (pitch > 44 && count > 2)
    scene.text(`first ${asks}`, `${first} …`, from, y[asks] + h / 2 + 11, {
      size: 12,
      cls: "number",
      d: 0.6,
    });
  scene.title(
    `the table on the right has ${entries.length} rows of ${width} numbers`,
    `${entries.length} rows of ${width} numbers`,
  );
}

export function places(scene) {
  const { trace, words, asks } = scene.told;
  const sums = trace.encoder[0].attention.x;
  const { y, pitch } = scene.rows(words.length, { most: scene.roomy ? 90 : 66 });
  const size = scene.sizeIn(pitch);
  const x = scene.left + scene.label(words, size) + (scene.roomy ? 14 : 8);
  scene.chooses(y, pitch);
  const small = scene.roomy ? 12.5 : 11;
  const step = 0.29 * pitch;
  const figures = step >= small * 1.02;
  const plus = (t) => (scene.roomy ? `place ${t}:  + ` : "+ ");
  const from = x + (figures ? scene.width(`${plus(0)}−0.00`, small) + 16 : 4);
  const most = span(sums);
  const parts = [
    ["row", "word", trace.embedded, most, () => "", "embedding", "its row of the table"],
    ["place", "position", trace.positions, 2, plus, "position", "the row of its place"],
    ["sum", "memory", sums, most, () => "= ", "input", "the row that goes in"],
  ];
  words.forEach((word, t) => {
    scene.word(`word ${t}`, word, x - (scene.roomy ? 14 : 8), y[t], {
      anchor: "end",
      size,
      on: t === asks,
    });
    parts.forEach(([k, role, all, most, sign, of, what], i) => {
      const middle = y[t] + step * (i - 1);
      const d = i === 0 ? 0 : 0.25 * i + 0.04 * t;
      const address = { of, part: "source", query: t };
      scene.strip(
        `${k} ${t}`,
        role,
        strengths(all[t], most),
        from,
        middle,
        scene.right - from,
        0.84 * step,
        {
          ...{ d, asks: [address, `${word}: ${what}`] },
          ...(k === "place" ? { from: [40, 0] } : {}),
        },
      );
      if (figures)
        scene.number(`first ${k} ${t}`, sign(t) + two(all[t][0]), from - 7, middle, {
          size: small,
          cls: t === asks ? "number strong" : "number",
          asks: [address, `${word}: ${what} begins with ${two(all[t][0])}`],
          d,
        });
    });
  });
  scene.title(
    figures ? "word + place = what goes in; in figures, the first number" : "",
    "word + place = the row that goes in",
  );
}
