// What all scenes draw with: a drawing with a stage and its sizes, in which each thing has a name, with
// rows of numbers, and with what can be pressed. And how the film writes a number.

import { Drawing, line, point, tenTo } from "../drawing.js";
import { percent, shown } from "../elements.js";

export const two = (value) => shown(value, 2);

export const ORDINALS = "first second third fourth fifth sixth seventh eighth".split(" ");

/** A positive number of any size, with no more digits than mean something. */
export function large(value) {
  if (value < 1e6) return value < 1000 ? two(value) : Math.round(value).toLocaleString("en");
  const [digits, power] = value.toExponential(1).split("e+");
  return `${digits}·${tenTo(Number(power))}`;
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

/** A surface in the colour of a role's lines: a bar, the tip of an arrow. */
export const filled = (role, more) => ({ fill: line(role), stroke: "none", ...more });

const FINGER = 24; // px
export const LAYERS = ["back", "line", "cell", "text", "press"];
const LAYER_OF = { rect: "back", path: "line", circle: "cell", g: "cell", text: "text" };

export class Scene extends Drawing {
  constructor(told, { S, measure }) {
    super();
    Object.assign(this, { told, S, measure });
    this.roomy = S.w >= 620;
    this.small = this.roomy ? 13 : 12;
    const margin = this.roomy ? 24 : 9;
    this.left = S.x + margin;
    this.right = S.x + S.w - margin;
    this.top = S.y + (this.roomy ? 38 : 27);
    this.bottom = S.y + S.h - (this.roomy ? 16 : 9);
  }

  add(tag, thing, words) {
    super.add(tag, { layer: LAYER_OF[tag], ...thing }, words);
  }

  /** Quiet unless it is bold. */
  text(x, y, words, { bold = false, quiet = !bold, anchor = "start", ...more } = {}) {
    super.text(x, y, words, { size: this.small, ...more, bold, quiet, anchor });
  }

  /** A bent line that begins and ends level. */
  curve(x, y, u, v, options) {
    const bow = 0.45 * (u - x);
    const bent = [
      [x + bow, y],
      [u - bow, v],
      [u, v],
    ]
      .map(point)
      .join(" ");
    this.line([], { role: "query", ...options, d: `M${point([x, y])}C${bent}` });
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
    const words = this.fitting(texts, this.right - this.left);
    this.text(this.left, this.S.y + (this.roomy ? 20 : 15), words, { name: `title ${words}` });
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

  /** A word of a sentence; the one that is followed is bold. */
  word(x, y, words, { on = false, lang = "en", ...more }) {
    this.text(x, y, words, { bold: on, quiet: false, lang, ...more });
  }

  /** Words under each other that end at x; word `on` is followed. Named alike, they glide from step to step. */
  words(words, x, y, { on, key = "word", ...more }) {
    words.forEach((word, t) => {
      this.word(x, y[t], word, { name: `${key} ${t}`, anchor: "end", on: t === on, ...more });
    });
  }

  /** A row of numbers, around the height y; `asks` is what is shown when one of them is asked. */
  strip(x, y, w, h, role, cells, { name, asks, row = 0, ...more }) {
    const fill = role === "plain" ? "var(--ink)" : line(role);
    const place = { to: [x, y - h / 2], scaled: [w / cells.length, h] };
    this.add("g", { name, cells, fill, ...place, ...more });
    const [address, label, first] = asks ?? [];
    const high = Math.max(h, Math.min(FINGER, row));
    if (asks) this.ask(name, [x, y - high / 2, w, high], address, label, cells.length, first);
  }

  /** Around the memory's rows. */
  frame(x, { top, pitch, y }, w, delay) {
    const look = { lit: false, stroke: line("memory"), r: 6 };
    const high = pitch * y.length - 2;
    this.box(x - 6, top + 1, w + 12, high, "memory", { name: "memory frame", ...look, delay });
  }

  /** A box that a press does something in; one with a label is a button for keys and screen readers, too. */
  press(name, [x, y, w, h], { does, label, pressed }) {
    const button = { role: "button", "aria-label": label, "aria-pressed": pressed };
    const look = label ? { class: "ask", ...button } : { class: "row" };
    this.rect(x, y, w, h, { name: `press ${name}`, layer: "press", rx: 4, does, ...look });
  }

  /** What can be asked where its number comes from; of `count` side by side, keys ask the `first`. */
  ask(name, place, address, label, count = 1, first = 0) {
    this.press(`ask ${name}`, place, { does: { address, count, first }, label });
  }

  /** A number that can be asked: a text with its place, for a finger as high as its row allows. */
  number(x, y, words, options) {
    const { anchor = "end", size = this.small, bold = false, asks, row = 0, ...more } = options;
    this.text(x, y, words, { anchor, size, bold, ...more });
    if (!asks) return;
    const w = this.width(words, size, bold) + 10;
    const h = Math.min(FINGER, row || 1.5 * size);
    const start = { end: x - w + 5, middle: x - w / 2, start: x - 5 }[anchor];
    this.ask(more.name, [start, y - h / 2, w, h], ...asks);
  }

  /** A share of `room` as a bar, and behind it in figures. */
  bar(x, y, share, words, { name, role, room, pitch, delay, soft, high = 18, ...more }) {
    const h = Math.min(high, 0.5 * pitch);
    const w = Math.max(1.5, room * share);
    const look = filled(role, { "fill-opacity": soft ? 0.5 : 1, layer: "cell", rx: 2, delay });
    this.rect(x, y - h / 2, w, h, { name: `bar ${name}`, ...look });
    const figures = { name: `share ${name}`, anchor: "start", row: pitch, delay, ...more };
    this.number(x + w + 7, y, words, figures);
  }

  /** A button that takes away what lies beside it, or gives it back; a press in its `place` will do. */
  knife(cut, x, y, r, { gone, place, label, delay }) {
    const look = { strength: 1, dashed: gone && "2 2", layer: "cell", delay };
    this.box(x - r, y - r, 2 * r, 2 * r, "plain", { name: `cut ${cut}`, r, ...look });
    const mark = { anchor: "middle", size: 1.5 * r, bold: !gone, delay };
    this.text(x, y, gone ? "+" : "×", { name: `cut mark ${cut}`, ...mark });
    this.press(`cut ${cut}`, place, { does: { cut }, label, pressed: gone });
  }

  /** Lets a press on a row of the picture have its word ask. */
  chooses(y, pitch, x = this.left, w = this.right - this.left) {
    y.forEach((each, i) => {
      this.press(`row ${i}`, [x, each - pitch / 2, w, pitch], { does: { row: i } });
    });
  }
}
