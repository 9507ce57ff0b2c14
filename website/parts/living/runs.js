// Chapter 9, sections 9.3 and 9.4: the small translator's runs, by rate, warm-up and norm.

import { mean } from "../numbers.js";
import { RATES, RUNS, WARM_UPS } from "./small_runs.js";

export const HEALTHY = 0.008; // section 9.3's rate
export const STEPS = 100;
export const BLOCK = 10; // steps whose losses are stored as one mean
export const LOG_V = Math.log(316); // of the French words
export const COUNTING = 3.4; // what the counting model of section 9.1 pays
const SEEDS = 3;

/** The rate at step n, from 1 on: it rises and stays, as in section 9.3. */
export const rateAt = ({ rate, warmUp }, n) => rate * Math.min(n / Math.max(warmUp, 1), 1);

/** The losses of three runs, ten means each. */
export function runs({ norm, warmUp, rate }) {
  const at = SEEDS * (WARM_UPS.indexOf(warmUp) * RATES.length + RATES.indexOf(rate));
  return RUNS[norm].slice(at, at + SEEDS);
}

/** The mean losses of the last 20 steps. */
export const ends = (state) => runs(state).map((means) => (means.at(-1) + means.at(-2)) / 2);

export const learns = (state) => ends(state).every((end) => end < COUNTING);

export const average = (state) => mean(ends(state));

/** The rate whose three runs end lowest on average, with this norm and warm-up. */
export function best(state) {
  const all = RATES.map((rate) => average({ ...state, rate }));
  return RATES[all.indexOf(Math.min(...all))];
}
