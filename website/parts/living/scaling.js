// Chapter 4, sections 4.1 and 4.2: wider vectors, larger scores, a softmax that saturates.

import { tenTo } from "../drawing.js";
import { percent, shown } from "../elements.js";
import { Figure, range, tiny } from "./living.js";
import { RIGHT, softened } from "./saturation.js";
import { HALVES, MEDIANS } from "./slopes.js";

export const CLAIMS = {
  drawn: "in the drawn example, division by 8 makes the right key's slope 1000 times larger",
  alike: "divided by √d_k, the median slope at the right key is alike for d_k = 1, 1024",
};
export const example = {
  state: { width: 64, by: "root" },
  shows: ["−10.7", "77", "23", "divided by √64 = 8", "10", "14", "29", "25", "9"],
};
export const breaks = {
  slider: "d_k",
  keys: ["ArrowLeft", "ArrowLeft", "ArrowLeft", "ArrowLeft"],
  claim: 0,
  because: "2.7 times",
};
const WORDS = ["the", "old", "queen", "does", "not", "see", "the", "cat"];
const WIDTHS = range(0, 10, 1).map((n) => 2 ** n);
const DIVISORS = { one: () => 1, root: Math.sqrt, width: (width) => width };
const NAMES = { one: "undivided", root: "divided by √d_k", width: "divided by d_k" };

const short = (divisor) => shown(divisor, Number.isInteger(divisor) ? 0 : 2);
const both = ({ width, by }) => {
  const divisor = DIVISORS[by](width);
  return { divisor, raw: softened(width, 1), divided: softened(width, divisor) };
};

export function checkDrawn(state) {
  const { divisor, raw, divided } = both(state);
  const drawn = CLAIMS.drawn.replace("8", short(divisor));
  const text = state.width === 64 && divisor === 8 ? drawn : drawn.replace("1000", "at least 1000");
  if (divisor === 1) return { holds: false, text, because: "Division by 1 changes nothing." };
  const times = divided.slope / raw.slope;
  const many = times < 10 ? shown(times, 1) : Math.round(times).toLocaleString("en");
  const holds = times > 1000;
  const rises = times > 1e6 ? "more than a million" : holds ? many : `only ${many}`;
  const slopes = `from ${tiny(raw.slope)} to ${tiny(divided.slope)}`;
  return { holds, text, because: `At d_k = ${state.width} ${slopes}: ${rises} times as large.` };
}

export function checkAlike({ by }) {
  const [narrow, wide] = [MEDIANS[by][0], MEDIANS[by][10]];
  const holds = wide / narrow > 0.5 && wide / narrow < 2;
  const text = CLAIMS.alike.replace("divided by √d_k", NAMES[by]);
  const medians = `Medians of a thousand queries: ${tiny(narrow)} and ${tiny(wide)}.`;
  const lost = by === "one" ? " At d_k = 1024 half of the queries get next to nothing." : "";
  return { holds, text, because: medians + lost + (by === "width" ? even() : "") };
}

/** The price of the largest slopes. */
function even() {
  const { weights } = softened(1024, 1024);
  const [least, most] = [Math.min(...weights), Math.max(...weights)];
  const ends = `${percent(least, 1)} to ${percent(most, 1)}`;
  return ` Weights at d_k = 1024: ${ends}, almost a plain average.`;
}

/** What stands over the divided half. */
function heading({ width, by }) {
  const divisor = short(DIVISORS[by](width));
  if (divisor === "1") return "divided by 1: the same numbers";
  return by === "root" ? `divided by √${width} = ${divisor}` : `divided by ${divisor}`;
}

function half(d, y, title, { scores, weights, rise }) {
  const at = (i) => 72 + 34 * i;
  d.text(4, y, title, { anchor: "start", bold: true });
  ["scores", "weights, %"].forEach((name, i) =>
    d.text(4, y + 20 + 24 * i, name, { anchor: "start" }),
  );
  WORDS.forEach((_, i) => {
    d.cell(at(i), y + 10, scores[i], "plain", { digits: 1 });
    d.cell(at(i), y + 34, 100 * weights[i], "query", { top: 100, bold: i === RIGHT });
  });
  d.ring(at(RIGHT), y + 10, 34, 44);
  const rises = rise > 5e-8 ? shown(100 * rise, 5) : tiny(100 * rise);
  const told = `cat’s score + 0.01: its weight + ${rises} percentage points`;
  d.text(344, y + 66, told, { anchor: "end" });
}

/** Figure 4.4, with the drawn example as dots: the slope at the right key at every width. */
function plot(d, { width, by }) {
  const [top, base] = [182, 272];
  const x = (n) => 62 + 27 * n;
  const y = (slope) => top + (base - top) * Math.min(1, -Math.log10(slope) / 24);
  d.axes(54, top, base, 346, {
    up: [0, -8, -16, -24].map((power) => [y(10 ** power), tenTo(power)]),
    along: [0, 2, 4, 6, 8, 10].map((n) => [x(n), String(2 ** n)]),
  });
  d.text(346, base + 28, "d_k; slope a(1 − a) at the right key", { anchor: "end", quiet: true });
  const { raw, divided } = both({ width, by });
  const lines = [["one", "key", raw.slope]];
  if (by !== "one") lines.push([by, "query", divided.slope]);
  lines.forEach(([name, role], i) => {
    const medians = MEDIANS[name].map((slope, n) => [x(n), y(slope)]);
    d.line(medians, { role, width: 2 });
    d.segment(62 + 90 * i, base - 42, 78 + 90 * i, base - 42, { role, width: 2 });
    d.text(83 + 90 * i, base - 42, NAMES[name], { anchor: "start" });
  });
  const n = Math.log2(width);
  d.segment(x(n), y(divided.slope), x(n), y(raw.slope), { dashed: true });
  for (const [, role, slope] of lines) d.dot(x(n), y(slope), 5, role);
  d.text(62, base - 26, "lines: medians of a thousand queries", { anchor: "start", quiet: true });
  const dots = "dots: the query above, chosen near the median";
  d.text(62, base - 10, dots, { anchor: "start", quiet: true });
  const [low, high] = HALVES[n].map(tiny);
  const scatter = `undivided, half of the thousand lie from ${low} to ${high}`;
  d.text(346, base + 44, scatter, { anchor: "end", quiet: true });
}

export function said(state) {
  const { divisor, raw, divided } = both(state);
  const [a, b] = [raw, divided].map(({ weights }) => percent(Math.max(...weights)));
  const largest = `At d_k = ${state.width} the largest of the eight weights is ${a}`;
  if (divisor === 1) return `${largest}, the slope at cat ${tiny(raw.slope)}.`;
  const slopes = `the slope at cat is ${tiny(raw.slope)} and ${tiny(divided.slope)}`;
  return `${largest} undivided and ${b} divided; ${slopes}.`;
}

export function start(host) {
  const invite = "Set the divisor to 1, then widen the vectors: watch cat’s weight.";
  const { state } = example;
  const figure = new Figure(host, { title: "Widen the vectors", invite, state });
  figure.slider("width", "d_k: how many numbers a key has", WIDTHS, (width) => shown(width));
  const divisors = [
    ["one", "1: undivided"],
    ["root", "√d_k"],
    ["width", "d_k"],
  ];
  figure.select("by", "the scores are divided by", divisors);
  const alt = "Eight scores and weights, undivided and divided, and the slope at every width.";
  figure.drawing(324, alt, (d, now) => {
    const { raw, divided } = both(now);
    WORDS.forEach((word, i) =>
      d.text(89 + 34 * i, 10, word, { quiet: i !== RIGHT, bold: i === RIGHT }),
    );
    half(d, 10, "undivided", raw);
    half(d, 98, heading(now), divided);
    plot(d, now);
  });
  figure.tick(CLAIMS.drawn, checkDrawn);
  figure.tick(CLAIMS.alike, checkAlike);
  figure.begin(said);
}
