// Chapter 17's server in small: the loop of section 17.2, on the clock of measured calls.

import { PAST, PROMPTS, READERS, STEPS, TOP } from "./server.js";

export const POLICIES = ["static", "shrinking", "continuous"];

/** The line through the two points beside x, or through the last two. */
function between(x, points) {
  const beside = points.findIndex(([at]) => at >= x);
  const i = Math.min(Math.max(beside < 0 ? points.length : beside, 1), points.length - 1);
  const [[a, y], [b, z]] = [points[i - 1], points[i]];
  return Math.max(y + ((z - y) * (x - a)) / (b - a), 0);
}

/** Of a call with T new words of each of B texts, whose longest has S words then. */
export function seconds(B, T, S) {
  if (T === 1)
    return between(
      S,
      STEPS.map(([length, row]) => [length, between(B, row)]),
    );
  return between(B * T, PROMPTS) + PAST * B * T * (S - T);
}

const ended = ({ times, answer }) => times.length >= answer;
const length = ({ prompt, times }) => prompt + times.length;
const longest = (texts, of) => Math.max(...texts.map(of));

/** The readers with their seats, and when each sat down, got each word, and left. */
export function serve({ policy, load, slots }) {
  let [now, at] = [0, 0];
  const readers = READERS.map(([gap, prompt, answer]) => {
    at += gap / (load * TOP);
    return { arrival: at, prompt, answer, times: [], seat: null, began: null, left: null };
  });
  const [coming, waiting] = [[...readers], []];
  let running = [];
  const call = (texts, T, S) => {
    now += seconds(texts.length, T, S);
    for (const text of texts) if (!ended(text)) text.times.push(now);
  };
  const sit = (reader) => {
    const taken = running.map(({ seat }) => seat);
    reader.seat = [...Array(slots).keys()].find((seat) => !taken.includes(seat));
    reader.began = now;
    running.push(reader);
  };
  while (coming.length || waiting.length || running.length) {
    if (!waiting.length && !running.length) now = Math.max(now, coming[0].arrival);
    while (coming.length && coming[0].arrival <= now) waiting.push(coming.shift());
    if (policy === "continuous" || !running.length)
      while (waiting.length && running.length < slots) sit(waiting.shift());
    const unread = running.filter(({ times }) => !times.length);
    if (unread.length) {
      const T = longest(unread, ({ prompt }) => prompt);
      call(unread, T, T);
    }
    const writing = policy === "static" ? running : running.filter((text) => !ended(text));
    if (!running.every(ended)) call(writing, 1, longest(writing, length));
    if (policy !== "static" || running.every(ended)) {
      for (const text of running) if (ended(text)) text.left = now;
      running = running.filter((text) => !ended(text));
    }
  }
  return readers;
}

/** What the readers waited, in seconds: of twenty, nineteen wait less for the first word. */
export function told(readers) {
  const first = readers.map(({ times, arrival }) => times[0] - arrival).sort((a, b) => a - b);
  const words = readers.reduce((n, { times }) => n + times.length, 0);
  const end = Math.max(...readers.map(({ times }) => times.at(-1)));
  return {
    words: words / (end - readers[0].arrival),
    first: first[Math.floor(0.95 * first.length)],
  };
}
