// Chapter 7, section 7.3: addition and norm, each with a box, in stacks of 1 to 32 layers.

import { Figure, list, range } from "./living.js";
import { measuredIn, MOST, named, part, SAME, times } from "./stacks.js";
import { draw } from "./wiring.js";

export const CLAIMS = {
  own: "words and gradients keep a part of their own",
  level: "change the gradient by under a factor of ten",
};
export const example = {
  state: { n: 8, add: true, norm: true },
  shows: ["16 times", "10⁻¹²", "10⁶", "32"],
};
export const breaks = { slider: "layers", keys: ["End"], claim: 0, because: "32 layers" };
const OWN = { words: 0.05, gradients: 0.5 }; // as the chapter's code demands
const IN = ["none", "one of them", "two of them", "all three"];

export function checkOwn(state) {
  const { words, gradients } = measuredIn(state);
  const least = { words: Math.min(...words), gradients: Math.min(...gradients) };
  const few = words.filter((own) => own <= OWN.words).length;
  const holds = least.words > OWN.words && least.gradients > OWN.gradients;
  const both =
    `The smallest own parts in three new stacks: of the words ${part(least.words)} (asked: over ` +
    `${OWN.words}), of the gradients ${part(least.gradients)} (over ${OWN.gradients}).`;
  const lost = few ? ` In ${IN[few]} the four words are nearly one.` : "";
  const text = `${named(state)}: ${CLAIMS.own}`;
  return { holds, text, because: both + lost };
}

export function checkLevel(state) {
  const { arriving } = measuredIn(state);
  const holds = arriving.every((ratio) => ratio > 0.1 && ratio < 10);
  const ratios = list(arriving.map(times));
  const why = arriving.every((ratio) => ratio >= 10)
    ? " It grows in all three."
    : arriving.every((ratio) => ratio <= 0.1)
      ? " It fades in all three."
      : " The three differ.";
  const because = `In three new stacks it arrives ${ratios} times as large as it set out.`;
  const claim = state.n === 1 ? CLAIMS.level.replace("change", "changes") : CLAIMS.level;
  return { holds, text: `${named(state)} ${claim}`, because: holds ? because : because + why };
}

export function said(state) {
  const { words, arriving } = measuredIn(state);
  const same = words.filter((own) => own < SAME).length;
  const one = same
    ? `in ${IN[same]} the four words are the same, as far as the computer can tell`
    : `the own parts of the words are ${list(words.map(part))}`;
  return (
    `${named(state)}, three new stacks: ${one}, and the gradient arrives ` +
    `${list(arriving.map(times))} times as large.`
  );
}

export function start(host) {
  const { state } = example;
  const invite = "Take the addition away, then the norm. Then make the stack deeper.";
  const figure = new Figure(host, { title: "Add, norm and depth", invite, state });
  figure.slider("n", "layers of two sublayers each", range(1, MOST, 1), (n) => String(n));
  figure.box("add", "add: x + F(x), not F(x) alone");
  figure.box("norm", "norm: LayerNorm of the result");
  const alt =
    "The wiring of a sublayer; below, for every number of layers, gradients and own parts.";
  figure.drawing(392, alt, draw);
  figure.tick(`8 layers of Add & Norm: ${CLAIMS.own}`, checkOwn);
  figure.tick(`8 layers of Add & Norm ${CLAIMS.level}`, checkLevel);
  figure.begin(said);
}
