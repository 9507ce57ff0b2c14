// The steps of the first act, as in steps.js: what is said holds for each noun that can be followed.

import { shown } from "../elements.js";
import { asks, again, both, colours, cut, moves, nouns, point } from "./acts/plane.js";
import { SHOWN } from "./moves.js";
import { best, en, fr, listed, say, term } from "./say.js";
import { share } from "./scene.js";

const NAMES = ["first", "second"];
const sides = ([x, y]) => {
  const across =
    Math.abs(x) >= 0.05 && `${shown(Math.abs(x), 1)} to the ${x > 0 ? "right" : "left"}`;
  const up = Math.abs(y) >= 0.05 && `${shown(Math.abs(y), 1)} ${y > 0 ? "up" : "down"}`;
  return [across, up].filter(Boolean).join(" and ") || "hardly at all";
};
const less = (to, from) => to.map((x, i) => x - from[i]);
const named = (word) => (word === "<eos>" ? "end" : word);
const looked = (words, shares) =>
  words.map((word, s) => `“${named(word)}” ${share(shares[s])}`).join(", ");

const pulling = (words, arrows) =>
  words.map((word, s) => `“${named(word)}” pulls ${sides(arrows[s])}`).join("; ");

const STEPS = [
  {
    name: "A word is a point",
    draw: point,
    says: ({ noun }) => say`
      This model, a small relative of ChatGPT, translates into French. In it ${en(noun)} is 64 numbers,
      so a point in a space of 64 directions. Two are drawn, made with half of the nouns: feminine ones
      (in French) lie mostly on the right, plurals mostly above.`,
    seen: ({ noun, ways, place }) => `“${noun}” lies ${sides(ways[0][place])} of the middle`,
  },
  {
    name: "“the” can’t choose alone",
    draw: colours,
    says: ({ noun }) => say`
      In French ${en("the")} is ${fr("la")} before a feminine noun, ${fr("les")} before a plural, and else
      ${fr("le")}. The colours show what the model would write if ${en("the")} came to lie there. But
      ${en("the")} starts at one point, in ${fr("les")}, whatever follows. How can it know what to be before ${en(noun)}?`,
    seen: ({ ways }) =>
      `“the” starts ${sides(ways[0][0])} of the middle. “le” is written in the lower left, “la” in the lower right, “les” above`,
  },
  {
    name: "So it asks",
    draw: asks,
    says({ noun, words, looks: [w], place }) {
      const s = best(w);
      const gets =
        s === place
          ? say`${en(noun)} gets most, ${share(w[s])}`
          : say`${en(words[s])} gets most, ${share(w[s])}, and ${en(noun)} ${share(w[place])}. (A large
              share needn’t matter: see step 8)`;
      return say`
        This is ${term("attention")}. ${en("the")} makes a ${term("query")}, what it looks for, and each
        word makes a ${term("key")}, how it’s found. The better the two fit, the larger the share. It asks in four ways: on average ${gets}.`;
    },
    seen: ({ words, looks }) => `Shares: ${looked(words, looks[0])}`,
  },
  {
    name: "The answers move it",
    draw: moves,
    says: ({ noun, ways, arrows, place }) => say`
      Each word hands over a ${term("value")}, here an arrow (pale: the whole value of ${en(noun)}). The
      four shares say how much of it counts: ${en(noun)} pulls ${sides(arrows[0][place])}. All are added to
      the point of ${en("the")}, and so it moves: ${sides(less(ways[1][0], ways[0][0]))}.`,
    seen: ({ words, arrows, ways }) =>
      `${pulling(words, arrows[0])}. “the” is now ${sides(ways[1][0])} of the middle`,
  },
  {
    name: "Then it asks once more",
    draw: again,
    says: ({ noun, trace, looks, place, article }) => say`
      Next each word goes alone through a small network, which moves ${en("the")} up (grey). Then a second
      layer asks again: ${en(noun)} gets ${share(looks[1][place])}, and the model writes ${fr(article)}:
      ${fr(trace.text)}. (The second look alone would do here. Chapter 14 has a task for two.)`,
    seen: ({ words, arrows, ways }) =>
      `The network moves “the” ${sides(less(ways[2][0], ways[1][0]))}. ${pulling(words, arrows[1])}. “the” is now ${sides(ways[3][0])} of the middle`,
  },
  {
    name: "Another noun, another way",
    draw: nouns,
    says: ({ noun, article }) =>
      say`
      The same ${en("the")} from the same start: ${en("cat")} sends it to ${fr("le")}, ${en("queen")} to
      ${fr("la")}, ${en("cats")} and ${en("cows")} to ${fr("les")}${SHOWN.includes(noun) ? "" : [", ", en(noun), " to ", fr(article)]}.
      Nobody told the model that nouns have a gender. It has seen sentences with their translations,
      and nothing else.`.flat(),
    seen: ({ noun, moves: all }) =>
      [...new Set([...SHOWN, noun])]
        .map((each) => {
          const { end, article } = all.told(each);
          return `Before “${each}” it ends ${sides(end[0])} of the middle and becomes “${article}”`;
        })
        .join("; "),
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
          ([t, s, article], i) =>
            `the ${NAMES[i]} “the”, of “${words[s]}”, starts ${sides(ways[0][t])} of the middle, ends ${sides(ways.at(-1)[t])} of it, and becomes “${article}”`,
        )
        .join("; "),
  },
  {
    name: "And if it may not ask its noun?",
    draw: cut,
    cuts: ({ place }) => [`0 ${place}`, `1 ${place}`],
    says({ cuts, now, moves: all, words, noun }) {
      if (!cuts.length)
        return say`
          ${en("the")} may look at all words again, and the model writes ${fr(now.trace.text)}. Take
          another look away. The dots are ${en("the")} before the other nouns: full where its article
          is right, hollow where it’s wrong.`;
      const ends = all.all(cuts);
      const right = ends.filter((each) => each.right).length;
      const after = [...new Set(ends.map(({ article }) => article))];
      const whom = [...new Set(cuts.map((each) => Number(each.split(" ")[1])))];
      const when = (s) => NAMES.filter((_, layer) => cuts.includes(`${layer} ${s}`));
      const gone = listed(
        whom.map((s) => [
          en(named(words[s])),
          when(s).length > 1 ? " at all" : ` in its ${when(s)[0]} look`,
        ]),
      );
      const dots =
        after.length > 1
          ? say`Its article is right before ${right} of ${ends.length} nouns`
          : say`It says ${fr(after[0])} before all ${ends.length} nouns, right for ${right}`;
      const both = cuts.length === 2 && whom.length === 1 && words[whom[0]] === noun;
      return say`
        Now ${en("the")} may not look at ${gone.flat()}, and the model writes ${fr(now.trace.text)}.
        ${dots} (full dots; the colours are for ${en(noun)} alone).${both ? " Of ten models trained alike, this is the clearest: see “?”." : ""}`;
    },
    seen: ({ now, end }) =>
      `“the” ends ${sides(now.end[0])} of the middle, where “${now.article}” is written; with all looks it ended ${sides(end[0])}`,
  },
];

export const WHY = STEPS.map((step) => ({
  ...step,
  ...(step.twice ? {} : { who: "nouns", label: "the black" }),
}));
