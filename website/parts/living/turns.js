// Chapter 6, sections 6.2 and 6.5: clocks, and a query and a key that turn like their hands.

import { dot } from "../numbers.js";

export const QUERY = [0.9, 0.4]; // of cat
export const KEY = [-0.2, 0.9]; // of black
const TURNS = { both: [1, 1], query: [1, 0], key: [0, 1], against: [1, -1] };

/** How far clock i turns from one position to the next. */
export const speed = (clock) => 10000 ** ((-2 * clock) / 64);

/** The sine and the cosine of a clock at a position: two columns of the positional encoding. */
export const hand = (position, clock) => [
  Math.sin(speed(clock) * position),
  Math.cos(speed(clock) * position),
];

/** A pair, turned like the hand of a clock. */
export function turned([a, b], angle) {
  const [sine, cosine] = [Math.sin(angle), Math.cos(angle)];
  return [cosine * a - sine * b, sine * a + cosine * b];
}

/** Query and key at their positions, and their scores: turned, and with positions added. */
export function scored(m, n, clock, turn = "both") {
  const omega = speed(clock);
  const [ofQuery, ofKey] = TURNS[turn];
  const query = turned(QUERY, ofQuery * m * omega);
  const key = turned(KEY, ofKey * n * omega);
  const plus = (pair, position) => pair.map((each, i) => each + hand(position, clock)[i]);
  return { query, key, rotary: dot(query, key), added: dot(plus(QUERY, m), plus(KEY, n)) };
}
