// Chapter 10, section 10.4: temperature, top-k and top-p on one distribution, and draws from it.

import { percent, shown } from "../elements.js";
import { Figure, range } from "./living.js";
import { drawn, reshaped } from "./next_word.js";
import { entropy } from "../numbers.js";

export const CLAIMS = {
  draws: "temperature, top-k and top-p sampling draw as their formulas say",
  cuts: "top-k 2 keeps two words of both; top-p 0.75 keeps one, or four",
};
const OFF = 5; // top-k of all words
export const example = {
  state: { which: "flat", tau: 1, k: OFF, enough: 1, n: 20000, seed: 0 },
  shows: ["28.0", "24.0", "20.0", "16.0", "12.0"],
};
export const breaks = { slider: "temperature", keys: ["End"], claim: 1, because: "top-p 4" };
const WORDS = ["chat", "roi", "lion", "âne", "ours"];
const BOTH = { peaked: [0.8, 0.1, 0.05, 0.03, 0.02], flat: [0.28, 0.24, 0.2, 0.16, 0.12] };
const ALIKE = 0.015; // the chapter's bound on the shares of 20,000 draws
const SURE = 0.9995; // shown as 100.0 %

const kept = (p) => p.filter((each) => each > 0).length;

/** Judges both cuts on both distributions, each alone; a cut that is not set is the chapter's. */
export function checkCuts({ tau, k: topK, enough: topP }) {
  const [k, enough] = [topK === OFF ? 2 : topK, topP === 1 ? 0.75 : topP];
  const left = (p, cut) => kept(reshaped(p, { tau, k: OFF, enough: 1, ...cut }));
  const { peaked, flat } = BOTH;
  const byK = [left(peaked, { k }), left(flat, { k })];
  const byP = [left(peaked, { enough }), left(flat, { enough })];
  const chapters = tau === 1 && k === 2 && enough === 0.75;
  const words = `${byK[0]} ${byK[0] === 1 ? "word" : "words"} of each`;
  const fewer = `top-p ${shown(enough, 2)} keeps fewer of the peaked one`;
  const is = (a, b) => `${a}` === `${b}`;
  return {
    text: chapters ? CLAIMS.cuts : `top-k ${k} keeps ${words}; ${fewer}`,
    holds: chapters ? is(byK, [2, 2]) && is(byP, [1, 4]) : byK[0] === byK[1] && byP[0] < byP[1],
    because:
      `Judged, each alone, at τ = ${shown(tau, 2)}: ${topK === OFF ? "the chapter’s " : ""}top-k ` +
      `${k}, ${topP === 1 ? "the chapter’s " : ""}top-p ${shown(enough, 2)}. ` +
      `Peaked: top-k keeps ${byK[0]}, top-p ${byP[0]}. Flat: top-k keeps ${byK[1]}, top-p ${byP[1]}.`,
  };
}

const points = (share, digits = 1) => `${shown(100 * share, digits)} points`;

/** A few words say nothing about shares: how far they are off by chance, at three standard errors. */
export function checkDraws(state) {
  const p = reshaped(BOTH[state.which], state);
  const shares = drawn(p, state.n, state.seed);
  const worst = Math.max(...shares.map((share, i) => Math.abs(share - p[i])));
  const by = (share) => 3 * Math.sqrt((share * (1 - share)) / state.n);
  const chance = Math.max(...p.map((share) => Math.min(by(share), Math.max(share, 1 - share))));
  const n = `${state.n.toLocaleString("en")} ${state.n === 1 ? "word" : "words"}`;
  if (chance > ALIKE) {
    const far = points(chance, 0);
    const limit = `the claim allows ${points(ALIKE)}`;
    return { holds: null, because: `Not tested: ${n} may be off by ${far} by chance, ${limit}.` };
  }
  const off = `Of ${n} a share is off by ${points(worst)} at most`;
  const sure = Math.max(...p) > SURE ? " (one word is as good as certain)" : "";
  return { holds: worst < ALIKE, because: `${off}${sure}; the claim allows ${points(ALIKE)}.` };
}

function bars(d, state) {
  const before = BOTH[state.which];
  const p = reshaped(before, state);
  const shares = drawn(p, state.n, state.seed);
  const base = 168;
  const top = Math.max(...before, ...p, ...shares) > 0.4 ? 1 : 0.4;
  const high = (share) => (140 * share) / top;
  [0.5 * top, top].forEach((share) => {
    d.segment(76, base - high(share), 346, base - high(share), { lit: false, width: 0.7 });
    d.text(72, base - high(share), percent(share), { anchor: "end", quiet: true });
  });
  WORDS.forEach((word, i) => {
    const x = 82 + 54 * i;
    d.text(x + 20, 10, word, { quiet: p[i] === 0 });
    d.box(x, base - high(before[i]), 40, high(before[i]), "plain", { strength: 0, dashed: true });
    if (p[i] > 0) d.box(x, base - high(p[i]), 40, high(p[i]), "loss", { strength: 0.5 });
    else d.segment(x + 6, base - 4, x + 34, base - high(before[i]) + 2, { role: "mask" });
    const y = base - high(shares[i]);
    d.segment(x - 3, y, x + 43, y, { role: "mask", width: 2.5 });
    d.cell(x, 184, 100 * before[i], "plain", { size: [40, 20] });
    d.cell(x, 210, 100 * p[i], "loss", { size: [40, 20], top: 100, digits: 1, struck: p[i] === 0 });
    d.cell(x, 236, 100 * shares[i], "plain", { size: [40, 20], digits: 1, struck: p[i] === 0 });
  });
  d.segment(76, base, 346, base, {});
  ["the model, %", "reshaped, %", "drawn, %"].forEach((name, i) =>
    d.text(74, 194 + 26 * i, name, { anchor: "end" }),
  );
  d.text(346, 266, "dashed: the model; line: drawn", { anchor: "end", quiet: true });
}

export function said(now) {
  const p = reshaped(BOTH[now.which], now);
  const most = p.indexOf(Math.max(...p));
  const n = kept(p);
  const rare = p.filter((each) => each > 0 && each < 1 - SURE).length; // shown as 0.0 %
  const hardly = rare ? ` (${rare} of them hardly ever)` : "";
  const words = n === 1 ? "One word can be drawn" : `${n} words can be drawn${hardly}`;
  const share = n > 1 && p[most] > SURE ? "over 99.9\u00a0%" : percent(p[most], 1);
  return (
    `${words}; the likeliest, ${WORDS[most]}, has ${share}. ` +
    `The entropy is ${shown(Math.abs(entropy(p)), 2)}; that of the model's shares ` +
    `${shown(entropy(BOTH[now.which]), 2)}.`
  );
}

export function start(host) {
  const { state } = example;
  const invite = "Raise τ until a claim breaks; then cut words with top-p.";
  const figure = new Figure(host, { title: "Reshape the next word, and draw it", invite, state });
  const names = [
    ["flat", "flat, as in Figure 10.7"],
    ["peaked", "peaked, as in Figure 10.7"],
  ];
  figure.select("which", "distribution of the word after un", names);
  const taus = [0.1, 0.15, 0.25, 0.35, 0.5, 0.7, 1, 1.4, 2, 3, 5, 10, 100];
  figure.slider("tau", "temperature τ", taus, (tau) => shown(tau, tau < 1 ? 2 : 1));
  figure.slider("k", "top-k: how many words stay", range(1, OFF, 1), (k) =>
    k === OFF ? "all" : shown(k),
  );
  const enough = () => range(0.05, 1, 0.05);
  figure.slider("enough", "top-p: the share that must be reached", enough, (p) =>
    p === 1 ? "all" : shown(p, 2),
  );
  const many = (n) => n.toLocaleString("en");
  figure.slider("n", "how many words are drawn", [1, 10, 100, 1000, 20000], many);
  figure.button("Draw again", () => figure.set({ seed: figure.state.seed + 1 }));
  const alt =
    "The shares of five words as bars: the model's, after reshaping, and among drawn words.";
  figure.drawing(274, alt, bars);
  figure.tick(CLAIMS.draws, checkDraws);
  figure.tick(CLAIMS.cuts, checkCuts);
  figure.begin(said);
}
