// Chapter 7, sections 7.1 to 7.3: what was measured in new stacks, by wiring and number of layers.

import { tenTo } from "../drawing.js";
import { shown } from "../elements.js";
import { DEPTHS } from "./depths.js";
import { tiny } from "./living.js";

export const SAME = 1e-6; // the chapter's bound for words that are the same
export const MOST = DEPTHS.plain.length;
/** How the two boxes wire a stack. */
export const wireOf = ({ add, norm }) =>
  add ? (norm ? "post" : "add") : norm ? "norm_only" : "plain";

const WITH = {
  plain: ["plain layer", ""],
  add: ["layer", " with addition"],
  norm_only: ["layer", " with a norm alone"],
  post: ["layer", " of Add & Norm"],
};

/** "8 layers of Add & Norm" */
export function named(state) {
  const [layer, how] = WITH[wireOf(state)];
  return `${state.n} ${layer}${state.n === 1 ? "" : "s"}${how}`;
}

/** Three new stacks, measured: the gradient before layer 1, the own parts of words and gradients. */
export function measuredIn(state, n = state.n) {
  const row = DEPTHS[wireOf(state)][n - 1];
  return { arriving: row.slice(0, 3), words: row.slice(3, 6), gradients: row.slice(6) };
}

/** 0.415, 0.0841, and what float32 can hardly see as no more than that. */
export const part = (own) => (own < SAME ? "under 10⁻⁶" : own < 0.001 ? tiny(own) : String(own));

/** 0.90, 0.012, 149, and 9.1·10⁶ */
export function times(ratio) {
  if (ratio < 0.1) return ratio < 0.001 ? tiny(ratio) : ratio.toPrecision(2);
  if (ratio < 1000) return shown(ratio, ratio < 10 ? 2 : 0);
  const power = Math.floor(Math.log10(ratio));
  return `${shown(ratio / 10 ** power, 1)}·${tenTo(power)}`;
}
