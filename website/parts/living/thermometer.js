// Chapter 3, exercise 3.2: the drawing of the thermometer's readings, the look-up's curve and a table.

import { shown } from "../elements.js";
import { range } from "./living.js";
import { truth } from "./look_up.js";
import { dot, sum } from "../numbers.js";
import { DAYS } from "./readings.js";

export const SETS = {
  five: { hours: [5, 6, 8, 9, 12], degrees: [7, 6, 9, 11, 16], from: 4, to: 13, low: 4, high: 18 },
  forty: { hours: DAYS[0][0], degrees: DAYS[0][1], from: 0, to: 24, low: 4, high: 23 },
};
const BELL = { strength: 0.28, stroke: "none" }; // how close a key is
const TRUTH = { width: 1, dashed: "4 3", stroke: "var(--ink)" };

export const clock = (hour) => {
  const minutes = Math.round(60 * hour);
  return `${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, "0")}`;
};
export const digitsOf = ({ readings }) => (readings === "five" ? 0 : 1);
export const widthOf = ({ width }) => shown(width, width < 0.1 ? 2 : 1);

export function scales({ from, to, low, high }) {
  const x = (hour) => 30 + (312 * (hour - from)) / (to - from);
  const y = (degree) => 196 - (176 * (degree - low)) / (high - low);
  return { x, y, hour: (at) => from + ((at - 30) * (to - from)) / 312 };
}

function axes(d, { from, to, low, high }, { x, y }) {
  d.axes(30, 20, 196, 342, {
    up: range(low + 1, high, 5).map((degree) => [y(degree), String(degree)]),
    along: range(from, to, to - from > 12 ? 4 : 1).map((hour) => [x(hour), String(hour)]),
  });
  d.text(30, 9, "°C", { anchor: "end", quiet: true });
  d.text(0, 208, "hour", { anchor: "start", quiet: true });
}

/** The names of the lines, and how close a key is. */
function legend(d, state) {
  const name = (x, words) => d.text(x, 228, words, { anchor: "start" });
  d.dot(12, 228, 4, "value", { strength: 0.5 });
  name(22, "readings");
  d.segment(84, 228, 104, 228, { role: "query", width: 2 });
  name(109, "weighted average");
  if (state.readings === "forty") {
    d.segment(216, 228, 236, 228, TRUTH);
    name(241, "truth");
  }
  d.box(289, 223, 10, 10, "value", { strength: 1 });
  name(304, "answer");
  d.dot(8, 246, 3, "value", { strength: 0.25 });
  d.dot(19, 246, 6, "value", { strength: 0.6 });
  d.text(30, 246, "the larger and the fuller, the more weight", { anchor: "start" });
  d.box(5, 258, 14, 12, "query", BELL);
  const close = `how close: exp(−(q − k)² / 2w²), w = ${widthOf(state)}`;
  d.text(22, 264, close, { anchor: "start" });
}

/** `weightsOf(state)` says how much each reading counts. */
export function plot(d, state, weightsOf) {
  const [set, all] = [SETS[state.readings], weightsOf(state)];
  const { x, y } = scales(set);
  const step = (set.to - set.from) / 156;
  const hours = range(0, 156, 1).map((i) => set.from + i * step);
  const curve = (height, options) =>
    d.line(
      hours.map((h) => [x(h), height(h)]),
      options,
    );
  const bell = (h) => 196 - 46 * Math.exp(-((h - state.query) ** 2) / (2 * state.width ** 2));
  const under = [[30, 196], ...hours.map((h) => [x(h), bell(h)]), [342, 196]];
  d.line(under, { fill: "var(--query)", "fill-opacity": BELL.strength, stroke: "none" });
  axes(d, set, { x, y });
  if (state.readings === "forty") curve((h) => y(truth(h)), TRUTH);
  const average = (hour) => dot(weightsOf({ ...state, query: hour }), set.degrees);
  curve((h) => y(average(h)), { role: "query", width: 2 });
  set.hours.forEach((hour, i) =>
    d.dot(x(hour), y(set.degrees[i]), 3 + 9 * Math.sqrt(all[i]), "value", {
      strength: 0.25 + 0.75 * all[i],
    }),
  );
  const at = x(state.query);
  d.segment(at, 20, at, 196, { role: "query" });
  d.dot(at, 196, 8, "query");
  const answer = average(state.query);
  d.box(at - 5, y(answer) - 5, 10, 10, "value", { strength: 1 });
  const end = at > 250 ? "end" : "start";
  d.text(at + (end === "end" ? -12 : 12), 14, `${clock(state.query)}: ${shown(answer, 1)} °C`, {
    anchor: end,
    bold: true,
  });
  legend(d, state);
}

/** Hours, weights and degrees of the five readings that count most, and the weight of all others. */
export function table(d, state, all) {
  const set = SETS[state.readings];
  const heaviest = all
    .map((_, i) => i)
    .sort((a, b) => all[b] - all[a])
    .slice(0, 5)
    .sort((a, b) => a - b);
  const of = (list) => heaviest.map((i) => list[i]);
  const others = all.filter((_, i) => !heaviest.includes(i));
  const size = [others.length ? 38 : 46, 20];
  const digits = digitsOf(state);
  d.row(112, 280, of(set.hours), "key", { size, digits, top: 60 });
  const shares = of(all).map((each) => 100 * each);
  d.row(112, 306, shares, "query", { size, digits: 1, top: 100 });
  d.row(112, 332, of(set.degrees), "value", { size, digits, top: 80 });
  const keys = others.length ? `keys: 5 of ${all.length}` : "keys: the hours";
  [keys, "weights, %", "values, °C"].forEach((name, i) =>
    d.text(104, 290 + 26 * i, name, { anchor: "end" }),
  );
  if (!others.length) return;
  d.text(322, 290, "others", { quiet: true });
  d.row(303, 306, [100 * sum(others)], "query", { size, digits: 1, top: 100 });
}
