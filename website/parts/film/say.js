// What the film says with: a text is a list of parts, what is said as it is, or { mark, word }, a word in
// italics (`lang` is its language), in bold (a term) or as a mark of the model's.

import { order } from "../numbers.js";
import { chance, share, two } from "./scene.js";

/** The parts of a template, in which a line goes on as text does; a value may be a part or several. */
export function say(texts, ...values) {
  const parts = texts
    .flatMap((text, i) => [text.replace(/\s*\n\s*/g, " "), values[i] ?? []])
    .flat();
  const last = parts.length - 1;
  return parts
    .map((part, i) => {
      if (i === 0) return part.trimStart();
      return i === last ? part.trimEnd() : typeof part === "number" ? String(part) : part;
    })
    .filter((part) => part !== "");
}
export const special = (word) => /^<.*>$/.test(word);
const cited = (lang) => (word) =>
  special(word) ? { mark: "code", word } : { mark: "i", lang, word };
export const en = cited("en");
export const fr = cited("fr");
export const term = (word) => ({ mark: "b", word });
const COUNTED = "no one two three four five six seven eight nine ten eleven twelve".split(" ");
export const counted = (n) => COUNTED[n] ?? String(n);
export const listed = (items) =>
  items.flatMap((item, i) => (i ? [i < items.length - 1 ? ", " : " and ", item] : [item]));
export const few = (row) => `${Array.from(row.slice(0, 3), two).join(", ")} …`;
export const looking = (who, weights, whom) =>
  `“${who}” looks at ${Array.from(weights, (w, s) => `“${whom[s]}” ${share(w)}`).join(", ")}`;
export const likely = ({ top, probabilities }, name, count = 3) =>
  top
    .slice(0, count)
    .map((id) => `${name(id)} ${chance(probabilities[id])}`)
    .join(", ");
export const best = (weights) => order(weights)[0];

/** How many of these heads look most at whom, as "two look most at …, one at …". */
export function tally(looks, named) {
  const counts = new Map();
  for (const s of looks.map(best)) counts.set(named(s), (counts.get(named(s)) ?? 0) + 1);
  const most = [...counts].sort((a, b) => b[1] - a[1]);
  const of = (word) => (word === "itself" ? word : en(word));
  if (most.length === 1) return [`all ${counted(looks.length)} look most at `, of(most[0][0])];
  return listed(
    most.map(([word, n], i) => {
      const look = i ? "" : n === 1 ? "looks most " : "look most ";
      return [`${counted(n)} ${look}at `, of(word)];
    }),
  ).flat();
}
