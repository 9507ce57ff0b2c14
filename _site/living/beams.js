// Chapter 10, sections 10.2 and 10.3: beam search, step by step, on a tree that is seen whole.

import { percent, shown } from "../elements.js";
import { fate, last, layout, said, search, sentences, TABLES, tableWith } from "./beam_search.js";
import { Figure, range } from "./living.js";

const STYLE = { seven: { high: 30, wide: 118 }, empty: { high: 17, wide: 88 } };

/** A node: its box, its word, the probability of all words up to it. */
function drawNode(d, node, [x, y], { wide, high, state, best }) {
  const [width, height, kept] = [wide - 38, Math.min(22, high - 1), state === "kept"];
  const unseen = state === "never" || state === "ahead";
  const box = d.box(x, y - height / 2, width, height, kept ? "word" : "plain", {
    strength: kept ? 0.22 : 0,
    dashed: unseen,
    lit: kept,
  });
  box.setAttribute("data-fate", `${node.words.join(" ")}: ${state}`);
  const style = { anchor: "start", quiet: !kept, bold: best && !node.children.length };
  d.text(x + 4, y, last(node.words), style);
  const digits = node.p < 0.1 && high < 20 ? 1 : 0;
  if (node.words.length && !unseen)
    d.text(x + width - 4, y, shown(100 * node.p, digits), { anchor: "end", quiet: !kept });
  if (state === "dropped")
    d.segment(x + 3, y + height / 2 - 3, x + width - 3, y - height / 2 + 3, { role: "mask" });
  return [x, y - height / 2, width, height];
}

function draw(d, { table, share, K, alpha, step }) {
  const follows = tableWith(table, share);
  const { nodes, rows } = layout(follows);
  const found = search(follows, K, alpha);
  const best = sentences(follows)[0].words;
  const { high, wide } = STYLE[table];
  d.resize(rows * high + 26);
  d.text(348, rows * high + 18, "%; ringed: the answer, bold: the likeliest", {
    anchor: "end",
    quiet: true,
  });
  const at = ({ words, y }) => [2 + wide * words.length, 4 + (y + 0.5) * high];
  const fates = new Map(nodes.map((node) => [node, fate(node.words, found, step)]));
  for (const node of nodes)
    for (const child of node.children) {
      const [[x, y], [u, v]] = [at(node), at(child)];
      d.segment(x + wide - 36, y, u, v, {
        lit: fates.get(child) === "kept",
        width: 0.6 + 5 * child.p,
      });
    }
  for (const node of nodes) {
    const is = (words) => said(node.words) === words;
    const place = drawNode(d, node, at(node), {
      ...STYLE[table],
      state: fates.get(node),
      best: is(best),
    });
    if (step >= found.steps.length && !node.children.length && is(found.words)) d.ring(...place);
  }
}

const quoted = ({ words, p }) => `${words || "the empty sentence"} (${percent(p, 1)})`;
const find = ({ table, share, alpha }, K) => search(tableWith(table, share), K, alpha);
const likeliest = ({ table, share }) => sentences(tableWith(table, share))[0];
const nSteps = (state) => find(state, state.K).steps.length;

function checkClaim(state) {
  const { claim, compared, holds } = TABLES[state.table];
  const found = compared.map((K) => find(state, K));
  const each = found.map((one, i) => `K = ${compared[i]} writes ${quoted(one)}`).join(", ");
  const best = likeliest(state).words;
  return {
    text: claim,
    holds: holds(...found.map(({ words }) => words), best),
    because: `${each}.`,
  };
}

function checkFound(state) {
  const [found, best] = [find(state, state.K), likeliest(state)];
  const holds = found.p > best.p - 1e-12;
  const because = holds
    ? `It finds ${quoted(found)}.`
    : `It finds ${quoted(found)}, and misses ${quoted(best)}.`;
  return { holds, because };
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

function tell(now) {
  const n = nSteps(now);
  const { beams, ended } = find(now, now.K).steps[now.step - 1] ?? { beams: [], ended: [] };
  const kept = [...ended, ...beams].map((beam) =>
    quoted({ words: said(beam.words), p: Math.exp(beam.log) }),
  );
  if (now.step === 0) return "Before the first step there is one beam: the empty beginning.";
  return now.step < n
    ? `Step ${now.step} of ${n}. Kept: ${kept.join(", ")}.`
    : `The search has ended after step ${n} with ${quoted(find(now, now.K))}.`;
}

export function start(host) {
  const state = { table: "seven", share: 0.25, K: 3, alpha: 0, step: 3 };
  const figure = new Figure(host, { title: "Search with beams", state, settle: settled() });
  const tables = [
    ["seven", "seven sentences, Figure 10.2"],
    ["empty", "27 and the empty one, Figure 10.5"],
  ];
  figure.select("table", "table", tables);
  figure.slider(
    "K",
    "beam size K",
    () => range(1, 8, 1),
    (K) => shown(K),
  );
  figure.slider("alpha", "length penalty α", () => range(0, 2, 0.1));
  const label = ({ table }) => `how likely ${TABLES[table].word} is as the first word`;
  figure.slider(
    "share",
    label,
    () => range(0.01, 0.6, 0.01),
    (share) => percent(share),
  );
  const steps = (now) => range(0, nSteps(now), 1);
  figure.slider("step", "step of the search", steps, (step) => shown(step));
  const alt = "The tree of all sentences: what beam search keeps, drops and never computes.";
  figure.drawing(236, alt, draw);
  figure.tick(TABLES.seven.claim, checkClaim);
  figure.tick("beam search finds the likeliest sentence of the table", checkFound);
  figure.begin(tell);
}
