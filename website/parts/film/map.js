// The map of the model, which stays in view: the encoder beside the decoder. On a wide screen both are
// read from the bottom up, as in chapter 0; on a narrow one from the left to the right.

import { straight } from "./scene.js";

// A part: its place on the way, its colour, its name.
const ENCODER = {
  src: [0, "word", "English words"],
  emb: [1, "word", "embedding"],
  pos: [2, "position", "+ places"],
  sa1: [3, "query", "self-attention"],
  ff1: [5, "plain", "feed-forward"],
  sa2: [6, "query", "self-attention"],
  ff2: [8, "plain", "feed-forward"],
};
const DECODER = {
  tgt: [0, "word", "French words"],
  temb: [1, "word", "embedding"],
  tpos: [2, "position", "+ places"],
  ma1: [3, "query", "masked attention"],
  ca1: [4, "query", "cross-attention"],
  tff1: [5, "plain", "feed-forward"],
  ma2: [6, "query", "masked attention"],
  ca2: [7, "query", "cross-attention"],
  tff2: [8, "plain", "feed-forward"],
  scores: [9, "loss", "scores, softmax"],
  next: [10, "loss", "next word"],
};
const PLACES = 11;
const WORDS = ["src", "tgt", "next"];
const LAYERS = [
  [3, 5],
  [6, 8],
];

/** What of these words keeps within `width`: the beginning or, of what grows, the end. */
function kept(words, width, fits, grows) {
  const left = [...words];
  const text = () => (grows ? ["…", ...left] : [...left, "…"]).join(" ");
  if (fits(words.join(" ")) <= width) return words.join(" ");
  while (left.length > 1 && fits(text()) > width) grows ? left.shift() : left.pop();
  return text();
}

/** Where everything is. Along the way is u, from 0 at the words; across it is v. */
function plan({ x, y: top, w, h: high }, upright) {
  const [y, h] = upright ? [top + 16, high - 16] : [top, high]; // the decoder's name stands above it
  const [length, breadth] = upright ? [h, w] : [w, h];
  const [gap, margin, head] = upright ? [32, 20, 0] : [20, 0, 19];
  const broad = (breadth - gap - margin - 2 * head) / 2;
  const pitch = length / PLACES;
  const around = upright ? 5 : 3; // what is left between two parts, on each side
  const point = (u, v) => (upright ? [x + v, y + h - u] : [x + u, y + v]);
  const across = { enc: head, dec: head + broad + gap };
  return {
    ...{ point, broad, gap, pitch, around, across, upright, breadth, length },
    path: (...points) => straight(points.flatMap(([u, v]) => point(u, v))),
    box(side, from, to = from, more = 0) {
      const [u, v] = [from * pitch + around - more, across[side] - more];
      const [along, wide] = [(to - from + 1) * pitch - 2 * around + 2 * more, broad + 2 * more];
      const [px, py] = point(u, v);
      return upright
        ? { x: px, y: py - along, w: wide, h: along }
        : { x: px, y: py, w: along, h: wide };
    },
  };
}

/**
 * The things to draw in `M`, and the boxes of the parts. `lit` are those that work now, `done` those
 * that have worked; `english`, `french` and `next` are the words at both feet and at the end.
 */
export function drawMap({ M, upright, lit, done, lens, english, french, next, measure }) {
  const map = plan(M, upright);
  const things = [];
  const add = (t, k, thing) => things.push({ t, k: `map ${k}`, ...thing });
  const state = (name) => (lit.includes(name) ? " lit" : done.includes(name) ? " done" : "");
  const boxes = {};
  for (const [side, parts] of [
    ["enc", ENCODER],
    ["dec", DECODER],
  ]) {
    for (const [from, to] of LAYERS)
      add("rect", `layer ${side}${from}`, {
        cls: "frame",
        r: upright ? 8 : 4,
        ...map.box(side, from, to, upright ? 3 : 2),
      });
    const names = Object.keys(parts);
    const middle = map.across[side] + map.broad / 2;
    names.forEach((name, i) => {
      const [place, role] = parts[name];
      boxes[name] = map.box(side, place);
      if (i > 0) {
        const from = (parts[names[i - 1]][0] + 1) * map.pitch - map.around;
        const p = map.path([from, middle], [place * map.pitch + map.around, middle]);
        add("path", `up ${name}`, { cls: `way${state(name)}`, p, b: state(name) ? 1.8 : 1 });
      }
      if (!WORDS.includes(name) || !upright)
        add("rect", name, {
          cls: `part ${role}${state(name)}`,
          ...boxes[name],
          r: upright ? 5 : 3,
        });
    });
  }
  addMemory(add, map, state("memory"));
  addLoop(add, map, state("loop"));
  const write = upright ? nameParts : nameLit;
  const words = { src: english, tgt: french, next: [next] };
  write(add, { boxes, state, words, lens, measure, M });
  return { things, boxes };
}

/** From the encoder's end to both cross-attentions. */
function addMemory(add, map, state) {
  const cls = `way memory${state}`;
  const b = state === " lit" ? 3 : 1.8;
  const end = 9 * map.pitch - map.around;
  const turn = end + (map.upright ? 13 : 0.5 * map.pitch);
  const enc = map.across.enc + map.broad / 2;
  const between = map.across.dec - map.gap / 2;
  for (const name of ["ca1", "ca2"]) {
    const u = (DECODER[name][0] + 0.5) * map.pitch;
    const to = map.across.dec - 1;
    const p = map.path([end, enc], [turn, enc], [turn, between], [u, between], [u, to]);
    add("path", `memory ${name}`, { cls, p, b });
    const tip = map.path([u, to + 1], [u - 4, to - 6], [u + 4, to - 6]);
    add("path", `memory tip ${name}`, { cls: `tip memory${state}`, p: `${tip}Z`, b: 0 });
  }
  if (!map.upright) return;
  const [x, y] = map.point(turn + 12, enc + 6);
  const lit = state === " lit" ? "strong" : "quiet";
  add("text", "memory", { s: "memory", cls: lit, x, y: y + 4, size: 12.5 });
}

/** What is written goes back to the foot. */
function addLoop(add, map, state) {
  const at = map.across.dec + map.broad + (map.upright ? 0 : 1);
  const out = at + (map.upright ? 12 : 5);
  const [from, to] = [(PLACES - 0.5) * map.pitch, 0.5 * map.pitch];
  const p = map.path([from, at], [from, out], [to, out], [to, at]);
  add("path", "loop", { cls: `way loop${state}`, p, b: state ? 2.2 : 1.2 });
  const tip = map.path([to, at - 1], [to - 4, at + 6], [to + 4, at + 6]);
  add("path", "loop tip", { cls: `tip loop${state}`, p: `${tip}Z`, b: 0 });
}

function nameParts(add, { boxes, state, words, measure }) {
  const parts = Object.entries({ ...ENCODER, ...DECODER });
  const longest = Math.max(...parts.map(([, [, , label]]) => measure(label, 1, true)));
  const size = Math.min(12.5, (boxes.src.w - 6) / longest);
  const fits = (s) => measure(s, size, true);
  for (const [name, [, , label]] of parts) {
    const { x, y, w, h } = boxes[name];
    const own = words[name]?.[0] && kept(words[name], w + 4, fits, name === "tgt");
    const calm = own ? "word" : state(name) ? "ink" : "quiet";
    const cls = state(name) === " lit" ? "strong" : calm;
    const lang = own && name !== "src" ? "fr" : "en";
    const middle = { x: x + w / 2, y: y + h / 2 + 0.36 * size, anchor: "middle" };
    add("text", `name ${name}`, { s: own || label, cls, ...middle, size, lang });
  }
  const head = { cls: "quiet strong", y: boxes.next.y - 4, size: 12.5 };
  add("text", "encoder", { s: "Encoder", x: boxes.ff2.x, ...head });
  add("text", "decoder", { s: "Decoder", x: boxes.tff2.x, ...head });
}

/** Where there is no room for names: the words of both sides, and the name of what is seen below. */
function nameLit(add, { words, lens, measure, M }) {
  const size = 12;
  const fits = (text) => measure(text, size, true);
  const french = [...words.tgt, ...(words.next[0] ? ["→", ...words.next] : [])];
  for (const [side, spoken, parts, y, lang] of [
    ["Encoder", words.src, ENCODER, M.y + 11, "en"],
    ["Decoder", french, DECODER, M.y + M.h - 2, "fr"],
  ]) {
    const s = parts[lens]?.[2] ?? "";
    const from = fits(side) + 10;
    const room = M.w - from - (s ? fits(s) + 12 : 0);
    const own = { s: kept(spoken, room, fits, lang === "fr"), cls: "quiet", x: M.x + from };
    add("text", side, { s: side, cls: s ? "strong" : "quiet strong", x: M.x, y, size });
    add("text", `name ${side}`, { s, cls: "strong", x: M.x + M.w, y, size, anchor: "end" });
    add("text", `words ${side}`, { ...own, y, size, lang });
  }
}
