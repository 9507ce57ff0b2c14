// Chapter 17's server in small: the loop of section 17.2, on the clock of measured calls.

import { CLOCK, USERS, TOP } from "./server.js";

export const POLICIES = ["static", "continuous"];

/** The line through the two points beside x, or through the last two. */
function between(x, points) {
  const beside = points.findIndex(([at]) => at >= x);
  const i = Math.min(Math.max(beside < 0 ? points.length : beside, 1), points.length - 1);
  const [[a, y], [b, z]] = [points[i - 1], points[i]];
  return y + ((z - y) * (x - a)) / (b - a);
}

/** The seconds of a call that reads n new words of each text, which has S words then. */
export function seconds(texts) {
  let [rows, words, pairs, pieces] = [0, 0, 0, 0];
  for (const [n, S] of texts) {
    rows += n;
    words += S;
    pairs += n * S - (n * (n - 1)) / 2;
    pieces += n > 1 && n < S;
  }
  const { products, text, piece, word, pair } = CLOCK;
  const more = text * texts.length + piece * pieces + word * words + pair * pairs;
  return between(rows, products) + more;
}

const ended = ({ times, answer }) => times.length >= answer;
const length = ({ prompt, times }) => prompt + times.length;

/** The users with their slots, and when each got theirs, got each word, and left. */
export function serve({ policy, load, slots }) {
  let [now, at] = [0, 0];
  const users = USERS.map(([gap, prompt, answer]) => {
    at += gap / (load * TOP);
    return { arrival: at, prompt, answer, times: [], slot: null, began: null, left: null };
  });
  const [coming, waiting] = [[...users], []];
  let running = [];
  const seat = (user) => {
    const taken = running.map(({ slot }) => slot);
    user.slot = [...Array(slots).keys()].find((slot) => !taken.includes(slot));
    user.began = now;
    running.push(user);
  };
  while (coming.length || waiting.length || running.length) {
    if (!waiting.length && !running.length) now = Math.max(now, coming[0].arrival);
    while (coming.length && coming[0].arrival <= now) waiting.push(coming.shift());
    if (policy === "continuous" || !running.length)
      while (waiting.length && running.length < slots) seat(waiting.shift());
    // one call, without a budget: the prompt of who is new, and the next word of all others
    now += seconds(running.map((r) => [r.times.length ? 1 : r.prompt, length(r)]));
    for (const text of running) if (!ended(text)) text.times.push(now);
    if (policy === "continuous" || running.every(ended)) {
      for (const text of running) if (ended(text)) text.left = now;
      running = running.filter((text) => !ended(text));
    }
  }
  return users;
}

/** What users waited, in seconds: of twenty, nineteen wait less for the first word. */
export function told(users) {
  const first = users.map(({ times, arrival }) => times[0] - arrival).sort((a, b) => a - b);
  const words = users.reduce((n, { times }) => n + times.length, 0);
  const end = Math.max(...users.map(({ times }) => times.at(-1)));
  return {
    words: words / (end - users[0].arrival),
    first: first[Math.floor(0.95 * first.length)],
  };
}
