// Chapter 4, sections 4.1 and 4.2: eight scores at every width, and what a softmax tells one of them.

import { softmax } from "./numbers.js";
import { SCORES } from "./slopes.js";

export const RIGHT = 7; // the right key, cat
const NUDGE = 0.01;

/** The eight scores of Figure 4.2, whose width is 64, as they would be at another width. */
export const scoresAt = (width) => SCORES.map((score) => score * Math.sqrt(width / 64));

/** What the softmax of the scores, divided by `divisor`, tells the right key's score. */
export function softened(width, divisor) {
  const scores = scoresAt(width).map((score) => score / divisor);
  const weights = softmax(scores);
  const a = weights[RIGHT];
  const nudged = softmax(scores.map((score, i) => score + (i === RIGHT ? NUDGE : 0)));
  return { scores, weights, slope: a * (1 - a), rise: nudged[RIGHT] - a };
}
