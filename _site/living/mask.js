// Chapter 4, sections 4.4 and 4.5: a mask edited cell by cell, and five ways to hide a key.

import { make, shown } from "../elements.js";
import { Figure } from "./living.js";
import { CAUSAL, changed, far, maskOf, onPrefixes, PLACES, seen } from "./masked_attention.js";
import { sum } from "./numbers.js";

export const CLAIMS = {
  prefix: "causal attention is attention on every prefix, at once",
  sums: "masked before the softmax the drawn rows sum to one",
};
const WORDS = ["<bos>", "le", "chat", "noir"];
const OTHERS = ["", "un", "chien", "blanc"]; // what each word may be exchanged for

function checkPrefix(state) {
  const { scores, values, mask, weights, outputs } = seen(state);
  const wrong = onPrefixes(scores, values, mask).map((ends, t) => far(outputs[t], ends));
  if (!wrong.includes(true))
    return { holds: true, because: "No row changes if the later words are cut off." };
  const t = wrong.indexOf(true);
  const leaks = PLACES.filter((s) => s > t && weights[t][s] > 0);
  const because = leaks.length
    ? `A leak: ${WORDS[t]} gives ${shown(100 * sum(leaks.map((s) => weights[t][s])))} % to later words.`
    : `Cut off after ${WORDS[t]}, the row of ${WORDS[t]} has other numbers.`;
  return { holds: false, because };
}

function checkSums(state) {
  const sums = seen(state).weights.map(sum);
  const t = sums.findIndex((each) => !(Math.abs(each - 1) < 1e-9));
  if (t < 0) return { holds: true, because: "Each row of weights has 100 %." };
  const empty = !maskOf(state.bits)[t].includes(true);
  const why = Number.isNaN(sums[t])
    ? "0 is divided by 0"
    : empty
      ? "no key is left"
      : "hidden too late";
  const has = Number.isNaN(sums[t]) ? "NaN" : `${shown(100 * sums[t])} %`;
  return { holds: false, because: `The row of ${WORDS[t]} has ${has}: ${why}.` };
}

/** The mask: a table of check boxes, a row for each query, a column for each key. */
function grid(figure) {
  const head = make(
    "tr",
    {},
    make("td"),
    ...WORDS.map((word) => make("th", { scope: "col" }, word)),
  );
  const rows = PLACES.map((t) => {
    const cells = PLACES.map((s) => {
      const box = make("input", {
        type: "checkbox",
        "aria-label": `${WORDS[t]} may look at ${WORDS[s]}`,
      });
      box.addEventListener("change", () =>
        figure.set({ bits: flip(figure.state.bits, 4 * t + s) }),
      );
      figure.parts.push(({ bits }) => {
        box.checked = bits[4 * t + s] === "1";
      });
      return make("td", {}, make("label", { class: "living-box" }, box));
    });
    return make("tr", {}, make("th", { scope: "row" }, WORDS[t]), ...cells);
  });
  const caption = make("caption", {}, "the mask: who may look at whom");
  figure.controls.append(make("table", { class: "living-grid" }, caption, head, ...rows));
}

const flip = (bits, i) => bits.slice(0, i) + (bits[i] === "1" ? "0" : "1") + bits.slice(i + 1);

function draw(d, state) {
  const { weights, outputs, mask, values } = seen(state);
  const lit = changed(state);
  const names = WORDS.map((word, t) => (t === Number(state.place) ? OTHERS[t] : word));
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
  if (Number(state.place) > 0) d.text(348, 158, "ringed: changed", { anchor: "end", quiet: true });
}

export function start(host) {
  const state = { bits: CAUSAL, way: "package", place: "-1" };
  const figure = new Figure(host, { title: "Edit the mask", state });
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
  figure.begin((now) => {
    const rows = changed(now).flatMap((each, t) => (each ? [WORDS[t]] : []));
    const hidden = [...now.bits].filter((bit) => bit === "0").length;
    const which = rows.length
      ? `The output changes at ${rows.join(", ")}.`
      : "No word is exchanged.";
    return `${hidden} of 16 cells are hidden. ${which}`;
  });
}
