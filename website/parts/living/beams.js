// Chapter 10, sections 10.2 and 10.3: beam search, step by step, on a tree that is seen whole.

import { scoreOf } from "../beams_kept.js";
import { percent, shown } from "../elements.js";
import { END, fate, last, layout, said, sentences, TABLES, tableWith } from "./beam_search.js";
import { checkClaim, checkFound, find, nSteps, tell } from "./beam_words.js";
import { Figure, range } from "./living.js";

export const CLAIMS = Object.values(TABLES).map(({ claim }) => claim);
export const example = {
  state: { table: "seven", share: 0.25, K: 3, alpha: 0, step: 3 },
  shows: ["40", "35", "25", "16", "12", "21", "7", "−1.83", "−1.56", "−1.39"],
};
export const breaks = { slider: "beam size", keys: ["ArrowLeft"], claim: 1, because: "25.0 %" };

const CAPTIONS = [
  "ringed: the answer; bold: the likeliest",
  "crossed out: dropped; dashed: not computed",
];
const TOP = 22; // the line over the tree
const END_AT = 302; // where the column of scores begins
/** The heights of a row and of a box, and where the columns of words begin and how wide they are. */
const STYLE = {
  seven: {
    row: 310 / 7, // as high in all as the other
    box: 22,
    columns: [
      [2, 46],
      [84, 66],
      [186, 80],
    ],
  },
  empty: {
    row: 31,
    box: 15,
    columns: [
      [0, 37],
      [46, 38],
      [91, 53],
      [152, 65],
    ],
  },
};
const WIDE_END = 66; // of <eos>, which here is a first word and has a probability

/** Where a node stands: x, y of its middle, width, height. */
function placeOf({ words, y, at }, { row, box, columns }, { across }) {
  const [x, width] = columns[words.length];
  const up = words.length === across ? box / 2 : 0; // its score comes below
  return [
    x + at * (width + 1),
    TOP + (y + 0.5) * row - up,
    last(words) === END ? WIDE_END : width,
    box,
  ];
}

const isOpen = (state) => state === "never" || state === "ahead";

/** A box with a text at its left and a number at its right, as far as the search has come. */
function drawBox(d, [x, y, width, height], node, state, number, bold) {
  const kept = state === "kept";
  const word = last(node.words);
  const [strength, unseen] = [kept ? 0.22 : 0, isOpen(state)];
  d.box(x, y - height / 2, width, height, kept ? "word" : "plain", {
    strength,
    dashed: unseen,
    lit: kept,
    "data-fate": `${node.words.join(" ")}: ${state}`,
  });
  d.text(x + 4, y, word, { anchor: "start", quiet: !kept, bold });
  if (number && !unseen) d.text(x + width - 4, y, number, { anchor: "end", quiet: !kept });
  if (state === "dropped")
    d.segment(x + 3, y + height / 2 - 3, x + width - 3, y - height / 2 + 3, { role: "mask" });
}

/** A sentence's last step, its <eos>: the score by which it is compared, once it has ended. */
function drawEnd(d, node, [x, y, width, height], { table, found, alpha, step }) {
  const words = last(node.words) === END ? node.words : [...node.words, END];
  const state = fate(words, found, step);
  if (state !== "kept") return;
  const value = scoreOf(Math.log(node.p), words.length, alpha);
  const below = node.words.length === TABLES[table].across;
  const [left, middle, wide] = below ? [x, y + height, width] : [END_AT, y, 46];
  if (!below) d.segment(x + width, y, left, y, { width: 0.6 + 5 * node.p });
  d.box(left, middle - height / 2, wide, height, "word", { strength: 0.22 });
  d.text(left + wide - 4, middle, shown(value, 2), { anchor: "end", "data-score": value });
  if (step >= found.steps.length && said(words) === found.words)
    d.ring(left, middle - height / 2, wide, height);
}

function draw(d, now) {
  const follows = tableWith(now.table, now.share);
  const [table, style] = [TABLES[now.table], STYLE[now.table]];
  const [{ nodes, rows }, found] = [layout(follows, table.across), find(now)];
  const best = sentences(follows)[0].p - 1e-12;
  const place = (node) => placeOf(node, style, table);
  d.text(2, 8, "in %: all words so far", { anchor: "start", quiet: true });
  d.text(348, 8, now.alpha ? "<eos>: score" : "<eos>: log P", { anchor: "end", quiet: true });
  CAPTIONS.forEach((caption, i) =>
    d.text(348, TOP + rows * style.row + 12 + 16 * i, caption, { anchor: "end", quiet: true }),
  );
  const fates = new Map(nodes.map((node) => [node, fate(node.words, found, now.step)]));
  for (const node of nodes)
    for (const child of node.children.filter(({ at }) => at === 0)) {
      const [[x, y, width], [u, v]] = [place(node), place(child)];
      const group = node.children.filter((each) => each.y === child.y);
      const lit = group.some((each) => fates.get(each) === "kept");
      d.segment(x + width, y, u, v, { lit, width: 0.6 + 5 * child.p });
    }
  for (const node of nodes) {
    const state = fates.get(node);
    const ends = !node.children.length;
    const digits = node.p < 0.1 && now.table === "empty" ? 1 : 0;
    const number = node.words.length ? shown(100 * node.p, digits) : "";
    drawBox(d, place(node), node, state, number, ends && node.p >= best);
    if (ends) drawEnd(d, node, place(node), { ...now, found });
  }
}

/** A new table begins with its own numbers; a search that was at its end stays at its end. */
function settled() {
  let [table, end] = ["seven", 3];
  return (now) => {
    const { follows, word } = TABLES[now.table];
    if (now.table !== table) now.share = follows["<bos>"][word];
    const n = nSteps(now);
    now.step = now.step >= end || now.step > n || now.table !== table ? n : now.step;
    [table, end] = [now.table, n];
  };
}

export function start(host) {
  const { state } = example;
  const invite = "Set K to 2; then make elle likelier until it is found.";
  const settle = settled();
  const figure = new Figure(host, { title: "Search with beams", invite, state, settle });
  const tables = [
    ["seven", "seven sentences, Figure 10.3"],
    ["empty", "27 and the empty one, Figure 10.1"],
  ];
  figure.select("table", "table", tables);
  const sizes = range(1, 8, 1);
  figure.slider("K", "beam size K", sizes, shown);
  figure.slider("alpha", "length penalty α", range(0, 2, 0.1));
  const label = ({ table }) => `how likely ${TABLES[table].word} is as the first word`;
  const shares = range(0.01, 0.6, 0.01);
  figure.slider("share", label, shares, (share) => percent(share));
  const steps = (now) => range(0, nSteps(now), 1);
  figure.slider("step", "step of the search", steps, (step) => shown(step));
  const alt = "The tree of all sentences: what beam search keeps, drops and never computes.";
  figure.drawing(370, alt, draw);
  figure.tick(TABLES.seven.claim, checkClaim);
  figure.tick("beam search finds the likeliest sentence of the table", checkFound);
  figure.begin(tell);
}
