// What all scenes draw with: a stage, its sizes, and the words, rows and lines that stand in it.

import { percent, shown } from "../elements.js";

export const two = (value) => shown(value, 2);

export const ORDINALS = "first second third fourth fifth sixth seventh eighth".split(" ");

/** A positive number of any size, with no more digits than mean something. */
export function large(value) {
  if (value < 1e6) return value < 1000 ? two(value) : Math.round(value).toLocaleString("en");
  const [digits, power] = value.toExponential(1).split("e+");
  return `${digits}·10${[...power].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]).join("")}`;
}

/** A weight in whole percent, and neither none nor all where there is some of another. */
export function share(w) {
  if (w >= 0.995 && w < 1) return "> 99\u00a0%";
  return w > 0 && w < 0.005 ? "< 1\u00a0%" : percent(w);
}

/** A probability that is neither rounded up to certainty nor down to nothing. */
export function chance(p) {
  if (p >= 0.9995 && p < 1) return "> 99.9\u00a0%";
  return p > 0 && p < 0.0005 ? "< 0.1\u00a0%" : percent(p, 1);
}

/** How strongly each number is coloured, around 0 in the middle: low is faint, high is strong. */
export const strengths = (row, most) =>
  Array.from(row, (value) => Math.min(1, Math.max(0.03, 0.5 + value / (2 * most))));

/** The size that few numbers of these rows exceed. */
export function span(rows) {
  const sizes = rows.flatMap((row) => Array.from(row, Math.abs)).sort((a, b) => a - b);
  return sizes[Math.floor(0.985 * (sizes.length - 1))] || 1;
}

/** A bent line between two points that begins and ends level. */
export function bend(x, y, u, v) {
  const bow = 0.45 * (u - x);
  const [a, b, c, d, e, f] = [x, y, x + bow, u - bow, u, v].map(
    (each) => Math.round(each * 10) / 10,
  );
  return `M${a} ${b}C${c} ${b} ${d} ${f} ${e} ${f}`;
}
export const straight = (points) =>
  `M${points.map((each) => Math.round(each * 10) / 10).join(" ")}`;

const FINGER = 24; // px

export class Scene {
  constructor(told, { S, measure }) {
    Object.assign(this, { told, S, measure, things: [] });
    this.roomy = S.w >= 620;
    this.small = this.roomy ? 13 : 12;
    const margin = this.roomy ? 24 : 9;
    this.left = S.x + margin;
    this.right = S.x + S.w - margin;
    this.top = S.y + (this.roomy ? 38 : 27);
    this.bottom = S.y + S.h - (this.roomy ? 16 : 9);
  }

  add(t, k, thing) {
    this.things.push({ k, t, ...thing });
  }

  /** `y` is its middle. */
  text(k, s, x, y, { size = this.small, cls = "quiet", ...more } = {}) {
    this.add("text", k, { s, x, y: y + 0.35 * size, size, cls, ...more });
  }

  width(s, size = this.small, bold = true) {
    return this.measure(s, size, bold);
  }

  /** The largest size, up to `most`, in which these texts keep within `room`. */
  fit(texts, room, most, bold = true) {
    const widest = Math.max(...texts.map((s) => this.measure(s, most, bold)));
    return widest > room ? (most * room) / widest : most;
  }

  /** The largest size up to `size` in which what needs `needed(size)` keeps within the stage. */
  shrunk(size, needed, least = this.roomy ? 11 : 9) {
    const room = this.right - this.left;
    return size > least && needed(size) > room ? this.shrunk(size - 0.5, needed, least) : size;
  }

  /** The first of these texts that keeps within `room`. */
  fitting(texts, room, size = this.small, bold = false) {
    return texts.find((s) => s && this.width(s, size, bold) <= room) ?? "";
  }

  /** What the stage shows, in a few words: the first of these that has room. */
  title(...texts) {
    const s = this.fitting(texts, this.right - this.left);
    this.text(`title ${s}`, s, this.left, this.S.y + (this.roomy ? 20 : 15));
  }

  /** The middles of n rows between `top` and `bottom`, at most `most` apart; `up` is that of their head. */
  rows(n, { top = this.top, bottom = this.bottom, heading = 0, most = this.roomy ? 78 : 60 } = {}) {
    const pitch = Math.min(most, (bottom - top - heading) / n);
    const first = (top + heading + bottom - pitch * n) / 2;
    const y = Array.from({ length: n }, (_, i) => first + pitch * (i + 0.5));
    return { pitch, top: first, y, up: first - heading / 2 + 2 };
  }

  /** The size of the words in rows so far apart. */
  sizeIn(pitch) {
    return Math.min(this.roomy ? 18 : 14.5, Math.max(11, 0.72 * pitch));
  }

  label(words, size) {
    return Math.max(...words.map((word) => this.width(word, size))) + 2;
  }

  word(k, s, x, y, { on = false, lang = "en", ...more }) {
    this.text(k, s, x, y, { cls: on ? "word strong" : "word", lang, ...more });
  }

  /** Words under each other that end at x; word `on` is followed. Named alike, they glide from step to step. */
  words(words, x, y, { on, key = "word", ...more }) {
    words.forEach((word, t) =>
      this.word(`${key} ${t}`, word, x, y[t], { anchor: "end", on: t === on, ...more }),
    );
  }

  /** A row of numbers, around the height y; `asks` is what is shown when one of them is asked. */
  strip(k, role, v, x, y, w, h, { asks, row = 0, ...more } = {}) {
    this.add("strip", k, { cls: `strip ${role}`, v, x, y: y - h / 2, w, h, ...more });
    const [address, label, first] = asks ?? [];
    const high = Math.max(h, Math.min(FINGER, row));
    if (asks) this.ask(k, { x, y: y - high / 2, w, h: high }, address, label, v.length, first);
  }

  /** Around the memory's rows. */
  frame(x, { top, pitch, y }, w, d = 0) {
    const h = pitch * y.length - 2;
    const place = { x: x - 6, y: top + 1, w: w + 12, h, r: 6 };
    this.add("rect", "memory frame", { cls: "frame memory", ...place, d });
  }

  /** What can be asked where its number comes from; of `count` side by side, keys ask the `first`. */
  ask(k, place, address, label, count = 1, first = 0) {
    this.add("press", `ask ${k}`, { ...place, cls: "ask", does: { address, count, first }, label });
  }

  /** A number that can be asked: a text with its place, for a finger as high as its row allows. */
  number(
    k,
    s,
    x,
    y,
    { anchor = "end", size = this.small, on = false, asks, row = 0, ...more } = {},
  ) {
    this.text(k, s, x, y, { anchor, size, cls: on ? "number strong" : "number", ...more });
    if (!asks) return;
    const w = this.width(s, size, on || more.cls?.includes("strong")) + 10;
    const h = Math.min(FINGER, row || 1.5 * size);
    const start = { end: x - w + 5, middle: x - w / 2, start: x - 5 }[anchor];
    this.ask(k, { x: start, y: y - h / 2, w, h }, ...asks);
  }

  /** A share of `room` as a bar, and behind it in figures. */
  bar(k, w, s, x, y, { role, room, pitch, d = 0, ...more }) {
    const h = Math.min(18, 0.5 * pitch);
    const place = { x, y: y - h / 2, w: Math.max(1.5, room * w), h, r: 2 };
    this.add("rect", `bar ${k}`, { cls: `fill ${role}`, layer: "cell", ...place, d });
    this.number(`share ${k}`, s, x + place.w + 7, y, { anchor: "start", row: pitch, d, ...more });
  }

  /** Lets a press on a row of the picture have its word ask. */
  chooses(y, pitch, x = this.left, w = this.right - this.left) {
    y.forEach((each, i) =>
      this.add("press", `row ${i}`, {
        ...{ x, y: each - pitch / 2, w, h: pitch },
        cls: "row",
        does: { row: i },
      }),
    );
  }
}
