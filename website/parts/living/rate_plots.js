// Chapter 9, section 9.4: the rate and the losses over the steps, and where they end over the rates.

import { range } from "./living.js";
import { BLOCK, COUNTING, ends, HEALTHY, LOG_V, rateAt, runs, STEPS } from "./runs.js";
import { RATES } from "./small_runs.js";

const [LEFT, RIGHT] = [46, 340];
const COLOURS = { pre: "memory", post: "value" }; // as in Figure 7.9
const [LEAST, MOST, BREAK] = [2, 100, 6]; // losses; above the break they go by logarithms
const MARKED = [2, 3, 4, 5, 6, 20, 100];
const RATE = { top: 24, base: 64 };
const LOSSES = { top: 96, base: 196 };
const ENDS = { top: 242, base: 342 };

const along = (share) => LEFT + (RIGHT - LEFT) * share;
const atStep = (n) => along(n / STEPS);
const [first, last] = [RATES[0], RATES.at(-1)].map(Math.log);
const atRate = (rate) => along((Math.log(rate) - first) / (last - first));

/** Two thirds of the height up to the break, the others above it. */
function height({ top, base }, loss) {
  const under = (Math.min(loss, BREAK) - LEAST) / (BREAK - LEAST);
  const over = Math.log(Math.max(loss, BREAK) / BREAK) / Math.log(MOST / BREAK);
  return base - (base - top) * (0.68 * under + 0.32 * over);
}

const without = (state) => ({ ...state, warmUp: 0 });
const key = (d, y, words) => d.text(LEFT, y, words, { anchor: "start", quiet: true });

function axes(d, { top, base }, title, marks) {
  d.text(LEFT, top - 11, title, { anchor: "start", bold: true });
  d.axes(LEFT, top, base, RIGHT, { up: marks });
}

function rate(d, state) {
  const { top, base } = RATE;
  axes(d, RATE, "the rate of each step", [[base, "0"]]);
  d.text(RIGHT, top - 11, `up to ${state.rate}`, { anchor: "end", quiet: true });
  const rates = (of) =>
    range(1, STEPS, 1).map((n) => [atStep(n), base - ((base - top) * rateAt(of, n)) / of.rate]);
  d.line(rates(without(state)), { lit: false });
  d.line(rates(state), { role: COLOURS[state.norm], width: 2.5 });
}

/** The panels of losses share their heights and marks. */
function lossAxes(d, panel, title) {
  const y = (loss) => height(panel, loss);
  axes(
    d,
    panel,
    title,
    MARKED.map((loss) => [y(loss), String(loss)]),
  );
  const learned = panel.base - y(COUNTING);
  d.box(LEFT, y(COUNTING), RIGHT - LEFT, learned, "value", { strength: 0.16, stroke: "none" });
  d.segment(LEFT, y(LOG_V), RIGHT, y(LOG_V), { dashed: "4 3", width: 1 });
  for (const up of [6, 10])
    d.segment(LEFT - 5, y(BREAK) - up + 3, LEFT + 5, y(BREAK) - up - 3, { width: 1 });
  return y;
}

function losses(d, state) {
  const y = lossAxes(d, LOSSES, "the losses of three runs");
  d.text(RIGHT, LOSSES.top - 11, "above 6 by logarithms", { anchor: "end", quiet: true });
  const lines = (of, options) => {
    for (const run of runs(of))
      d.line(
        run.map((loss, i) => [atStep((i + 0.5) * BLOCK), y(loss)]),
        options,
      );
  };
  lines(without(state), { lit: false });
  lines(state, { role: COLOURS[state.norm], width: 1.8 });
  for (const n of [0, 25, 50, 75]) d.text(atStep(n), LOSSES.base + 12, String(n), { quiet: true });
  d.text(RIGHT, LOSSES.base + 12, "step 100", { anchor: "end", quiet: true });
}

function endsOverRates(d, state) {
  const y = lossAxes(d, ENDS, "where they end, at every highest rate");
  const lines = (of, options) => {
    for (const seed of [0, 1, 2])
      d.line(
        RATES.map((each) => [atRate(each), y(ends({ ...of, rate: each })[seed])]),
        options,
      );
  };
  lines(without(state), { lit: false });
  lines(state, { role: COLOURS[state.norm], width: 1.8 });
  const [x, role] = [atRate(state.rate), COLOURS[state.norm]];
  d.segment(x, ENDS.top, x, ENDS.base, { dashed: true });
  for (const end of ends(state)) d.dot(x, y(end), 4, role);
  const named = [
    [0.01, "÷ 100"],
    [0.1, "÷ 10"],
    [1, "healthy"],
    [10, "× 10"],
    [100, "× 100"],
  ];
  for (const [times, words] of named) {
    const at = atRate(times * HEALTHY);
    const anchor = times === 100 ? "end" : "middle";
    d.text(times === 100 ? RIGHT + 4 : at, ENDS.base + 12, words, { anchor, quiet: true });
  }
}

export function draw(d, state) {
  rate(d, state);
  losses(d, state);
  endsOverRates(d, state);
  key(d, 374, "grey: without warm-up; dashed: log V, knowing nothing");
  key(d, 390, "shaded: lower than the counting model’s 3.40");
}
