// Chapter 3, exercise 3.2: the look-up by weights, and its errors over ten days.

import { dot, mean, softmax } from "../numbers.js";
import { DAYS } from "./readings.js";

const MOMENTS = Array.from({ length: 96 }, (_, i) => i / 4); // a day, in hours

/** The softmax of the squared distances; chapter 3's width is 1. */
export const weights = (query, keys, width) =>
  softmax(keys.map((key) => -((query - key) ** 2) / (2 * width ** 2)));

export const lookUp = (query, keys, values, width) => dot(weights(query, keys, width), values);

/** The chapter's true temperature of its made-up days. */
export function truth(hour) {
  const angle = (2 * Math.PI * hour) / 24;
  return 12 + 6 * Math.cos(angle - (5 * Math.PI) / 4) + 2 * Math.cos(2 * angle);
}

function nearest(moment, hours, degrees) {
  const far = hours.map((hour) => Math.abs(moment - hour));
  return degrees[far.indexOf(Math.min(...far))];
}

const error = (guess) =>
  DAYS.map(([hours, degrees]) =>
    Math.sqrt(mean(MOMENTS.map((m) => (guess(m, hours, degrees) - truth(m)) ** 2))),
  );
const NEAREST = error(nearest);
const MEAN = error((_hour, _hours, degrees) => mean(degrees));

/** The errors over ten days, of the average with this width and of the simpler guesses. */
export function errors(width) {
  const average = error((moment, hours, degrees) => lookUp(moment, hours, degrees, width));
  const wins = average.filter((each, day) => each < 0.9 * Math.min(NEAREST[day], MEAN[day])).length;
  return { average: mean(average), nearest: mean(NEAREST), mean: mean(MEAN), wins };
}
