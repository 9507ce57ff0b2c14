// The second act: one question meets one key, who looks at whom, and the average. Whoever asks is on
// the right, in the decoder as well.

import { order } from "../../numbers.js";
import { bend, ORDINALS, share, signed, span, straight, strengths, two } from "../scene.js";

/** A row of numbers that are written into their cells. */
function cells(scene, k, role, row, x, y, w, h, { most, size, asks, strong = false, d = 0 }) {
  const soft = strengths(row, most).map((each) => (role === "plain" ? 0.3 : 0.62) * each);
  scene.strip(k, role, soft, x, y, w, h, { asks, d });
  if (!size) return;
  const cell = w / row.length;
  Array.from(row, (value, i) =>
    scene.text(`${k} ${i}`, two(value), x + cell * (i + 0.5), y, {
      anchor: "middle",
      size,
      cls: strong ? "on-cell strong" : "on-cell",
      d,
    }),
  );
}

/** The size of figures in a cell so wide, or none where they do not fit. */
const figuresIn = (cell) => (cell >= 36 ? Math.min(12.5, Math.max(11, 0.28 * cell)) : 0);

export function meet(scene) {
  const { told, roomy } = scene;
  const { words, asks, look, head, weights } = told;
  const met = order(weights)[0];
  const [query, key] = [look.queries[asks], look.keys[met]];
  const products = query.map((value, i) => value * key[i]);
  const share1 = (of, more) => ({ of, part: "encoder", layer: 0, head, ...more });
  const lines = [
    [
      "q",
      "query",
      query,
      roomy ? `${words[asks]}’s query` : "query",
      [share1("query", { query: asks }), `the query of ${words[asks]}`],
    ],
    [
      "k",
      "key",
      key,
      roomy ? `${words[met]}’s key` : "key",
      [share1("key", { key: met }), `the key of ${words[met]}`],
    ],
    [
      ...["p", "plain", products, roomy ? "multiplied" : "×"],
      [share1("product", { query: asks, key: met }), "query times key"],
    ],
  ];
  const label = Math.max(...lines.map(([, , , name]) => scene.width(name))) + 12;
  const x = scene.left + label;
  const w = scene.right - x;
  const h = roomy ? 25 : 19;
  const spare = scene.bottom - scene.top - 6 * h - 75 - 19 * words.length;
  const split = !figuresIn(w / query.length) && figuresIn((2 * w) / query.length) && spare > 0;
  const perLine = split ? query.length / 2 : query.length;
  const most = { q: span([query]), k: span([key]), p: span([products]) };
  let y = scene.top + h / 2 + (roomy ? 4 : 0);
  for (let from = 0; from < query.length; from += perLine) {
    lines.forEach(([k, role, row, name, asked], i) => {
      const part = row.slice(from, from + perLine);
      const size = figuresIn(w / perLine);
      const strong = k === "p";
      scene.text(`name ${k}${from}`, name, x - 8, y, {
        anchor: "end",
        cls: "strong",
        size: roomy ? 13 : 12,
        d: 0.2 * i,
      });
      cells(scene, `${k}${from}`, role, part, x, y, w, h - 3, {
        most: most[k],
        size,
        strong,
        d: 0.2 * i,
        asks: [{ ...asked[0], from }, `${asked[1]}${split ? `, from number ${from + 1} on` : ""}`],
      });
      y += h;
    });
    y += split ? 7 : 0;
  }
  const total = products.reduce((sum, each) => sum + each, 0);
  const score = look.scores[asks][met];
  const sum = `${roomy ? "the sum of these 16: " : "sum "}${two(total)}, ÷ √${query.length} = ${two(score)}, the score`;
  scene.number("sum", sum, scene.right, y + (roomy ? 6 : 0), {
    cls: "strong",
    size: roomy ? 14.5 : 13,
    asks: [share1("score", { query: asks, key: met }), `the score: ${two(score)}`],
    d: 0.6,
  });
  scores(scene, y + (roomy ? 34 : 20), met);
  scene.title(`the ${ORDINALS[head]} of four heads, first layer: 16 numbers each`);
}

/** Each word's score, and the share that softmax makes of it. */
function scores(scene, top, met) {
  const { told, roomy } = scene;
  const { words, asks, look, head, weights } = told;
  const heading = roomy ? 20 : 16;
  const most = roomy ? 48 : 36;
  const bottom = Math.min(scene.bottom, top + heading + most * words.length);
  const { y, pitch } = scene.rows(words.length, { top: top + heading, bottom, most });
  const size = Math.min(scene.sizeIn(pitch), roomy ? 15 : 13);
  const all = look.scores[asks];
  const x = scene.left + scene.label(words, size);
  const figure = x + (roomy ? 62 : 46);
  const low = Math.min(0, ...all);
  const high = Math.max(0.1, ...all);
  const half = (scene.right - figure) * (roomy ? 0.48 : 0.44);
  const zero = figure + 10 + (half - 16) * (-low / (high - low));
  const unit = (half - 16) / (high - low);
  const from = figure + half + (roomy ? 34 : 14);
  const room = scene.right - from - (roomy ? 56 : 46);
  const tall = Math.min(0.55 * pitch, 16);
  const up = y[0] - pitch / 2 - heading / 2 + 2;
  const small = Math.min(scene.small, 12.5);
  scene.text("h score", "score", figure, up, { anchor: "end", size: small });
  scene.text(
    "h share",
    scene.fitting(
      ["softmax: e to the score, as a share of all", "softmax: the share", "share"],
      scene.right - from,
      small,
    ),
    from,
    up,
    { size: small },
  );
  scene.add("path", "zero", {
    cls: "axis",
    p: straight([zero, y[0] - pitch / 2, zero, y.at(-1) + pitch / 2]),
  });
  words.forEach((word, s) => {
    const on = s === met;
    const d = 0.7 + 0.04 * s;
    const cls = on ? "number strong" : "number";
    const asked = (of) => [
      { of, part: "encoder", layer: 0, head, query: asks, key: s },
      `${words[asks]} asks ${word}: ${of === "score" ? two(all[s]) : share(weights[s])}`,
    ];
    scene.word(`key ${s}`, word, x, y[s], { anchor: "end", size, on, d: 0.5 });
    scene.number(`score ${s}`, two(all[s]), figure, y[s], { cls, asks: asked("score"), d });
    scene.add("rect", `score bar ${s}`, {
      cls: "fill plain",
      layer: "cell",
      x: zero + Math.min(0, all[s] * unit),
      y: y[s] - tall / 2,
      w: Math.max(1, Math.abs(all[s]) * unit),
      h: tall,
      r: 2,
      d,
    });
    scene.add("rect", `share bar ${s}`, {
      cls: "fill query",
      layer: "cell",
      x: from,
      y: y[s] - tall / 2,
      w: Math.max(1, room * weights[s]),
      h: tall,
      r: 2,
      d: d + 0.3,
    });
    scene.number(`share ${s}`, share(weights[s]), from + Math.max(1, room * weights[s]) + 7, y[s], {
      anchor: "start",
      cls,
      asks: asked("share"),
      d: d + 0.3,
    });
  });
}

/**
 * On the left those that are asked, with their rows; lines to those that ask, on the right.
 * `weights[t][s]`, `on` is the one whose shares are written; `masked` places are hatched; `free` are
 * places on the right where no word is yet.
 */
export function fan(
  scene,
  { asked, asking, weights, on, rows, role, lang, asks, rowAsks, masked = 0, chooses = false },
) {
  const { roomy } = scene;
  const n = asked.length + masked;
  const heading = roomy ? 22 : 16;
  const { y, pitch } = scene.rows(n, { top: scene.top + heading });
  const figures = roomy ? 56 : 46;
  const broad = roomy ? 230 : scene.S.w < 340 ? 60 : 88;
  const size = scene.shrunk(
    scene.sizeIn(pitch),
    (each) => scene.label(asked, each) + scene.label(asking, each) + figures + broad + 38,
  );
  const left = scene.label(asked, size);
  const right = scene.label(asking, size);
  const end = scene.right - right - 8;
  const start = end - broad;
  const word = start - figures;
  const strip = word - left - 12 - scene.left;
  const most = span(rows);
  if (chooses) scene.chooses(y, pitch);
  const up = y[0] - pitch / 2 - heading / 2;
  scene.text("h asked", "is asked", word, up, { anchor: "end", cls: "strong" });
  scene.text("h asks", "asks", scene.right, up, { anchor: "end", cls: "strong" });
  asked.forEach((each, s) => {
    scene.word(`asked ${s}`, each, word, y[s], { anchor: "end", size, lang });
    scene.strip(
      `row ${s}`,
      role,
      strengths(rows[s], most),
      scene.left,
      y[s],
      strip,
      Math.min(0.5 * pitch, 26),
      { asks: rowAsks(s) },
    );
  });
  asking.forEach((each, t) => {
    scene.word(`asks ${t}`, each, end + 8, y[t], { size, lang, on: t === on });
    Array.from(weights[t], (w, s) =>
      scene.add("path", `look ${t} ${s}`, {
        ...{
          cls: `curve query${t === on ? " on" : ""}`,
          p: bend(start, y[s], end, y[t]),
          b: 0.6 + (roomy ? 13 : 9) * w,
        },
        ...{ o: t === on ? 0.22 + 0.75 * w : 0.04 + 0.2 * w, d: t === on ? 0.15 : 0 },
      }),
    );
  });
  const best = Math.max(...weights[on]);
  Array.from(weights[on], (w, s) =>
    scene.number(`share ${s}`, share(w), start - 7, y[s], {
      cls: w === best ? "number strong" : "number",
      asks: asks(s),
      d: 0.3,
    }),
  );
  if (masked)
    scene.text(
      "masked",
      scene.fitting(["masked: not written yet", "masked"], word - left - scene.left - 8),
      scene.left,
      (y[asked.length] + y[n - 1]) / 2,
      { d: 0.2 },
    );
  for (let i = asked.length; i < n; i++)
    for (const [k, x, w, cls] of [
      ["masked", word - left, left, "hatched"],
      ["free", end + 8, right, "slot"],
    ])
      scene.add("rect", `${k} ${i}`, {
        cls,
        x,
        y: y[i] - Math.min(13, 0.36 * pitch),
        w,
        h: Math.min(26, 0.72 * pitch),
        r: 5,
        d: 0.2,
      });
  return { y, pitch };
}

export function looks(scene) {
  const { words, asks, look, head, trace, weights, width } = scene.told;
  fan(scene, {
    ...{
      asked: words,
      asking: words,
      weights: look.weights,
      on: asks,
      role: "memory",
      lang: "en",
      chooses: true,
    },
    rows: trace.encoder[0].attention.x,
    asks: (s) => [
      { of: "share", part: "encoder", layer: 0, head, query: asks, key: s },
      `${words[asks]} looks at ${words[s]}: ${share(weights[s])}`,
    ],
    rowAsks: (s) => [
      { of: "input", part: "source", query: s },
      `${words[s]}: the ${width} numbers that go in`,
    ],
  });
  scene.title(`the ${ORDINALS[head]} of four heads, first layer`);
}

export function average(scene) {
  const { told, roomy, small } = scene;
  const { words, asks, look, head, weights } = told;
  const n = words.length;
  const tall = roomy ? 30 : 26;
  const foot = tall + (roomy ? 36 : 32);
  const heading = roomy ? 22 : 17;
  const room = scene.bottom - scene.top - heading - foot;
  const least = Math.min(roomy ? 18 : 15, (0.85 * room) / n);
  const size = Math.min(roomy ? 17 : 14, least + 1);
  const x = scene.left + scene.label(words, size) + 10;
  const from = x + scene.width("0.00 ×", small) + 14;
  const who = scene.label([words[asks]], roomy ? 18 : 14.5);
  const end = scene.right - Math.max(who + 10, roomy ? 92 : 52);
  const w = end - from;
  const cell = w / 16;
  const figures = figuresIn(cell) && Math.min(figuresIn(cell), 0.74 * least);
  const most = span(look.values);
  const y = scene.bottom - foot + 10 + tall / 2;
  scene.text("h share", "share", from - 10, scene.top + heading / 2 - 3, { anchor: "end" });
  scene.text(
    "h value",
    roomy ? "value: 16 numbers that each word has to offer" : "value: 16 numbers",
    from,
    scene.top + heading / 2 - 3,
  );
  let top = scene.top + heading;
  words.forEach((word, s) => {
    const h = least + (room - n * least) * weights[s];
    const middle = top + h / 2;
    const strong = weights[s] === Math.max(...weights);
    scene.word(`word ${s}`, word, x - 10, middle, { anchor: "end", size });
    scene.number(`share ${s}`, `${two(weights[s])} ×`, from - 8, middle, {
      ...{ size: Math.min(small, least), cls: strong ? "number strong" : "number", d: 0.1 },
      asks: [
        { of: "share", part: "encoder", layer: 0, head, query: asks, key: s },
        `${words[asks]} looks at ${word}: ${share(weights[s])}`,
      ],
    });
    cells(scene, `value ${s}`, "value", look.values[s], from, middle, w, h - 2, {
      ...{ most, size: figures, d: 0.15 + 0.04 * s },
      asks: [{ of: "value", part: "encoder", layer: 0, head, key: s }, `the value of ${word}`],
    });
    scene.add("path", `home ${s}`, {
      ...{
        cls: "curve query on",
        b: 0.6 + (roomy ? 15 : 9) * weights[s],
        o: 0.2 + 0.7 * weights[s],
        d: 0.5,
      },
      p: bend(end + 3, middle, scene.right - (roomy ? 20 : 12), y - tall / 2 - 4),
    });
    top += h;
  });
  scene.text("equals", "=", from - 10, y, { anchor: "end", cls: "strong", size: 17, d: 0.6 });
  cells(scene, `taken ${asks}`, "value", look.taken[asks], from, y, w, tall, {
    ...{ most, size: figures && Math.min(12.5, figuresIn(cell)), strong: true, d: 0.6 },
    asks: [
      { of: "taken", part: "encoder", layer: 0, head, query: asks },
      `what ${words[asks]} takes home`,
    ],
  });
  scene.word("asks", words[asks], scene.right, y, {
    anchor: "end",
    size: roomy ? 18 : 14.5,
    on: true,
  });
  firstSum(scene, { x: from, y: y + tall / 2 + 14, end });
  scene.add("rect", "first", {
    cls: "outline",
    layer: "text",
    x: from - 1.5,
    y: scene.top + heading - 2,
    w: cell + 2,
    h: y + tall / 2 - scene.top - heading + 4,
    r: 3,
    d: 0.8,
  });
  scene.title(`what “${words[asks]}” takes home from the ${ORDINALS[head]} head`);
}

/** The first number's sum, with as many terms as there is room for, the largest of them. */
function firstSum(scene, { x, y }) {
  const { asks, look, head, weights, words } = scene.told;
  const terms = order(weights);
  const text = (count) => {
    const kept = terms.slice(0, count).sort((a, b) => a - b);
    const sum = kept.map((s) => `${two(weights[s])} × ${signed(look.values[s][0])}`).join(" + ");
    return `${sum}${count < words.length ? " + …" : ""} ≈ ${two(look.taken[asks][0])}`;
  };
  const start = scene.roomy ? x : scene.left;
  let count = terms.length;
  while (count > 1 && scene.width(text(count), 12, false) > scene.right - start) count -= 1;
  const address = { of: "taken", part: "encoder", layer: 0, head, query: asks };
  const asked = [address, `the first number: ${two(look.taken[asks][0])}`];
  scene.number(`sum ${asks}`, text(count), start, y, {
    anchor: "start",
    size: 12,
    asks: asked,
    d: 0.8,
  });
}
