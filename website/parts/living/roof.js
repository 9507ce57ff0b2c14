// Chapter 13, section 13.2: the times of a product as bars, and over the rows as in Figure 13.4.

import { corner, measured, times } from "./limits.js";
import { range } from "./living.js";

const MOST = 4096;
const UNITS = { cpu: ["ms", 1e3], h100: ["µs", 1e6] };
const [LEFT, RIGHT, TOP, BASE] = [48, 326, 80, 230];
const asItIs = (state) => ({ ...state, change: "none" });

/** Seconds in the unit of the machine. */
export function time({ machine }, seconds) {
  const [unit, many] = UNITS[machine];
  const value = seconds * many;
  const digits = value < 100 ? value.toPrecision(value < 1 ? 2 : 3) : value.toFixed();
  return `${digits}\u00a0${unit}`;
}

/** A number of rows at which two times are equal. */
export const some = (rows) => rows.toFixed(rows < 1 ? 2 : rows < 10 ? 1 : 0);

/** Two bars; the product waits for the longer one, which is bold. */
export function bars(d, state) {
  const { least, fetch, multiply } = times(state);
  const rows = [
    ["fetching", "key", fetch],
    ["multiplying", "query", multiply],
  ];
  rows.forEach(([name, role, seconds], i) => {
    const [y, bold] = [12 + 26 * i, seconds === least];
    d.text(4, y, name, { anchor: "start", role, bold });
    d.box(84, y - 9, Math.max(0.5, (186 * seconds) / least), 18, role, { strength: 0.6 });
    d.text(346, y, time(state, seconds), { anchor: "end", bold });
  });
}

/** The scales of both axes, by logarithms; the machine as it is can always be seen. */
function scales(state) {
  const all = [state, asItIs(state)].flatMap((each) => [1, MOST].map((n) => times(each, n)));
  const power = (seconds) => Math.log10(seconds * UNITS[state.machine][1]);
  const powers = all.flatMap(({ fetch, multiply }) => [power(fetch), power(multiply)]);
  const [low, high] = [Math.floor(Math.min(...powers)), Math.ceil(Math.max(...powers))];
  const height = (at) => BASE - ((BASE - TOP) * (at - low)) / (high - low);
  const x = (n) => LEFT + ((RIGHT - LEFT) * Math.log2(n)) / Math.log2(MOST);
  return { low, high, height, x, y: (seconds) => height(power(seconds)) };
}

function axes(d, state, { low, high, height, x }) {
  d.axes(LEFT, TOP, BASE, RIGHT, {
    up: range(low, high, high - low > 5 ? 2 : 1).map((at) => [height(at), String(10 ** at)]),
    along: range(0, Math.log2(MOST), 2).map((at) => [x(2 ** at), String(2 ** at)]),
  });
  d.text(LEFT - 6, TOP - 18, UNITS[state.machine][0], { anchor: "end", quiet: true });
  d.text(RIGHT, BASE + 30, "rows", { anchor: "end", quiet: true });
}

function curve(d, state, { x, y }, pick, options) {
  const rows = range(0, Math.log2(MOST), 0.125).map((power) => 2 ** power);
  d.line(
    rows.map((n) => [x(n), y(times(state, n)[pick])]),
    options,
  );
}

export function plot(d, state) {
  const scale = scales(state);
  const { x, y } = scale;
  axes(d, state, scale);
  const keys = ["grey band: the product takes at least so long"];
  if (state.change !== "none") {
    curve(d, asItIs(state), scale, "least", { lit: false, width: 3, dashed: "2 5" });
    keys.push("dotted: the machine as it is");
  }
  curve(d, state, scale, "least", { lit: false, width: 7 });
  curve(d, state, scale, "fetch", { role: "key", width: 2 });
  curve(d, state, scale, "multiply", { role: "query", width: 2 });
  const at = corner(state);
  if (at >= 1 && at <= MOST) {
    d.dot(x(at), y(times(state, at).least), 6, "plain");
    const anchor = x(at) < LEFT + 40 ? "start" : x(at) > RIGHT - 20 ? "end" : "middle";
    d.text(x(at), TOP - 8, `equal at ${some(at)}`, { anchor });
    d.segment(x(at), TOP + 2, x(at), y(times(state, at).least) - 8, { lit: false, width: 1 });
  }
  const now = times(state);
  d.segment(x(state.n), TOP, x(state.n), BASE, { dashed: true });
  d.dot(x(state.n), y(now.fetch), 5, "key");
  d.dot(x(state.n), y(now.multiply), 5, "query");
  for (const [n, seconds] of measured(state)) d.dot(x(n), y(seconds), 3.5, "word");
  if (measured(state).length) keys.push("small dots: measured, as in Figure 13.4");
  keys.forEach((words, i) =>
    d.text(LEFT, BASE + 50 + 16 * i, words, { anchor: "start", quiet: true }),
  );
}
