// Chapter 10, sections 10.2 and 10.3: beam search, step by step, on a tree that is seen whole.

import { scoreOf } from "../beams_kept.js";
import { percent, shown } from "../elements.js";
import { END, fate, last, layout, said, sentences, TABLES, tableWith } from "./beam_search.js";
import { checkClaim, checkFound, find, nSteps, tell } from "./beam_words.js";
import { Figure, range } from "./living.js";

const CAPTIONS = [
  "ringed: the answer; bold: the likeliest",
  "crossed out: dropped; dashed: not computed",
];
const TOP = 22; // the line over the tree
const END_AT = 302; // where the column of scores begins
/** The height of a row, and where the columns of words begin and how wide they are. */
const STYLE = {
  seven: {
    high: 30,
    columns: [
      [2, 46],
      [84, 66],
      [186, 80],
    ],
  },
  empty: {
    high: 17,
    columns: [
      [2, 40],
      [66, 44],
      [132, 58],
      [212, 68],
    ],
  },
};
const WIDE_END = 66; // of <eos>, which here is a first word and has a probability

/** Where a node stands: x, y of its middle, width, height. */
function placeOf({ words, y }, { high, columns }) {
  const [x, width] = columns[words.length];
  return [
    x,
    TOP + (y + 0.5) * high,
    last(words) === END ? WIDE_END : width,
    Math.min(22, high - 1),
  ];
}

const isOpen = (state) => state === "never" || state === "ahead";

/** A box with a text at its left and a number at its right, as far as the search has come. */
function drawBox(d, [x, y, width, height], state, [word, number], bold) {
  const kept = state === "kept";
  const [strength, unseen] = [kept ? 0.22 : 0, isOpen(state)];
  const box = d.box(x, y - height / 2, width, height, kept ? "word" : "plain", {
    strength,
    dashed: unseen,
    lit: kept,
  });
  d.text(x + 4, y, word, { anchor: "start", quiet: !kept, bold });
  if (number && !unseen) d.text(x + width - 4, y, number, { anchor: "end", quiet: !kept });
  if (state === "dropped")
    d.segment(x + 3, y + height / 2 - 3, x + width - 3, y - height / 2 + 3, { role: "mask" });
  return box;
}

/** A sentence's last step, its <eos>: the score by which it is compared, once it has ended. */
function drawEnd(d, node, [x, y, width, height], { found, alpha, step }) {
  const words = last(node.words) === END ? node.words : [...node.words, END];
  const state = fate(words, found, step);
  if (state !== "kept") return;
  const value = scoreOf(Math.log(node.p), words.length, alpha);
  d.segment(x + width, y, END_AT, y, { width: 0.6 + 5 * node.p });
  d.box(END_AT, y - height / 2, 46, height, "word", { strength: 0.22 });
  d.text(END_AT + 42, y, shown(value, 2), { anchor: "end" }).setAttribute("data-score", value);
  if (step >= found.steps.length && said(words) === found.words)
    d.ring(END_AT, y - height / 2, 46, height);
}

function draw(d, now) {
  const follows = tableWith(now.table, now.share);
  const [{ nodes, rows }, found] = [layout(follows), find(now)];
  const best = sentences(follows)[0].p - 1e-12;
  const style = STYLE[now.table];
  d.resize(TOP + rows * style.high + 38);
  d.text(2, 8, "in %: all words so far", { anchor: "start", quiet: true });
  d.text(348, 8, now.alpha ? "<eos>: score" : "<eos>: log P", { anchor: "end", quiet: true });
  CAPTIONS.forEach((caption, i) =>
    d.text(348, TOP + rows * style.high + 12 + 16 * i, caption, { anchor: "end", quiet: true }),
  );
  const fates = new Map(nodes.map((node) => [node, fate(node.words, found, now.step)]));
  for (const node of nodes)
    for (const child of node.children) {
      const [[x, y, width], [u, v]] = [placeOf(node, style), placeOf(child, style)];
      const lit = fates.get(child) === "kept";
      d.segment(x + width, y, u, v, { lit, width: 0.6 + 5 * child.p });
    }
  for (const node of nodes) {
    const [place, state] = [placeOf(node, style), fates.get(node)];
    const ends = !node.children.length;
    const digits = node.p < 0.1 && now.table === "empty" ? 1 : 0;
    const number = node.words.length ? shown(100 * node.p, digits) : "";
    const box = drawBox(d, place, state, [last(node.words), number], ends && node.p >= best);
    box.setAttribute("data-fate", `${node.words.join(" ")}: ${state}`);
    if (ends) drawEnd(d, node, place, { ...now, found });
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
  const state = { table: "seven", share: 0.25, K: 3, alpha: 0, step: 3 };
  const invite = "Set K to 2; then make elle likelier until it is found.";
  const settle = settled();
  const figure = new Figure(host, { title: "Search with beams", invite, state, settle });
  const tables = [
    ["seven", "seven sentences, Figure 10.2"],
    ["empty", "27 and the empty one, Figure 10.6"],
  ];
  figure.select("table", "table", tables);
  const sizes = range(1, 8, 1);
  figure.slider("K", "beam size K", () => sizes, shown);
  figure.slider("alpha", "length penalty α", () => range(0, 2, 0.1));
  const label = ({ table }) => `how likely ${TABLES[table].word} is as the first word`;
  const shares = range(0.01, 0.6, 0.01);
  figure.slider(
    "share",
    label,
    () => shares,
    (share) => percent(share),
  );
  const steps = (now) => range(0, nSteps(now), 1);
  figure.slider("step", "step of the search", steps, (step) => shown(step));
  const alt = "The tree of all sentences: what beam search keeps, drops and never computes.";
  figure.drawing(236, alt, draw);
  figure.tick(TABLES.seven.claim, checkClaim);
  figure.tick("beam search finds the likeliest sentence of the table", checkFound);
  figure.begin(tell);
  figure.controls.after(figure.ticks, figure.status); // beside the sliders, however tall the tree
}
