// Chapter 6, sections 6.2 and 6.5: clocks at a position, and a query and a key that turn like hands.

import { shown } from "../elements.js";
import { Figure, range } from "./living.js";
import { hand, scored, speed } from "./turns.js";

export const CLAIM = "a later start changes scores of added positions, and no rotary score";
const CLOCKS = [0, 4, 8]; // of the 32 of d_model = 64

const places = ({ m, back, start }) => [
  [m, m - back],
  [m + start, m - back + start],
];
const alike = (a, b) => Math.abs(a - b) < 1e-9;

function check(state) {
  const [early, late] = places(state).map(([m, n]) =>
    scored(m, n, Number(state.clock), state.turn),
  );
  const [rotary, added] = ["rotary", "added"].map((kind) => alike(early[kind], late[kind]));
  const moves = (kind) => `${shown(early[kind], 2)} → ${shown(late[kind], 2)}`;
  const both = `Turned: ${moves("rotary")}; added: ${moves("added")}.`;
  const why = !rotary
    ? {
        query: "Only the query is turned. ",
        key: "Only the key is turned. ",
        against: "They turn against each other. ",
      }[state.turn]
    : added
      ? "The sentence does not begin later: nothing moves. "
      : "";
  return { holds: rotary && !added, because: why + both };
}

function pair(d, x, title, [m, n], state) {
  const { query, key, rotary } = scored(m, n, Number(state.clock), state.turn);
  const angle = ([up, right]) => Math.atan2(right, up);
  d.text(x, 10, title, { quiet: true });
  d.text(x, 27, `query at ${m}`, { role: "query" });
  d.text(x, 43, `key at ${n}`, { role: "key" });
  d.dial(x, 104, 48, [angle(query), "query"], [angle(key), "key"]);
  d.text(x, 168, `q · k = ${shown(rotary, 2)}`, { size: 14 }).setAttribute("data-value", rotary);
}

function draw(d, state) {
  const [early, late] = places(state);
  pair(d, 90, "the sentence", early, state);
  pair(d, 262, state.start ? `begun ${state.start} later` : "begun at the same place", late, state);
  const [m] = late;
  d.segment(4, 186, 346, 186, { lit: false, width: 0.7 });
  d.text(4, 202, `clocks at position ${m}`, { anchor: "start", bold: true });
  d.text(4, 286, "sin, cos", { anchor: "start", quiet: true });
  CLOCKS.forEach((clock, i) => {
    const x = 104 + 98 * i;
    const told = clock === Number(state.clock);
    d.dial(x, 242, 26, [speed(clock) * m, "position"]);
    d.row(x - 40, 276, hand(m, clock), "position", { size: [40, 20], digits: 2, bold: told });
    d.text(x, 308, `clock ${clock}, ω = ${shown(speed(clock), clock ? 2 : 0)}`, {
      bold: told,
      quiet: !told,
    });
  });
}

export function start(host) {
  const state = { m: 2, back: 1, start: 4, clock: "0", turn: "both" };
  const settle = (now) => {
    now.m = Math.max(now.m, now.back, 0);
  };
  const figure = new Figure(host, { title: "Turn the query and the key", state, settle });
  figure.slider(
    "start",
    "the sentence begins later, by",
    () => range(0, 60, 1),
    (n) => shown(n),
  );
  figure.slider(
    "m",
    "position of the query",
    ({ back }) => range(Math.max(0, back), 60, 1),
    (n) => shown(n),
  );
  const side = (n) => (n === 0 ? "the same place" : `${Math.abs(n)} ${n > 0 ? "back" : "ahead"}`);
  figure.slider("back", "distance to the key", () => range(-10, 10, 1), side);
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
  const alt = "A query and a key as hands of a dial, early and late; below, three clocks.";
  figure.drawing(318, alt, draw);
  figure.tick(CLAIM, check);
  figure.begin((now) => {
    const [early, late] = places(now).map(
      ([m, n]) => scored(m, n, Number(now.clock), now.turn).rotary,
    );
    const moved = alike(early, late) ? "stays" : "does not stay";
    return (
      `Query at ${now.m + now.start}, key ${side(now.back)}: the score ${moved} ${shown(early, 2)}` +
      `${alike(early, late) ? "" : `, it becomes ${shown(late, 2)}`}.`
    );
  });
}
