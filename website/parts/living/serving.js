// Chapter 17, section 17.2: users come, a batch fills and empties, by two policies.

import { shown } from "../elements.js";
import { Figure, range } from "./living.js";
import { POLICIES, serve, told } from "./serving_run.js";

export const CLAIMS = {
  more: "a refilled batch writes over 1.5 times as many words a second as a static one",
  sooner: "a slot that is given away at once brings the first word sooner",
};
export const example = {
  state: { policy: "static", load: 0.8, slots: 8, now: 8 },
  shows: ["8 slots", "users who wait", "a prompt is read", "for nobody"],
};
export const breaks = {
  slider: "load",
  keys: ["Home"],
  claim: 0,
  because: "words a second refilled",
};
const LOADS = [0.1, 0.2, 0.3, 0.5, 0.65, 0.8, 0.9, 1, 1.15, 1.3];
const WINDOW = 16; // seconds that are drawn
const MORE = 1.5; // as the claim says
const [LEFT, WIDE, TALL] = [4, 342, 17];

const runs = new Map();

/** The users of a state, and what they waited; computed once. */
function run(policy, { load, slots }) {
  const key = `${policy} ${load} ${slots}`;
  if (!runs.has(key)) {
    const users = serve({ policy, load, slots });
    runs.set(key, { users, ...told(users) });
  }
  return runs.get(key);
}

const slotsOf = (n) => (n === 1 ? "1 slot" : `${n} slots`);
const time = (seconds) => `${shown(seconds, seconds < 10 ? 1 : 0)} s`;

export function checkMore(state) {
  const [fixed, refilled] = POLICIES.map((policy) => run(policy, state).words);
  return {
    holds: refilled > MORE * fixed,
    because: `${shown(refilled, 0)} words a second refilled, ${shown(fixed, 0)} static.`,
  };
}

export function checkSooner(state) {
  const [fixed, refilled] = POLICIES.map((policy) => run(policy, state).first);
  return {
    holds: refilled < fixed,
    because: `Of twenty users nineteen have it within ${time(refilled)}, ${time(fixed)} static.`,
  };
}

/** How many have a slot, how many of them for nobody, and how many wait, at a time. */
export function counted(users, now) {
  const inside = users.filter(({ began, left }) => began <= now && now < left);
  return {
    sit: inside.length,
    nobody: inside.filter(({ times }) => times.at(-1) <= now).length,
    wait: users.filter(({ arrival, began }) => arrival <= now && now < began).length,
  };
}

function picture(d, state) {
  const { users } = run(state.policy, state);
  const x = (seconds) => LEFT + (WIDE * Math.min(seconds, WINDOW)) / WINDOW;
  const bar = (from, to, y, ...how) =>
    from < WINDOW && d.box(x(from), y, Math.max(x(to) - x(from), 1), TALL - 3, ...how);
  d.text(LEFT, 8, slotsOf(state.slots), { anchor: "start", bold: true });
  for (let i = 0; i < state.slots; i++)
    d.box(LEFT, 20 + TALL * i, WIDE, TALL - 3, "plain", { strength: 0, lit: false });
  for (const { began, left, times, slot } of users) {
    const y = 20 + TALL * slot;
    bar(began, times[0], y, "key", { strength: 0.8 });
    bar(times[0], times.at(-1), y, "query", { strength: 0.35 });
    if (left > times.at(-1)) bar(times.at(-1), left, y, "mask", { strength: 0.6 });
  }
  const base = 250;
  d.text(LEFT, 172, "users who wait", { anchor: "start", bold: true });
  const waits = range(0, WINDOW, 0.1).map((at) => counted(users, at).wait);
  const most = Math.max(10, ...waits);
  d.line(
    waits.map((n, i) => [x(i / 10), base - (60 * n) / most]),
    { role: "loss", width: 2 },
  );
  d.segment(LEFT, base, LEFT + WIDE, base, {});
  d.text(LEFT + WIDE, 172, `up to ${Math.max(...waits)}`, { anchor: "end" });
  for (let s = 4; s < WINDOW; s += 4) d.text(x(s), base + 11, `${s} s`, { quiet: true });
  d.segment(x(state.now), 18, x(state.now), base, { dashed: "3 3", width: 1.6 });
  const { sit, nobody, wait } = counted(users, state.now);
  const idle = nobody ? `, ${nobody} for nobody` : "";
  d.text(LEFT, 286, `at ${time(state.now)}: ${sit} in the batch${idle}, ${wait} wait`, {
    anchor: "start",
  });
  ["a prompt is read", "an answer is written", "for nobody"].forEach((words, i) => {
    d.box([4, 118, 262][i], 304, 12, 12, ["key", "query", "mask"][i], {
      strength: [0.8, 0.35, 0.6][i],
    });
    d.text([20, 134, 278][i], 310, words, { anchor: "start" });
  });
}

export function said(state) {
  const { users, words, first } = run(state.policy, state);
  const { sit, nobody, wait } = counted(users, state.now);
  const idle = nobody ? `, ${nobody} of them for nobody` : "";
  return (
    `At ${time(state.now)} users have ${sit} of ${slotsOf(state.slots)}${idle}, ` +
    `and ${wait} wait. ` +
    `Over all sixty users: ${shown(words, 0)} words a second; nineteen of twenty have their ` +
    `first word within ${time(first)}.`
  );
}

export function start(host) {
  const { state } = example;
  const invite =
    "Give free slots away at once (continuous); then lower the load until a claim breaks.";
  const figure = new Figure(host, { title: "Users come, and get a slot", invite, state });
  figure.select(
    "policy",
    "who gets a slot, and when",
    POLICIES.map((policy) => [policy, policy]),
  );
  figure.slider("load", "load, of what 8 refilled slots can do", LOADS, (load) =>
    shown(load, load * 10 === Math.round(load * 10) ? 1 : 2),
  );
  figure.slider("slots", "slots", range(1, 8, 1), (n) => shown(n, 0));
  figure.slider("now", "the time to look at", range(0, WINDOW, 0.5), (now) => `${shown(now, 1)} s`);
  const alt = "A row for each slot, with who has it over time; below, how many users wait.";
  figure.drawing(320, alt, picture);
  figure.tick(CLAIMS.more, checkMore);
  figure.tick(CLAIMS.sooner, checkSooner);
  figure.begin(said);
}
