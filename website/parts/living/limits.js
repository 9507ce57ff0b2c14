// Chapter 13, section 13.2: Equation 13.2 for n rows times a matrix of 2048 × 2048 weights.

import { THREAD } from "./thread.js";

const D = 2048;
/** Operations and bytes a second. Of the H100 by the bytes of a number: as its maker states them. */
export const H100 = { peaks: { 4: 67e12, 2: 989e12, 1: 2 * 989e12 }, bandwidth: 3.35e12 };
const TEN = { multiply: [10, 1], fetch: [1, 10] };

export const operations = (n) => 2 * n * D * D;
export const bytes = (n, width) => width * (n * D + D * D + n * D);

/** What is measured in this setting: pairs of rows and seconds. */
export const measured = ({ machine, width, change }) =>
  machine === "cpu" && width === "4" && change === "none" ? THREAD.measured : [];

/** Peak and bandwidth. The CPU thread multiplies in float32, whatever it fetches. */
export function limits({ machine, width, change }) {
  const cpu = machine === "cpu";
  const [faster, nearer] = TEN[change] ?? [1, 1];
  return {
    peak: faster * (cpu ? THREAD.peak : H100.peaks[width]),
    bandwidth: nearer * (cpu ? THREAD.bandwidth : H100.bandwidth),
  };
}

/** The seconds of both, and the seconds that the step takes at least. */
export function times(state, n = state.n) {
  const { peak, bandwidth } = limits(state);
  const multiply = operations(n) / peak;
  const fetch = bytes(n, Number(state.width)) / bandwidth;
  return { multiply, fetch, least: Math.max(multiply, fetch) };
}

/** The rows for which both take equally long; Infinity where fetching always takes longer. */
export function corner(state) {
  const { peak, bandwidth } = limits(state);
  const width = Number(state.width);
  const gains = (2 * D * D) / peak - (2 * D * width) / bandwidth; // by each row
  return gains > 0 ? bytes(0, width) / bandwidth / gains : Infinity;
}
