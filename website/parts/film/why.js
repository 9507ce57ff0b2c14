// The steps of the first act, as in steps.js: what is said holds for each noun that can be followed.

import { shown } from "../elements.js";
import { asks, again, both, colours, cut, moves, nouns, point } from "./acts/plane.js";
import { en, fr, listed, say, term } from "./say.js";
import { share } from "./scene.js";

const NAMES = ["first", "second"];
const sides = ([x, y]) => {
  const across =
    Math.abs(x) >= 0.5 && `${shown(Math.abs(x), 1)} to the ${x > 0 ? "right" : "left"}`;
  const up = Math.abs(y) >= 0.5 && `${shown(Math.abs(y), 1)} ${y > 0 ? "up" : "down"}`;
  return [across, up].filter(Boolean).join(" and ") || "hardly at all";
};
const less = (to, from) => to.map((x, i) => x - from[i]);
const named = (word) => (word === "<eos>" ? "the end" : word);
const looked = (words, shares) =>
  words.map((word, s) => `“${named(word)}” ${share(shares[s])}`).join(", ");
/** Whom the first look goes to most: the noun, or a verb that says one or many, too. */
const most = (shares) => shares.indexOf(Math.max(...shares));

const STEPS = [
  {
    name: "A word is a point",
    draw: point,
    says: ({ noun }) => say`
      This model, a small relative of ChatGPT, translates English into French. In it ${en(noun)} is 64
      numbers, so a point in a space of 64 directions. Two are drawn, which we found afterwards: nouns
      that are feminine in French lie mostly on the right, plurals mostly above.`,
    seen: ({ noun, ways, place }) => `“${noun}” lies ${sides(ways[0][place])} of the middle`,
  },
  {
    name: "“the” can’t choose alone",
    draw: colours,
    says: ({ noun }) => say`
      In French ${en("the")} is ${fr("la")} before a feminine noun, ${fr("les")} before a plural, and else
      ${fr("le")}. The colours show what the model would write if ${en("the")} ended there. But ${en("the")}
      starts at one point, whatever follows. How can it know what to be before ${en(noun)}?`,
    seen: ({ ways }) =>
      `“the” starts ${sides(ways[0][0])} of the middle. “le” is written in the lower left, “la” in the lower right, “les” above`,
  },
  {
    name: "So it asks",
    draw: asks,
    says({ noun, words, looks: [w], place }) {
      const s = most(w);
      const gets =
        s === place
          ? say`${en(noun)} gets most, ${share(w[s])}`
          : say`${en(words[s])} gets most, ${share(w[s])}, for a verb, too, says one or many, and
              ${en(noun)} gets ${share(w[place])}`;
      return say`
        This is ${term("attention")}. ${en("the")} makes a ${term("query")}, what it looks for, and each
        word a ${term("key")}, how it’s found. The better a key fits the query, the larger is that
        word’s share of the answer. ${gets}.`;
    },
    seen: ({ words, looks }) => `Shares: ${looked(words, looks[0])}`,
  },
  {
    name: "The answers move it",
    draw: moves,
    says({ noun, ways, arrows, place }) {
      return say`
        Each word hands over a ${term("value")}, here an arrow (pale: the whole value of ${en(noun)}).
        Its share says how much of it counts: ${en(noun)} pulls ${sides(arrows[0][place])}. All are
        added to the point of ${en("the")}, and so it moves: ${sides(less(ways[1][0], ways[0][0]))}.`;
    },
    seen: ({ words, arrows }) =>
      words.map((word, s) => `“${named(word)}” pulls ${sides(arrows[0][s])}`).join("; "),
  },
  {
    name: "Then it asks once more",
    draw: again,
    says({ noun, trace, looks, place, article }) {
      return say`
        Next each word goes alone through a small network, which moves it, too (grey). By now all words
        have changed, so in a second layer ${en("the")} asks again, and gives ${en(noun)}
        ${share(looks[1][place])}. It ends where the model writes ${fr(article)}:
        ${fr(trace.text)}.`;
    },
    seen: ({ words, arrows, end }) =>
      `${words.map((word, s) => `“${named(word)}” pulls ${sides(arrows[1][s])}`).join("; ")}. “the” ends ${sides(end[0])} of the middle`,
  },
  {
    name: "Another noun, another way",
    draw: nouns,
    says: ({ noun, article }) =>
      say`
      The same ${en("the")} from the same start: ${en("cat")} sends it to ${fr("le")}, ${en("queen")} to
      ${fr("la")}, ${en("cats")} and ${en("cows")} to ${fr("les")}${["cat", "queen", "cats", "cows"].includes(noun) ? "" : [", ", en(noun), " to ", fr(article)]}.
      Nobody told the model that nouns have a gender. It has seen sentences with their translations,
      and nothing else.`.flat(),
    seen: ({ noun, end, article }) =>
      `Before “${noun}”, “the” ends ${sides(end[0])} of the middle, where “${article}” is written`,
  },
  {
    name: "Every word asks, all at once",
    draw: both,
    twice: true,
    says: ({ words, looks, seconds, trace }) => say`
      Here ${en("the")} stands twice. Both begin as the same word, apart only by their places. But
      ${listed(seconds.map(([t, s], i) => [`the ${NAMES[i]} asks mostly `, en(words[s]), ` (${share(looks[0][t][s])}, then ${share(looks[1][t][s])})`])).flat()},
      and they part. One word in English, two in French: ${fr(trace.text)}.`,
    seen: ({ words, ways, seconds }) =>
      seconds
        .map(
          ([t, s], i) =>
            `The ${NAMES[i]} “the”, of “${words[s]}”, goes ${sides(less(ways.at(-1)[t], ways[0][t]))}`,
        )
        .join("; "),
  },
  {
    name: "And if it may not ask?",
    draw: cut,
    cuts: ({ place }) => [`0 ${place}`, `1 ${place}`],
    says({ cuts, cut: now, trace, moves: all, words }) {
      if (!cuts.length)
        return say`
          ${en("the")} may look at all words again, and the model writes ${fr(trace.text)}. Press × on a
          look to take it away. The dots are all ${all.nouns.length} nouns: where does
          ${en("the")} end before each?`;
      const ends = all.all(cuts);
      const right = ends.filter(({ article, noun }) => article === all.told(noun).article).length;
      const after = [...new Set(ends.map(({ article }) => article))];
      const whom = [...new Set(cuts.map((each) => Number(each.split(" ")[1])))];
      const when = (s) => NAMES.filter((_, layer) => cuts.includes(`${layer} ${s}`));
      const gone = listed(
        whom.map((s) => [
          en(named(words[s])),
          when(s).length > 1 ? " at all" : ` in its ${when(s)[0]} look`,
        ]),
      );
      return say`
        Now ${en("the")} may not look at ${gone.flat()}, with any head, and the model writes
        ${fr(now.trace.text)}. ${
          after.length === 1
            ? say`It says ${fr(after[0])} before all ${ends.length} nouns (dots): right for ${right}, by luck.`
            : say`Before ${right} of ${ends.length} nouns (dots) the article is right.`
        } Other models need other looks: see “?”.`;
    },
    seen: ({ cut: now, end }) =>
      now
        ? `“the” ends ${sides(now.end[0])} of the middle; with all looks it ended ${sides(end[0])}`
        : `“the” ends ${sides(end[0])} of the middle`,
  },
];

export const WHY = STEPS.map((step) => ({
  ...step,
  ...(step.twice ? {} : { who: "nouns", label: "the black" }),
}));
