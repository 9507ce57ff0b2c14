// Chapter 7, sections 7.1 to 7.3: the wiring of a sublayer, and what stacks of it do, over their depth.

import { tenTo } from "../drawing.js";
import { range } from "./living.js";
import { measuredIn, MOST, wireOf } from "./stacks.js";

const [LEFT, RIGHT] = [46, 340];
const COLOURS = { plain: "key", add: "query", norm_only: "mask", post: "value" }; // as in Figure 7.7
const OTHERS = [0, 1, 2, 3].map((bits) => ({ add: bits > 1, norm: bits % 2 === 1 }));
/** The panels: what they show, from which power of ten on, and what the claims allow. */
const PANELS = [
  {
    title: "gradient before layer 1 (after the last: 1)",
    of: "arriving",
    top: 92,
    base: 212,
    powers: [-13, 10],
    marked: [-12, -6, 0, 6],
    allowed: [0.1, 10],
  },
  {
    title: "own part of the words after the last layer",
    of: "words",
    top: 248,
    base: 336,
    powers: [-7, 0],
    marked: [-6, -4, -2, 0],
    allowed: [0.05, 1],
  },
];

const x = (n) => LEFT + ((RIGHT - LEFT) * (n - 1)) / (MOST - 1);

function panel(d, state, { title, of, top, base, powers, marked, allowed }) {
  const [low, high] = powers;
  const height = (power) => base - ((base - top) * (power - low)) / (high - low);
  const y = (value) => height(Math.log10(value));
  d.text(LEFT, top - 10, title, { anchor: "start", bold: true });
  const [least, most] = allowed.map(y);
  d.box(LEFT, most, RIGHT - LEFT, least - most, "value", { strength: 0.16, stroke: "none" });
  d.axes(LEFT, top, base, RIGHT, { up: marked.map((power) => [height(power), tenTo(power)]) });
  const lines = (wiring, options) => {
    for (const start of [0, 1, 2]) {
      const points = range(1, MOST, 1).map((n) => [x(n), y(measuredIn(wiring, n)[of][start])]);
      d.line(points, options);
    }
  };
  for (const other of OTHERS)
    if (wireOf(other) !== wireOf(state)) lines(other, { lit: false, width: 0.8 });
  const role = COLOURS[wireOf(state)];
  lines(state, { role, width: 1.6 });
  d.segment(x(state.n), top, x(state.n), base, { dashed: true });
  for (const value of measuredIn(state)[of]) d.dot(x(state.n), y(value), 4, role);
}

/** Draws the way from x to y: the sublayer, the way around it and the plus sign, the norm. */
function wire(d, { n, add, norm }) {
  const look = (lit) => ({ lit, dashed: lit ? false : "2 4" });
  d.text(10, 42, "x", { bold: true });
  d.segment(20, 42, 70, 42, { width: 2.5 });
  d.box(70, 29, 86, 26, "plain", { strength: 1 });
  d.text(113, 42, "sublayer");
  d.segment(156, 42, 230, 42, { width: 2.5 });
  d.line(
    [
      [44, 42],
      [44, 10],
      [193, 10],
      [193, add ? 32 : 41],
    ],
    { ...look(add), width: add ? 2.5 : 1.2 },
  );
  if (add) {
    d.dot(193, 42, 10, "plain");
    d.text(193, 42, "+", { size: 16 });
  }
  if (norm) d.box(230, 29, 60, 26, "mask", { strength: 0.35 });
  else d.segment(230, 42, 290, 42, { width: 2.5 });
  if (norm) d.text(260, 42, "norm");
  d.arrow([290, 42], [330, 42], { width: 2.5 });
  d.text(341, 42, "y", { bold: true });
  d.text(346, 12, `${2 * n} times`, { anchor: "end", quiet: true });
}

export function draw(d, state) {
  wire(d, state);
  for (const each of PANELS) panel(d, state, each);
  for (const n of [1, 8, 16, 24, 32]) d.text(x(n), 348, String(n), { quiet: true });
  const key = { anchor: "start", quiet: true };
  d.text(LEFT, 368, "number of layers; shaded: what the claims allow", key);
  d.text(LEFT, 384, "thick: this wiring, three stacks; grey: the others", key);
}
