// Chapter 5, sections 5.1 and 5.6: one head or two, and which of two nouns can be read from them.

import { shown } from "../elements.js";
import { Figure, range } from "./living.js";
import { cuts, hidden, place, QUESTIONS } from "./looks.js";
import { draw, written } from "./cuts.js";

export const CLAIMS = {
  never: "linear maps name the first or the second, never both",
  bend: "one head read by a hidden layer names two",
};
export const example = {
  state: { two: false, a: 70, b: 70 },
  shows: ["70", "30", "0.70", "0.30", "dog … dog", "cat … cat"],
};
export const breaks = { slider: "head 2", keys: ["ArrowLeft"], claim: 0, because: "0.03" };
const MIXED = [
  ["dog", "cat"],
  ["cat", "dog"],
];
const percent = (share) => `${share}\u00a0%`;

/** The chapter's theorem, for the weights of one head or two. */
export function checkNever(state) {
  const [first, second] = cuts(state).map(({ far }) => far);
  const holds = first > 0 !== second > 0;
  const from = state.two ? "from two heads’ shares of two nouns" : "from shares of two nouns";
  const alike = state.two && state.a === state.b ? " Both heads look alike, as one would." : "";
  return { holds, text: `${from} ${CLAIMS.never}`, because: why(state, first, second) + alike };
}

function why({ a }, first, second) {
  if (first && second)
    return (
      "The two looks differ, so each noun has a straight cut. No sentence is nearer to one than " +
      `${shown(Math.min(first, second), 2)} (with a noun for each head, 0.50).`
    );
  if (!first && !second)
    return "Neither: dog … cat and cat … dog are in one place, so no cut parts them.";
  const [named, lost] = first ? QUESTIONS : [...QUESTIONS].reverse();
  const turns = a % 100 ? "cat and dog take turns along the line" : "it has no weight at all";
  return `One straight cut names the ${named} noun. The ${lost} has none, because ${turns}.`;
}

/** What the chapter has trained; here: whether any such map exists. */
export function checkBend(state) {
  const [other, all] = [hidden(state), cuts(state)];
  const two = CLAIMS.bend.replace("one head", "two heads").replace("names", "name");
  const because = other
    ? `dog … cat and ${written(other)} are in one place, and no map, however bent, tells them apart.`
    : all.every(({ far }) => far)
      ? "No bend is needed here, because straight cuts are enough."
      : "The four sentences are in four places, and a map that bends can cut between any two.";
  return { holds: !other, text: `${state.two ? two : CLAIMS.bend} nouns`, because };
}

export function said(state) {
  const { two, a, b } = state;
  const who = two ? `Two heads, ${percent(a)} and ${percent(b)}` : `One head, ${percent(a)}`;
  const numbers = MIXED.map((nouns) => {
    const both = place(state, nouns).map((number) => shown(number, 2));
    return `${written(nouns)} gives ${both.join(" and ")}`;
  });
  return `${who} on the first noun: ${numbers.join(", ")}.`;
}

/** A `settle`: with one head both columns look alike; whoever turns head 2 cuts the head. */
function linked(last) {
  let b = last;
  return (now) => {
    if (!now.two && now.b !== b) now.two = now.b !== now.a;
    if (!now.two) now.b = now.a;
    b = now.b;
  };
}

export function start(host) {
  const { state } = example;
  const invite = "Can a straight cut name both nouns? Cut the head, then turn head 2.";
  const title = "One look or two";
  const figure = new Figure(host, { title, invite, state, settle: linked(state.b) });
  const steps = () => range(0, 100, 5);
  const of = (head) => `${head}’s weight on the first noun`;
  figure.slider("a", ({ two }) => of(two ? "head 1" : "the head"), steps, percent);
  const second = ({ two }) => (two ? of("head 2") : "head 2’s, if you cut the head");
  figure.box("two", "cut the head in two, a column for each");
  figure.slider("b", second, steps, percent);
  const alt =
    "The weights, the two numbers that they bring, and the four sentences as points in a square.";
  figure.drawing(344, alt, draw);
  figure.tick(`from shares of two nouns ${CLAIMS.never}`, checkNever);
  figure.tick(`${CLAIMS.bend} nouns`, checkBend);
  figure.begin(said);
}
