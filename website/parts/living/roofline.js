// Chapter 13, section 13.2: what a product waits for, with more rows and on other machines.

import { corner, measured, times } from "./limits.js";
import { Figure, range } from "./living.js";
import { bars, plot, some, time } from "./roof.js";

export const CLAIM = "64 rows take less than 25 times as long as one row";
export const example = {
  state: { n: 1, machine: "cpu", width: "4", change: "none" },
  shows: ["fetching", "multiplying", "4096"],
};
export const breaks = { slider: "rows", keys: ["End"], claim: 1, because: "4,096 rows" };
export const ROWS = [...range(0, 9, 1).map((power) => 2 ** power), 768, 1024, 2048, 4096];
const NAMES = { cpu: "the CPU thread", h100: "the H100" };

const many = (n) => n.toLocaleString("en");
const inRows = (n) => `${many(n)} ${n === 1 ? "row" : "rows"}`;
const help = (n) => `by Equation 13.2, quicker multiplication would not help ${inRows(n)}`;

/** The chapter's claim, for the times of Equation 13.2. */
export function checkShared(state) {
  const [one, all] = [1, 64].map((n) => times(state, n).least);
  const at = corner(state);
  const holds = all < 25 * one;
  const both = `By Equation 13.2, one row takes ${time(state, one)} at least, 64 rows`;
  const seen = new Map(measured(state));
  const also = seen.size ? ` Measured: ${some(seen.get(64) / seen.get(1))} times.` : "";
  const why =
    at < 1
      ? " Even one row waits for its multiplications, so nothing is shared."
      : ` From ${some(at)} rows on, each row adds its multiplications.`;
  const because = `${both} ${time(state, all)}: ${some(all / one)} times as long.${holds ? also : why}`;
  return { holds, because };
}

/** What the chapter says of a step that is bound by bandwidth. */
export function checkHelp(state) {
  const { multiply, fetch, least } = times(state);
  const holds = fetch >= multiply;
  const both = `Fetching takes ${time(state, fetch)}, multiplying ${time(state, multiply)}.`;
  const quick = time(state, Math.max(fetch, multiply / 10));
  const would = holds
    ? "A multiplier ten times as quick would only wait longer."
    : `Multiplied ten times as quickly, it would be ${quick} at least, not ${time(state, least)}.`;
  return { holds, text: help(state.n), because: `${both} ${would}` };
}

function where(state) {
  const at = corner(state);
  if (at < 1) return "Multiplying takes longer from the first row on.";
  if (at === Infinity)
    return "Fetching takes longer with any number of rows, because these are carried, too.";
  return `Both take equally long with ${some(at)} rows of 2,048 numbers.`;
}

export function said(state) {
  const { multiply, fetch, least } = times(state);
  const waits = fetch >= multiply ? "bytes" : "multiplication";
  const what = `${inRows(state.n)} on ${NAMES[state.machine]}: the product waits for ${waits}`;
  const short = state.machine === "cpu" && state.width !== "4";
  const supposed = " (We suppose that the thread multiplies short numbers at the same rate.)";
  return `${what}, ${time(state, least)} at least. ${where(state)}${short ? supposed : ""}`;
}

export function start(host) {
  const { state } = example;
  const invite = "Add rows until quicker multiplication would help; then change machine and bytes.";
  const figure = new Figure(host, { title: "Share the weights", invite, state });
  figure.slider("n", "rows that share the weights", ROWS, many);
  const machines = [
    ["cpu", "one CPU thread, as measured here"],
    ["h100", "an H100, as its maker states it"],
  ];
  figure.select("machine", "the machine", machines);
  const widths = [
    ["4", "4, as in float32"],
    ["2", "2, as in bfloat16"],
    ["1", "1, with 8 bits"],
  ];
  figure.select("width", "bytes of a number", widths);
  const changes = [
    ["none", "stays as it is"],
    ["multiply", "multiplies ten times as fast"],
    ["fetch", "fetches ten times as fast"],
  ];
  figure.select("change", "suppose that it", changes);
  const alt = "How long fetching and multiplying take, as bars, and as lines over the rows.";
  figure.drawing(316, alt, (d, now) => {
    bars(d, now);
    plot(d, now);
  });
  figure.tick(CLAIM, checkShared);
  figure.tick(help(state.n), checkHelp);
  figure.begin(said);
}
