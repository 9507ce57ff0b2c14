// Chapter 10, sections 10.2 and 10.3: what the figure says about a search, in words.

import { percent, shown } from "../elements.js";
import { said, search, sentences, TABLES, tableWith } from "./beam_search.js";

const SAME = 1e-9; // scores that differ by rounding only
const LISTED = 4; // beams; the drawing shows all

const quoted = ({ words, p }) => `${words || "the empty sentence"} (${percent(p, 1)})`;

/** What K beams find in the figure's table; without K, the figure's number of beams. */
export const find = (state, K = state.K) =>
  search(tableWith(state.table, state.share), K, state.alpha);
export const nSteps = (state) => find(state).steps.length;

/** The chapter's claim about the table; with a penalty, what the chapter says that it does. */
export function checkClaim(state) {
  const { claim, compared, holds, cured } = TABLES[state.table];
  const found = compared.map((K) => find(state, K));
  const each = found.map((one, i) => `K = ${compared[i]} writes ${quoted(one)}`).join(", ");
  const words = found.map((one) => one.words);
  const penalised = cured && state.alpha > 0;
  const [best] = sentences(tableWith(state.table, state.share));
  const likeliest =
    best.words === TABLES[state.table].first ? "the likeliest" : "now the likeliest";
  const isBest = state.table === "seven" && words[1] === best.words;
  const helped = `α = ${shown(state.alpha, 1)}: three and four beams return a sentence of 27`;
  return {
    text: penalised ? helped : claim,
    holds: penalised ? cured(...words) : holds(...words, best.words),
    because: isBest ? `${each}, ${likeliest}.` : `${each}.`,
  };
}

/** Whether the search finds what it looks for: the likeliest, or with a penalty the best score. */
export function checkFound(state) {
  const { alpha } = state;
  const [found, all] = [find(state), sentences(tableWith(state.table, state.share), alpha)];
  const holds = found.score > all[0].score - SAME;
  const own = all.find(({ words }) => words === found.words);
  const other = holds ? all.find(({ tokens }) => tokens !== own.tokens) : all[0];
  const oneLength = all.every(({ tokens }) => tokens === own.tokens);
  if (alpha === 0 || oneLength) {
    const missed = holds ? "" : `, and misses ${quoted(other)}`;
    const idle = alpha ? " All seven have three tokens, so α changes no order." : "";
    return { holds, because: `It finds ${quoted(found)}${missed}.${idle}` };
  }
  const [ours, theirs] = [found, other].map((each) => shown(each.score, 2));
  return {
    text: "beam search finds the sentence with the best score",
    holds,
    because:
      `It finds ${quoted(found)}, score ${ours}${holds ? ";" : ", and misses"} ` +
      `${quoted(other)}: ${theirs}.`,
  };
}

function listed(beams) {
  const first = beams
    .slice(0, LISTED)
    .map(({ words, log }) => quoted({ words: said(words), p: Math.exp(log) }));
  const more = beams.length - first.length;
  return first.join(", ") + (more ? ` and ${more} more` : "");
}

/** What there is after the step that the figure shows: the beams, or what the search has found. */
export function tell(now) {
  if (now.step === 0) return "Before the first step there is one beam: the empty beginning.";
  const [found, n] = [find(now), nSteps(now)];
  const { beams, ended } = found.steps[now.step - 1];
  const aside = ended.length ? ` Set aside, ended: ${listed(ended)}.` : "";
  if (now.step < n) return `Step ${now.step} of ${n}. Beams: ${listed(beams)}.${aside}`;
  const log = `log-probability ${shown(Math.log(found.p), 2)}`;
  const score = now.alpha ? `${log}, score ${shown(found.score, 2)}` : log;
  return `The search has ended after step ${n} with ${quoted(found)}: ${score}.`;
}
