// Chapter 4, sections 4.1 and 4.2: wider vectors, larger scores, a softmax that saturates.

import { percent, shown } from "../elements.js";
import { Figure, range, tiny } from "./living.js";
import { RIGHT, softened } from "./saturation.js";
import { MEDIANS } from "./slopes.js";

export const CLAIMS = {
  drawn: "in the drawn example, division by 8 makes the right key's slope 1000 times larger",
  alike: "divided by √d_k, the median slope at the right key is alike for d_k = 1, 1024",
};
const WORDS = ["the", "old", "queen", "does", "not", "see", "the", "cat"];
const WIDTHS = range(0, 10, 1).map((n) => 2 ** n);
const DIVISORS = { one: () => 1, root: Math.sqrt, width: (width) => width };
const NAMES = { one: "1", root: "√d_k", width: "d_k" };

const short = (divisor) => shown(divisor, Number.isInteger(divisor) ? 0 : 2);
const both = ({ width, by }) => {
  const divisor = DIVISORS[by](width);
  return { divisor, raw: softened(width, 1), divided: softened(width, divisor) };
};

function checkDrawn(state) {
  const { divisor, raw, divided } = both(state);
  const times = divided.slope / raw.slope;
  const many = times > 1000 ? Math.round(times).toLocaleString("en") : shown(times, 1);
  const rises = times > 1e6 ? "more than a million times" : `${many} times`;
  const slopes = `At d_k = ${state.width}, division by ${short(divisor)}`;
  const small = times <= 1000 && divisor > 1 ? ": the scores are small by themselves" : "";
  const because =
    divisor === 1
      ? "Nothing is divided: the slope stays as it is."
      : `${slopes} makes it ${rises} as large${small}.`;
  return { holds: times > 1000, because };
}

function checkAlike({ by }) {
  const [narrow, wide] = [MEDIANS[by][0], MEDIANS[by][10]];
  const holds = wide / narrow > 0.5 && wide / narrow < 2;
  const text = CLAIMS.alike.replace("√d_k", NAMES[by]);
  const medians = `Of a thousand queries: ${tiny(narrow)} and ${tiny(wide)}`;
  return {
    holds,
    text,
    because: holds ? `${medians}.` : `${medians}. Half of the queries learn nothing.`,
  };
}

function half(d, y, title, { scores, weights, rise }) {
  d.text(208, y, title, { bold: true, size: 14 });
  ["scores", "weights, %"].forEach((name, i) =>
    d.text(4, y + 46 + 26 * i, name, { anchor: "start" }),
  );
  WORDS.forEach((word, i) => {
    d.text(89 + 34 * i, y + 22, word, { quiet: i !== RIGHT, bold: i === RIGHT });
    d.cell(72 + 34 * i, y + 36, scores[i], "plain", { digits: 1 });
    d.cell(72 + 34 * i, y + 62, 100 * weights[i], "query", { top: 100, bold: i === RIGHT });
  });
  d.ring(72 + 34 * RIGHT, y + 36, 34, 46);
  const rises = rise > 5e-8 ? shown(100 * rise, 5) : tiny(100 * rise);
  const told = `if cat’s score rises by 0.01, its weight rises by ${rises} %`;
  d.text(344, y + 98, told, { anchor: "end" });
}

/** Figure 4.3, with the drawn example as dots: the slope at the right key at every width. */
function plot(d, { width, by }) {
  const [top, base] = [254, 372];
  const x = (n) => 62 + 27 * n;
  const y = (slope) => top + (base - top) * Math.min(1, -Math.log10(slope) / 24);
  d.line([
    [54, top],
    [54, base],
    [346, base],
  ]);
  [0, -8, -16, -24].forEach((power) =>
    d.text(48, y(10 ** power), power ? tiny(10 ** power).slice(2) : "1", {
      anchor: "end",
      quiet: true,
    }),
  );
  [0, 2, 4, 6, 8, 10].forEach((n) => d.text(x(n), base + 12, String(2 ** n), { quiet: true }));
  d.text(346, base + 28, "d_k; slope a(1 − a) at the right key", { anchor: "end", quiet: true });
  d.line(
    MEDIANS.one.map((slope, n) => [x(n), y(slope)]),
    { role: "key", width: 2 },
  );
  if (by !== "one")
    d.line(
      MEDIANS[by].map((slope, n) => [x(n), y(slope)]),
      { role: "query", width: 2 },
    );
  const n = Math.log2(width);
  d.segment(x(n), top, x(n), base, { dashed: true });
  const { raw, divided } = both({ width, by });
  d.dot(x(n), y(raw.slope), 5, "key");
  d.dot(x(n), y(divided.slope), 5, "query");
  d.text(60, base - 26, "lines: medians of Figure 4.3", { anchor: "start", quiet: true });
  d.text(60, base - 10, "dots: the scores above", { anchor: "start", quiet: true });
}

export function start(host) {
  const figure = new Figure(host, { title: "Widen the vectors", state: { width: 64, by: "root" } });
  figure.slider(
    "width",
    "d_k: how many numbers a key has",
    () => WIDTHS,
    (width) => shown(width),
  );
  const divisors = [
    ["one", "1: undivided"],
    ["root", "√d_k"],
    ["width", "d_k"],
  ];
  figure.select("by", "the scores are divided by", divisors);
  const alt = "Eight scores and weights, undivided and divided, and the slope at every width.";
  figure.drawing(410, alt, (d, state) => {
    const { divisor, raw, divided } = both(state);
    half(d, 10, "undivided", raw);
    const r = short(divisor);
    const name = {
      one: "divided by 1",
      root: `divided by √${state.width} = ${r}`,
      width: `divided by ${r}`,
    };
    half(d, 134, name[state.by], divided);
    plot(d, state);
  });
  figure.tick(CLAIMS.drawn, checkDrawn);
  figure.tick(CLAIMS.alike, checkAlike);
  figure.begin((state) => {
    const { raw, divided } = both(state);
    const [a, b] = [raw, divided].map(({ weights }) => percent(Math.max(...weights)));
    return (
      `The largest of the eight weights is ${a} undivided and ${b} divided; ` +
      `the slope at cat is ${tiny(raw.slope)} and ${tiny(divided.slope)}.`
    );
  });
}
