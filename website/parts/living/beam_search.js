// Chapter 10, sections 10.2 and 10.3: beam search on the tables that are drawn there.

import { keepBeams, scoreOf } from "../beams_kept.js";
import { sum } from "../numbers.js";

export const END = "<eos>";
const third = (...words) => Object.fromEntries(words.map((word) => [word, 1 / 3]));
const verbs = third("dort", "mange", "court");
const nouns = third("chat", "chien", "roi");
/** Each table, the first word that its slider makes likelier, and the chapter's claim about it. */
export const TABLES = {
  seven: {
    follows: {
      "<bos>": { le: 0.4, la: 0.35, elle: 0.25 },
      le: { chat: 0.4, chien: 0.3, roi: 0.3 },
      la: { reine: 0.6, souris: 0.2, vache: 0.2 },
      elle: { dort: 1 },
    },
    word: "elle",
    first: "elle dort", // the likeliest in the chapter
    claim: "2 beams miss the likeliest of seven sentences and 3 find it",
    compared: [2, 3],
    holds: (two, three, best) => two !== best && three === best,
  },
  empty: {
    follows: {
      "<bos>": { le: 0.31, ce: 0.31, un: 0.31, [END]: 0.07 },
      le: nouns,
      ce: nouns,
      un: nouns,
      chat: verbs,
      chien: verbs,
      roi: verbs,
    },
    word: END,
    across: 3, // the last words of a beginning stand side by side, in one row
    claim: "three beams return a sentence of 27, four the empty one",
    compared: [3, 4],
    holds: (three, four) => three !== "" && four === "",
    cured: (three, four) => three !== "" && four !== "",
  },
};

/** The table in which `word` begins a sentence with the probability `share`; the rest keep their odds. */
export function tableWith(name, share) {
  const { follows, word } = TABLES[name];
  const rest = sum(
    Object.entries(follows["<bos>"])
      .filter(([w]) => w !== word)
      .map(([, p]) => p),
  );
  const first = Object.entries(follows["<bos>"]).map(([w, p]) => [
    w,
    w === word ? share : (p * (1 - share)) / rest,
  ]);
  return { ...follows, "<bos>": Object.fromEntries(first) };
}

export const last = (words) => words.at(-1) ?? "<bos>";
const nextOf = (follows, words) => Object.entries(follows[last(words)] ?? { [END]: 1 });
export const said = (words) => words.filter((word) => word !== END).join(" ");

/** Beam search as in the package, up to 20 tokens. The steps are kept, to be looked at. */
export function search(follows, K, alpha) {
  const steps = [];
  const { ended } = keepBeams(
    { words: [], log: 0 },
    {
      lengthen: (beams) => beams.flatMap((beam) => lengthen(follows, beam)).sort(likelierFirst),
      hasEnded: ({ words }) => last(words) === END,
      logOf: ({ log }) => log,
      K,
      alpha,
      maxLen: 20,
      look: (step) => steps.push(step),
    },
  );
  const score = ({ words, log }) => scoreOf(log, words.length, alpha);
  const best = ended.reduce((a, b) => (score(b) > score(a) ? b : a));
  return { words: said(best.words), p: Math.exp(best.log), score: score(best), steps };
}

const likelierFirst = (a, b) => b.log - a.log;
const lengthen = (follows, { words, log }) =>
  nextOf(follows, words).map(([word, p]) => ({
    words: [...words, word],
    log: log + Math.log(p),
  }));

/** Every sentence of the tree with its number of tokens and its score, the best score first. */
export function sentences(follows, alpha = 0) {
  const ended = (words, p) => ({
    words: said(words),
    p,
    tokens: words.length,
    score: scoreOf(Math.log(p), words.length, alpha),
  });
  const grow = (words, p) =>
    last(words) === END
      ? [ended(words, p)]
      : nextOf(follows, words).flatMap(([word, q]) => grow([...words, word], p * q));
  return grow([], 1).sort((a, b) => b.score - a.score);
}

/** What became of a beginning in the steps so far: "ahead", "never", "dropped" or "kept". */
export function fate(words, { steps }, shown) {
  const n = words.length;
  if (n === 0) return "kept";
  if (n > Math.min(shown, steps.length))
    return n > shown && shown < steps.length ? "ahead" : "never";
  const is = (beam) => beam.words.join(" ") === words.join(" ");
  const { longer, beams, ended } = steps[n - 1];
  if (beams.some(is) || ended.some(is)) return "kept";
  return longer.some(is) ? "dropped" : "never";
}

/** The tree without its last words, all <eos>: each node with its place, a leaf a row. */
export function layout(follows, across) {
  const nodes = [];
  let row = 0;
  const place = (words, p, at = 0) => {
    const after = last(words) === END ? [] : nextOf(follows, words);
    const grown = after.filter(([word]) => word !== END || after.length > 1);
    const beside = words.length + 1 === across;
    const children = grown.map(([word, q], i) => {
      const child = place([...words, word], p * q, beside ? i : 0);
      if (beside && i + 1 < grown.length) row--;
      return child;
    });
    const y = children.length ? sum(children.map((child) => child.y)) / children.length : row++;
    const node = { words, p, y, at, children };
    nodes.push(node);
    return node;
  };
  place([], 1);
  return { nodes, rows: row };
}
