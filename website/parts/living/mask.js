// Chapter 4, sections 4.4 and 4.5: a mask edited cell by cell, and five ways to hide a key.

import { make, shown } from "../elements.js";
import { Figure, list } from "./living.js";
import * as attention from "./masked_attention.js";
import { sum } from "../numbers.js";

const { changed, onPrefixes, OTHERS, PLACES, seen, WORDS, wordsOf } = attention;
export const CLAIMS = {
  prefix: "causal attention is attention on every prefix, at once",
  sums: "masked before the softmax the drawn rows sum to one",
};
export const example = {
  state: { bits: attention.CAUSAL, way: "package", place: "-1" },
  shows: ["27", "73", "8", "35", "57", "2", "23", "62", "14"],
};
export const breaks = {
  checkbox: "chat may look at noir",
  keys: ["Space"],
  claim: 0,
  because: "49 %",
};
const part = (share) => `${shown(100 * share)} %`;

/** Why a row is not what it would be if the sentence ended there. */
function difference(word, t, weights, ended) {
  const later = sum(weights.slice(t + 1));
  if (later > 0) return `A leak: ${word} gives ${part(later)} to later words.`;
  const would = `cut off after ${word}, it would have ${part(sum(ended))}`;
  return `The row of ${word} has ${part(sum(weights))}; ${would}.`;
}

export function checkPrefix(state) {
  const { scores, values, mask, weights, outputs } = seen(state);
  const ends = onPrefixes(scores, values, mask, state.way);
  const lost = (t) => outputs[t].some(Number.isNaN);
  const wrong = PLACES.find((t) => !lost(t) && attention.far(outputs[t], ends[t].output));
  const word = (t) => wordsOf(state)[t];
  if (wrong !== undefined) {
    const because = difference(word(wrong), wrong, weights[wrong], ends[wrong].weights);
    return { holds: false, because };
  }
  const none = PLACES.find(lost);
  if (none === undefined)
    return { holds: true, because: "No output changes if the later words are cut off." };
  const because = `Not tested: the row of ${word(none)} is NaN with and without later words.`;
  return { holds: null, because };
}

export function checkSums(state) {
  const sums = seen(state).weights.map(sum);
  const t = sums.findIndex((each) => !(Math.abs(each - 1) < 1e-9));
  const has = Number.isNaN(sums[t]) ? "NaN" : part(sums[t]);
  const says =
    t < 0 ? "Each row of weights has 100 %" : `The row of ${wordsOf(state)[t]} has ${has}`;
  if (state.way === "after")
    return { holds: null, because: `Not tested: here a key is hidden after the softmax. ${says}.` };
  const why = Number.isNaN(sums[t]) ? "0 is divided by 0" : "no key is left";
  return { holds: t < 0, because: t < 0 ? `${says}.` : `${says}: ${why}.` };
}

/** The mask: a table of check boxes, a row for each query, a column for each key. */
function grid(figure) {
  const [tops, sides] = ["col", "row"].map((scope) => WORDS.map(() => make("th", { scope })));
  figure.parts.push((state) =>
    wordsOf(state).forEach((word, t) =>
      [tops, sides].forEach((heads) => heads[t].replaceChildren(word)),
    ),
  );
  const rows = PLACES.map((t) => {
    const cells = PLACES.map((s) => {
      const box = make("input", { type: "checkbox" });
      box.addEventListener("change", () =>
        figure.set({ bits: flip(figure.state.bits, 4 * t + s) }),
      );
      figure.parts.push((state) => {
        const words = wordsOf(state);
        box.checked = state.bits[4 * t + s] === "1";
        box.setAttribute("aria-label", `${words[t]} may look at ${words[s]}`);
      });
      return make("td", {}, make("label", { class: "living-box" }, box));
    });
    return make("tr", {}, sides[t], ...cells);
  });
  const caption = make("caption", {}, "the mask: who may look at whom");
  const head = make("tr", {}, make("td"), ...tops);
  figure.controls.append(make("table", { class: "living-grid" }, caption, head, ...rows));
}

const flip = (bits, i) => bits.slice(0, i) + (bits[i] === "1" ? "0" : "1") + bits.slice(i + 1);

function draw(d, state) {
  const { weights, outputs, mask, values } = seen(state);
  const lit = changed(state);
  const names = wordsOf(state);
  d.text(120, 12, "weights, %", { size: 14 });
  d.text(232, 12, "values", { size: 14 });
  d.text(308, 12, "output", { size: 14 });
  PLACES.forEach((t) => {
    const y = 46 + 26 * t;
    const size = [34, 22];
    d.text(120 + 34 * (t - 1.5), 34, names[t], { quiet: true });
    d.text(46, y + 11, names[t], { anchor: "end", bold: lit[t] });
    weights[t].forEach((weight, s) =>
      d.cell(52 + 34 * s, y, 100 * weight, "query", {
        size,
        top: 100,
        struck: !mask[t][s] && weight === 0,
      }),
    );
    d.row(204, y, values[t], "value", { size: [28, 22], top: 6 });
    d.row(268, y, outputs[t], "value", { size: [40, 22], digits: 2, top: 4, bold: lit[t] });
    if (lit[t]) d.ring(268, y, 80, 22);
  });
  if (lit.includes(true)) d.text(348, 158, "ringed: changed", { anchor: "end", quiet: true });
}

export function said(state) {
  const [words, place, lit] = [wordsOf(state), Number(state.place), changed(state)];
  const rows = PLACES.filter((t) => lit[t]);
  const early = rows.filter((t) => t < place).map((t) => words[t]);
  const effect = early.length
    ? `. The output changes at ${list(rows.map((t) => words[t]))}: a leak to ${list(early)}.`
    : rows.length
      ? `. The output changes at ${list(rows.map((t) => words[t]))}, and at no earlier word.`
      : ", and no output changes: nothing leaks from it.";
  if (place > 0) return `${WORDS[place]} is exchanged for ${words[place]}${effect}`;
  const hidden = [...state.bits].filter((bit) => bit === "0").length;
  return `${hidden} of the 16 cells ${hidden === 1 ? "is" : "are"} hidden. No word is exchanged.`;
}

export function start(host) {
  const { state } = example;
  const invite = "Let le look at noir, then exchange noir for blanc.";
  const figure = new Figure(host, { title: "Edit the mask", invite, state });
  grid(figure);
  const side = figure.controls.appendChild(make("div", { class: "living-side" }));
  const swaps = [
    ["-1", "the words as they are"],
    ...[1, 2, 3].map((s) => [String(s), `${WORDS[s]} becomes ${OTHERS[s]}`]),
  ];
  figure.select("place", "another word, to see what changes", swaps, side);
  const ways = [
    ["package", "the package"],
    ["infinity", "-inf before the softmax"],
    ["billion", "-1e9 before the softmax"],
    ["before", "times 0 before the softmax"],
    ["after", "times 0 after the softmax"],
  ];
  figure.select("way", "how a key is hidden", ways, side);
  const alt = "The weights of the four words, their values, and the outputs that the weights give.";
  figure.drawing(166, alt, draw);
  figure.tick(CLAIMS.prefix, checkPrefix);
  figure.tick(CLAIMS.sums, checkSums);
  figure.begin(said);
}
