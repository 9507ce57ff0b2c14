// Chapter 9, section 9.4: the small translator at other rates, with other warm-ups, in post-LN.

import { Figure, list, tiny } from "./living.js";
import { draw } from "./rate_plots.js";
import { average, best, COUNTING, ends, HEALTHY, LOG_V, learns, rateAt, STEPS } from "./runs.js";
import { RATES, WARM_UPS } from "./small_runs.js";

/** The ticks ask of one network at one rate what the chapter claims of both at their best. */
export const CLAIM = "learn with warm-up and without, each at its best rate";
export const example = {
  state: { rate: HEALTHY, warmUp: 20, norm: "pre" },
  shows: ["up to 0.008", "step 100", "shaded: lower than the counting model’s 3.40"],
};
export const breaks = { slider: "highest rate", keys: ["End"], claim: 0, because: "5.76" };
const NAMES = { pre: "pre-LN", post: "post-LN" };

/** 2.70, and 60.3 */
export const nats = (loss) => loss.toFixed(loss < 10 ? 2 : 1);
const three = (state) => list(ends(state).map(nats));
const warm = ({ warmUp }) => (warmUp ? `with ${warmUp} steps of warm-up` : "without warm-up");

/** 0.0004, and 8.0·10⁻⁷ */
const short = (rate) => (rate < 1e-5 ? tiny(rate) : String(Number(rate.toPrecision(2))));

/** 0.8 = healthy × 100 */
export function besideHealthy(rate) {
  if (rate === HEALTHY) return `${rate}, the healthy one`;
  const times = Math.round(Math.max(rate / HEALTHY, HEALTHY / rate));
  return `${rate} = healthy ${rate > HEALTHY ? "×" : "÷"} ${times}`;
}

function compared(state) {
  const other = best(state);
  if (other === state.rate) return `Of all rates here this one is best, ${warm(state)}.`;
  const burst = state.rate > other && ends(state).every((end) => end > LOG_V);
  if (burst) return `Above log V = ${nats(LOG_V)} they're sure and wrong.`;
  const how = learns(state) ? "" : `The steps are too ${state.rate > other ? "long" : "short"}: `;
  return `${how}${other} is best on average, ${warm(state)}.`;
}

export function checkLearns(state) {
  const asked = `under ${nats(COUNTING)}, the counting model's loss`;
  const text = `${NAMES[state.norm]} learns ${warm(state)} at rate ${state.rate}`;
  const because = `The three runs end at ${three(state)} (asked: ${asked}). ${compared(state)}`;
  return { holds: learns(state), text, because };
}

/** How many of three runs end lower with the warm-up than without. */
function gaining(state) {
  const without = ends({ ...state, warmUp: 0 });
  return ends(state).filter((end, seed) => end < without[seed]).length;
}

export function checkGains(state) {
  const warmUp = state.warmUp ? `${state.warmUp} steps of warm-up` : "warm-up";
  const text = `${NAMES[state.norm]} gains nothing from ${warmUp} at rate ${state.rate}`;
  if (!state.warmUp) return { holds: null, text, because: "These runs have none. Give them some." };
  const without = { ...state, warmUp: 0 };
  const lower = gaining(state);
  const told = `Without it the three runs end at ${three(without)}.`;
  if (lower === 0) return { holds: true, text, because: `${told} All three are lower.` };
  if (lower < 3) {
    const split = `With it ${lower === 1 ? "one ends" : "two end"} lower, so they don't decide.`;
    return { holds: null, text, because: `${told} ${split}` };
  }
  const end = learns(without)
    ? "though they have learned, too"
    : learns(state)
      ? "and only with it have they all learned"
      : "though with it they haven't all learned, either";
  return { holds: false, text, because: `${told} All three are higher, ${end}.` };
}

function way(state) {
  const first = rateAt(state, 1);
  if (first === state.rate) return `All ${STEPS} steps have the rate ${state.rate}`;
  const rising = state.warmUp < STEPS ? `${state.warmUp} of ${STEPS}` : `all ${STEPS}`;
  return `In ${rising} steps the rate rises from ${short(first)} to ${state.rate}`;
}

export const said = (state) =>
  `${way(state)}. On average the three ${NAMES[state.norm]} runs end at ${nats(average(state))} nats.`;

export function start(host) {
  const { state } = example;
  const invite = "Bet, then move the rate to its end. Can a longer warm-up save it?";
  const figure = new Figure(host, { title: "The rate and its warm-up", invite, state });
  figure.slider("rate", "highest rate", RATES, besideHealthy);
  figure.slider("warmUp", "steps of warm-up", WARM_UPS, (n) => (n ? `${n} of ${STEPS}` : "none"));
  figure.select("norm", "norms", [
    ["pre", "pre-LN, as in this chapter"],
    ["post", "post-LN"],
  ]);
  const alt =
    "The rate and the losses of three runs, step by step; below, where they end, over all rates.";
  figure.drawing(398, alt, draw);
  figure.tick(CLAIM, checkLearns);
  figure.tick(CLAIM, checkGains);
  figure.begin(said);
}
