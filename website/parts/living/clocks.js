// Chapter 6, sections 6.2 and 6.5: a query and a key that turn like hands, or get clocks added.

import { surface } from "../drawing.js";
import { shown } from "../elements.js";
import { Figure, range } from "./living.js";
import { hand, KEY, QUERY, scored, speed } from "./turns.js";

export const CLAIM = "a later start changes scores of added positions, and no rotary score";
export const example = {
  state: { m: 2, back: 1, start: 4, clock: "0", turn: "both", moved: false },
  shows: ["query at 2", "key at 1", "query at 6", "key at 5", "q · k = 0.85", "−0.28", "0.96"],
};
export const breaks = {
  combobox: "what is turned",
  keys: ["ArrowDown"],
  claim: 0,
  because: "−0.08",
};
const CLOCKS = [0, 4, 8]; // of the 32 of d_model = 64

const places = ({ m, back, start }) => [
  [m, m - back],
  [m + start, m - back + start],
];
const alike = (a, b) => Math.abs(a - b) < 1e-9;

/** Two numbers with as many digits, at least two, as tell them apart. */
export function apart(a, b) {
  let digits = 2;
  while (!alike(a, b) && shown(a, digits) === shown(b, digits)) digits += 1;
  return [a, b].map((each) => shown(each, digits));
}

/** What is scored early and late. */
const scores = (state) =>
  places(state).map(([m, n]) => scored(m, n, Number(state.clock), state.turn));

export function check(state) {
  if (!state.start)
    return { holds: null, because: "Not tested: the sentence does not begin later." };
  const [early, late] = scores(state);
  const [rotary, added] = ["rotary", "added"].map((kind) => alike(early[kind], late[kind]));
  const moves = (kind) => apart(early[kind], late[kind]).join(" → ");
  const both = `Turned: ${moves("rotary")}; added: ${moves("added")}.`;
  const why = {
    both: "",
    query: "Only the query is turned. ",
    key: "Only the key is turned. ",
    against: "They turn against each other. ",
  }[state.turn];
  return { holds: rotary && !added, because: rotary ? both : why + both };
}

/** A clock; a hand is an angle, clockwise from the top, and a role. Between two hands lies a sector. */
function dial(d, x, y, radius, ...hands) {
  const at = (angle, length) => [x + length * Math.sin(angle), y - length * Math.cos(angle)];
  d.dot(x, y, radius, "plain", { fill: "var(--paper)", stroke: "var(--faint)" });
  if (hands.length === 2) {
    const [[from], [to]] = hands;
    const [half, way] = [radius / 2, Math.sin(to - from) > 0 ? 1 : 0];
    const arc = `L${at(from, half).join(" ")}A${half} ${half} 0 0 ${way} ${at(to, half).join(" ")}Z`;
    d.add("path", { d: `M${x} ${y}${arc}`, fill: surface("word"), "fill-opacity": 0.3 });
  }
  for (const [angle, role] of hands) d.arrow([x, y], at(angle, radius - 1), { role, width: 2 });
}

function pair(d, x, title, [m, n], { query, key, rotary }, score) {
  const angle = ([right, up]) => Math.atan2(right, up);
  d.text(x, 10, title, { quiet: true });
  d.text(x, 27, `query at ${m}`, { role: "query" });
  d.text(x, 43, `key at ${n}`, { role: "key" });
  dial(d, x, 98, 42, [angle(query), "query"], [angle(key), "key"]);
  d.text(x, 155, `q · k = ${score}`, { size: 14, "data-value": rotary });
}

/** A row of the sum: a position's clock, the query or the key, and both added. */
function term(d, y, name, role, vector, position, clock) {
  const size = [34, 20];
  const sum = vector.map((each, i) => each + hand(position, clock)[i]);
  d.text(4, y + 10, `${name} at ${position}`, { anchor: "start", role });
  dial(d, 100, y + 10, 11, [speed(clock) * position, "position"]);
  d.row(118, y, hand(position, clock), "position", { size, digits: 2 });
  d.text(204, y + 10, `+ ${name[0]} =`, { role });
  d.row(222, y, sum, role, { size, digits: 2, top: 2 });
}

function draw(d, state) {
  const [early, late] = places(state);
  const found = scores(state);
  const [rotary, added] = ["rotary", "added"].map((kind) =>
    apart(...found.map((each) => each[kind])),
  );
  const begun = state.start ? `begun ${state.start} later` : "begun at the same place";
  pair(d, 90, "the sentence", early, found[0], rotary[0]);
  pair(d, 262, begun, late, found[1], rotary[1]);
  const clock = Number(state.clock);
  d.segment(4, 172, 346, 172, { lit: false, width: 0.7 });
  d.text(4, 188, "positions added", { anchor: "start", bold: true });
  const numbers = ([a, b]) => `(${shown(a, 1)}, ${shown(b, 1)})`;
  d.text(346, 188, `q = ${numbers(QUERY)}, k = ${numbers(KEY)}`, { anchor: "end", quiet: true });
  d.text(96, 206, `clock ${clock}`, { quiet: true });
  d.text(152, 206, "sin, cos", { quiet: true });
  d.text(256, 206, "sum", { quiet: true });
  d.text(320, 206, "q · k", { quiet: true });
  [early, late].forEach(([m, n], i) => {
    const y = 217 + 56 * i;
    term(d, y, "query", "query", QUERY, m, clock);
    term(d, y + 26, "key", "key", KEY, n, clock);
    d.text(320, y + 23, added[i], { size: 14, "data-value": found[i].added });
  });
}

export function said(state) {
  const [early, late] = scores(state).map(({ rotary }) => rotary);
  const [before, after] = apart(early, late);
  const where = `Query at ${state.m + state.start}, key ${side(state.back)}: the score`;
  const moved = `The query moved to position ${state.m}: no key stands before 0. `;
  const does = !state.start
    ? `is ${after}`
    : alike(early, late)
      ? `stays ${after}`
      : `changes from ${before} to ${after}`;
  return `${state.moved ? moved : ""}${where} ${does}.`;
}

const side = (n) => (n === 0 ? "at the same place" : `${Math.abs(n)} ${n > 0 ? "back" : "ahead"}`);

export function start(host) {
  const { state } = example;
  let [asked, settled] = [state.m, state.m]; // a far key moves the query, as long as it is far
  const settle = (now) => {
    if (now.m !== settled) asked = now.m;
    now.m = settled = Math.max(asked, now.back);
    now.moved = now.m !== asked;
  };
  const invite = "Let the sentence begin later; then turn the query alone.";
  const figure = new Figure(host, { title: "Turn the query and the key", invite, state, settle });
  figure.slider("start", "the sentence begins later, by", range(0, 60, 1), (n) => shown(n));
  figure.slider(
    "m",
    "position of the query",
    ({ back }) => range(Math.max(0, back), 60, 1),
    (n) => shown(n),
  );
  figure.slider("back", "the key, from the query", range(10, -10, -1), side);
  const clocks = CLOCKS.map((clock) => [
    String(clock),
    `of clock ${clock}, ω = ${shown(speed(clock), clock ? 2 : 0)}`,
  ]);
  figure.select("clock", "how fast they turn", clocks);
  const turns = [
    ["both", "query and key, as in the chapter"],
    ["query", "the query alone"],
    ["key", "the key alone"],
    ["against", "the key the other way round"],
  ];
  figure.select("turn", "what is turned", turns);
  const alt =
    "A query and a key as hands of a dial, early and late; below, their sums with the clocks.";
  figure.drawing(322, alt, draw);
  figure.tick(CLAIM, check);
  figure.begin(said);
}
