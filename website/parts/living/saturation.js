// Chapter 4, sections 4.1 and 4.2: eight scores at every width, and what a softmax tells one of them.

import { softmax } from "../numbers.js";
import { SCORES } from "./slopes.js";

export const RIGHT = 7; // the right key, cat
const NUDGE = 0.01;

/** What the softmax of a width's scores, divided by `divisor`, tells the right key's score. */
export function softened(width, divisor) {
  const scores = SCORES[Math.log2(width)].map((score) => score / divisor);
  const weights = softmax(scores);
  const a = weights[RIGHT];
  const nudged = softmax(scores.map((score, i) => score + (i === RIGHT ? NUDGE : 0)));
  return { scores, weights, slope: a * (1 - a), rise: nudged[RIGHT] - a };
}
