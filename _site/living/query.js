// Chapter 3, section 3.1: a query dragged over a thermometer's readings.

import { percent, shown } from "../elements.js";
import { Figure, range } from "./living.js";
import { errors, lookUp, truth, weights } from "./look_up.js";
import { dot } from "./numbers.js";
import { DAYS } from "./readings.js";

export const CLAIM = "a kernel average beats the nearest reading and the mean on ten days of ten";
const SETS = {
  five: { hours: [5, 6, 8, 9, 12], degrees: [7, 6, 9, 11, 16], from: 4, to: 13, low: 4, high: 18 },
  forty: { hours: DAYS[0][0], degrees: DAYS[0][1], from: 0, to: 24, low: 4, high: 23 },
};
const WIDTHS = [0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.4, 2, 3, 4, 6, 8, 12];

const clock = (hour) => {
  const minutes = Math.round(60 * hour);
  return `${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, "0")}`;
};

function scales({ from, to, low, high }) {
  const x = (hour) => 30 + (312 * (hour - from)) / (to - from);
  const y = (degree) => 196 - (176 * (degree - low)) / (high - low);
  return { x, y, hour: (at) => from + ((at - 30) * (to - from)) / 312 };
}

function axes(d, { from, to, low, high }, { x, y }) {
  d.line([
    [30, 20],
    [30, 196],
    [342, 196],
  ]);
  for (let hour = from; hour <= to; hour += to - from > 12 ? 4 : 1)
    d.text(x(hour), 208, String(hour), { quiet: true });
  for (let degree = low + 1; degree <= high; degree += 5)
    d.text(24, y(degree), String(degree), { anchor: "end", quiet: true });
  d.text(30, 9, "°C", { anchor: "end", quiet: true });
  d.text(342, 224, "hour of the day", { anchor: "end", quiet: true });
}

function plot(d, state, set, all) {
  const { x, y } = scales(set);
  axes(d, set, { x, y });
  const step = (set.to - set.from) / 156;
  const hours = range(0, 156, 1).map((i) => set.from + i * step);
  const bell = (h) => 196 - 46 * Math.exp(-((h - state.query) ** 2) / (2 * state.width ** 2));
  const curve = (height, options) =>
    d.line(
      hours.map((h) => [x(h), height(h)]),
      options,
    );
  curve(bell, { role: "query", width: 1, dashed: true });
  if (state.readings === "forty") curve((h) => y(truth(h)), { width: 1 });
  const average = (hour) => lookUp(hour, set.hours, set.degrees, state.width);
  curve((h) => y(average(h)), { role: "query", width: 2 });
  set.hours.forEach((hour, i) =>
    d.dot(x(hour), y(set.degrees[i]), 3 + 9 * Math.sqrt(all[i]), "value", 0.25 + 0.75 * all[i]),
  );
  const at = x(state.query);
  d.segment(at, 20, at, 196, { role: "query" });
  d.dot(at, 196, 8, "query");
  const answer = average(state.query);
  d.box(at - 5, y(answer) - 5, 10, 10, "value", { strength: 1 });
  const end = at > 250 ? "end" : "start";
  d.text(at + (end === "end" ? -12 : 12), 14, `${clock(state.query)}: ${shown(answer, 1)} °C`, {
    anchor: end,
    bold: true,
  });
}

/** Figure 3.1's rows, of the five readings that count most. */
function table(d, state, set, all) {
  const heaviest = all
    .map((_, i) => i)
    .sort((a, b) => all[b] - all[a])
    .slice(0, 5)
    .sort((a, b) => a - b);
  const of = (list) => heaviest.map((i) => list[i]);
  const size = [46, 20];
  const digits = state.readings === "five" ? 0 : 1;
  d.row(112, 240, of(set.hours), "key", { size, digits, top: 60 });
  const shares = of(all).map((each) => 100 * each);
  d.row(112, 266, shares, "query", { size, digits: 1, top: 100 });
  d.row(112, 292, of(set.degrees), "value", { size, digits, top: 80 });
  ["keys: the hours", "weights, %", "values, °C"].forEach((name, i) =>
    d.text(104, 250 + 26 * i, name, { anchor: "end" }),
  );
}

function drag(figure, drawing) {
  const move = (event) => {
    if (event.type === "pointermove" && !event.buttons) return;
    const box = drawing.svg.getBoundingClientRect();
    if (event.type === "pointerdown") drawing.svg.setPointerCapture(event.pointerId);
    const at = scales(SETS[figure.state.readings]).hour(
      ((event.clientX - box.left) * 350) / box.width,
    );
    figure.set({ query: Math.round(at * 10) / 10 });
  };
  drawing.svg.classList.add("living-dragged");
  for (const name of ["pointerdown", "pointermove"]) drawing.svg.addEventListener(name, move);
}

export function start(host) {
  const state = { query: 7.5, width: 1, readings: "five" };
  const settle = (now) => {
    const { from, to } = SETS[now.readings];
    now.query = Math.min(to, Math.max(from, now.query));
  };
  const figure = new Figure(host, { title: "Ask the thermometer", state, settle });
  const axis = ({ readings }) => range(SETS[readings].from, SETS[readings].to, 0.1);
  figure.slider("query", "query: the hour we ask for", axis, clock);
  const hours = (width) => shown(width, width < 0.1 ? 2 : 1);
  figure.slider("width", "width: how far the look-up reaches, in hours", () => WIDTHS, hours);
  const sets = [
    ["five", "five, of Figure 3.1"],
    ["forty", "forty, of Figure 3.2"],
  ];
  figure.select("readings", "readings", sets);
  const alt =
    "The readings over the hours of the day, the average of them, and the query as a line.";
  const drawing = figure.drawing(318, alt, (d, now) => {
    const set = SETS[now.readings];
    const all = weights(now.query, set.hours, now.width);
    plot(d, now, set, all);
    table(d, now, set, all);
  });
  drag(figure, drawing);
  figure.tick(CLAIM, ({ width }) => {
    const found = errors(width);
    const because =
      `Errors: this average ${shown(found.average, 1)} °C, nearest reading ` +
      `${shown(found.nearest, 1)} °C, mean of the day ${shown(found.mean, 1)} °C.`;
    const why =
      width < 1 ? "too few readings share their errors" : "it reads hours that are too far";
    const lost = `With this width it wins ${found.wins} of ten: ${why}. `;
    return { holds: found.wins === 10, because: found.wins === 10 ? because : lost + because };
  });
  figure.begin((now) => {
    const set = SETS[now.readings];
    const all = weights(now.query, set.hours, now.width);
    const most = all.indexOf(Math.max(...all));
    return (
      `At ${clock(now.query)} the look-up says ${shown(dot(all, set.degrees), 1)} °C. Most weight, ` +
      `${percent(all[most])}, has the reading of ${clock(set.hours[most])}.`
    );
  });
}
