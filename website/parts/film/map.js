// The map of the model, which stays in view: the encoder beside the decoder. On a wide screen both are
// read from the bottom up, as in chapter 0; on a narrow one from the left to the right.

import { line, mixed, path } from "../drawing.js";
import { filled } from "./scene.js";

// A part: its place on the way, its colour, its name. Grey is what has no colour of its own.
const ENCODER = {
  src: [0, "word", "English words"],
  emb: [1, "word", "embedding"],
  pos: [2, "position", "+ places"],
  sa1: [3, "query", "self-attention"],
  ff1: [5, "word", "feed-forward"],
  sa2: [6, "query", "self-attention"],
  ff2: [8, "word", "feed-forward"],
};
const DECODER = {
  tgt: [0, "word", "French words"],
  temb: [1, "word", "embedding"],
  tpos: [2, "position", "+ places"],
  ma1: [3, "query", "masked attention"],
  ca1: [4, "query", "cross-attention"],
  tff1: [5, "word", "feed-forward"],
  ma2: [6, "query", "masked attention"],
  ca2: [7, "query", "cross-attention"],
  tff2: [8, "word", "feed-forward"],
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
    along: (...points) => points.map(([u, v]) => point(u, v)),
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
 * Draws the map into the stage of `scene`, and returns the boxes of its parts. `lit` are those that
 * work now, `done` those that have worked; `english`, `french` and `next` are the words at both feet
 * and at the end.
 */
export function drawMap(scene, { upright, lit, done, lens, english, french, next }) {
  const map = plan(scene.S, upright);
  const state = (name) => (lit.includes(name) ? "lit" : done.includes(name) ? "done" : "");
  const boxes = {};
  for (const [side, parts] of [
    ["enc", ENCODER],
    ["dec", DECODER],
  ]) {
    for (const [from, to] of LAYERS) {
      const { x, y, w, h } = map.box(side, from, to, upright ? 3 : 2);
      const frame = { name: `map layer ${side}${from}`, lit: false, dashed: "4 3" };
      scene.box(x, y, w, h, "plain", { ...frame, r: upright ? 8 : 4 });
    }
    const names = Object.keys(parts);
    const middle = map.across[side] + map.broad / 2;
    names.forEach((name, i) => {
      const [place, role] = parts[name];
      boxes[name] = map.box(side, place);
      if (i > 0) {
        const from = (parts[names[i - 1]][0] + 1) * map.pitch - map.around;
        const way = map.along([from, middle], [place * map.pitch + map.around, middle]);
        const went = Boolean(state(name));
        scene.line(way, { name: `map up ${name}`, lit: went, width: went ? 1.8 : 1 });
      }
      if (WORDS.includes(name) && upright) return;
      const { x, y, w, h } = boxes[name];
      const fill = mixed(role, { lit: 42, done: 16 }[state(name)] ?? 0);
      const works = { stroke: "var(--ink)", "stroke-width": 1.8 };
      const look = state(name) === "lit" ? works : { stroke: line("plain") };
      const more = { name: `map ${name}`, r: upright ? 5 : 3, strength: 1, fill };
      scene.box(x, y, w, h, role, { ...more, ...look });
    });
  }
  addMemory(scene, map, state("memory"));
  addLoop(scene, map, state("loop"));
  const write = upright ? nameParts : nameLit;
  write(scene, { boxes, state, lens, words: { src: english, tgt: french, next: [next] } });
  return boxes;
}

/** A line that ends in a tip; faint until something has gone this way. */
function way(scene, name, role, { points, tip, lit, ...more }) {
  scene.line(points, { name: `map ${name}`, role, lit, ...more });
  const fill = lit ? {} : { fill: "var(--faint)" };
  scene.add("path", { name: `map tip ${name}`, d: path(tip), ...filled(role, fill) });
}

/** The way from the encoder's end to both cross-attentions. */
function addMemory(scene, map, state) {
  const end = 9 * map.pitch - map.around;
  const turn = end + (map.upright ? 13 : 0.5 * map.pitch);
  const enc = map.across.enc + map.broad / 2;
  const between = map.across.dec - map.gap / 2;
  for (const name of ["ca1", "ca2"]) {
    const u = (DECODER[name][0] + 0.5) * map.pitch;
    const to = map.across.dec - 1;
    const points = map.along([end, enc], [turn, enc], [turn, between], [u, between], [u, to]);
    const tip = map.along([u, to + 1], [u - 4, to - 6], [u + 4, to - 6]);
    const look = { lit: Boolean(state), width: state === "lit" ? 3 : 1.8 };
    way(scene, `memory ${name}`, "memory", { points, tip, ...look });
  }
  if (!map.upright) return;
  const [x, y] = map.point(turn + 12, enc + 6);
  const look = { name: "map memory", bold: state === "lit", size: 12.5 };
  scene.text(x, y, "memory", look);
}

/** What is written goes back to the foot. */
function addLoop(scene, map, state) {
  const at = map.across.dec + map.broad + (map.upright ? 0 : 1);
  const out = at + (map.upright ? 12 : 5);
  const [from, to] = [(PLACES - 0.5) * map.pitch, 0.5 * map.pitch];
  const points = map.along([from, at], [from, out], [to, out], [to, at]);
  const tip = map.along([to, at - 1], [to - 4, at + 6], [to + 4, at + 6]);
  const look = { lit: Boolean(state), width: state ? 2.2 : 1.2, dashed: "3 4" };
  way(scene, "loop", "loss", { points, tip, ...look });
}

function nameParts(scene, { boxes, state, words }) {
  const parts = Object.entries({ ...ENCODER, ...DECODER });
  const names = parts.map(([, [, , label]]) => label);
  const size = scene.fit(names, boxes.src.w - 6, 12.5);
  const fits = (s) => scene.width(s, size);
  for (const [name, [, , label]] of parts) {
    const { x, y, w, h } = boxes[name];
    const own = words[name]?.[0] && kept(words[name], w + 4, fits, name === "tgt");
    const look = { bold: state(name) === "lit", quiet: !own && !state(name), size };
    const lang = own && name !== "src" ? "fr" : "en";
    const more = { name: `map name ${name}`, anchor: "middle", lang };
    scene.text(x + w / 2, y + h / 2, own || label, { ...look, ...more });
  }
  const head = { bold: true, size: 12.5 };
  const y = boxes.next.y - 8.4;
  scene.text(boxes.ff2.x, y, "Encoder", { name: "map encoder", ...head });
  scene.text(boxes.tff2.x, y, "Decoder", { name: "map decoder", ...head });
}

/** Where there is no room for names: the words of both sides, and the name of what is seen below. */
function nameLit(scene, { words, lens }) {
  const { S: M } = scene;
  const size = 12;
  const fits = (text) => scene.width(text, size);
  const french = [...words.tgt, ...(words.next[0] ? ["→", ...words.next] : [])];
  for (const [side, spoken, parts, y, lang] of [
    ["Encoder", words.src, ENCODER, M.y + 6.8, "en"],
    ["Decoder", french, DECODER, M.y + M.h - 6.2, "fr"],
  ]) {
    const s = parts[lens]?.[2] ?? "";
    const from = fits(side) + 10;
    const room = M.w - from - (s ? fits(s) + 12 : 0);
    const own = kept(spoken, room, fits, lang === "fr");
    const bold = { bold: true, size };
    scene.text(M.x, y, side, { name: `map ${side}`, ...bold });
    scene.text(M.x + M.w, y, s, { name: `map name ${side}`, ...bold, anchor: "end" });
    scene.text(M.x + from, y, own, { name: `map words ${side}`, size, lang });
  }
}
