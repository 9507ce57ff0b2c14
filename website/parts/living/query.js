// Chapter 3, exercise 3.2: a query dragged over a thermometer's readings.

import { percent, shown } from "../elements.js";
import { Figure, range } from "./living.js";
import { errors, weights } from "./look_up.js";
import { dot } from "../numbers.js";
import { clock, digitsOf, plot, scales, SETS, table, widthOf } from "./thermometer.js";

export const CLAIM = "a weighted average beats the nearest reading and the mean on ten days of ten";
export const example = {
  state: { query: 7.5, width: 1, readings: "five" },
  shows: ["2.8", "20.6", "56.0", "20.6", "0.0", "7:30: 8.7 °C"],
};
export const breaks = { slider: "width", keys: ["End"], claim: 0, because: "12.0" };
export const WIDTHS = [0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.4, 2, 3, 4, 6, 8, 12];

function drag(figure, svg) {
  const move = (event) => {
    if (event.type === "pointermove" && !event.buttons) return;
    const box = svg.getBoundingClientRect();
    if (event.type === "pointerdown") svg.setPointerCapture(event.pointerId);
    const at = scales(SETS[figure.state.readings]).hour(
      ((event.clientX - box.left) * 350) / box.width,
    );
    figure.set({ query: Math.round(at * 10) / 10 });
  };
  svg.classList.add("living-dragged");
  for (const name of ["pointerdown", "pointermove"]) svg.addEventListener(name, move);
}

const found = ({ query, width, readings }) => weights(query, SETS[readings].hours, width);

export function check(state) {
  const { average, nearest, mean, wins } = errors(state.width);
  const tested = "Tested on ten days of forty readings. ";
  const text = `${CLAIM} (by a tenth or more, as the chapter’s code demands)`;
  const errs =
    `Errors: this average ${shown(average, 1)} °C, nearest reading ` +
    `${shown(nearest, 1)} °C, mean of the day ${shown(mean, 1)} °C.`;
  const why =
    state.width < 1
      ? "so few readings count that their errors hardly cancel"
      : "hours that are far away count, too";
  const on = wins === 10 ? "all ten" : `${wins || "none"} of them: ${why}`;
  const won = `its error is a tenth smaller than the nearest reading’s on ${on}. `;
  const because = `${tested}With w = ${widthOf(state)} ${won}${errs}`;
  return { holds: wins === 10, text, because };
}

export function said(state) {
  const [all, { hours, degrees }] = [found(state), SETS[state.readings]];
  const largest = Math.max(...all);
  const keys = hours
    .filter((_, i) => all[i] > largest - 1e-9)
    .map((hour) => shown(hour, digitsOf(state)));
  const [share, answer] = [percent(largest, 1), shown(dot(all, degrees), 1)];
  const which =
    keys.length > 1
      ? `The largest weights, ${share} each, are those of the keys ${keys.join(" and ")}.`
      : `The largest weight, ${share}, is that of the key ${keys[0]}.`;
  return `At ${clock(state.query)} the look-up says ${answer} °C. ${which}`;
}

export function start(host) {
  const { state } = example;
  const settle = (now) => {
    const { from, to } = SETS[now.readings];
    now.query = Math.min(to, Math.max(from, now.query));
  };
  const invite = "Make w smaller, then larger, until the claim breaks. Drag the query, too.";
  const figure = new Figure(host, { title: "Ask the thermometer", invite, state, settle });
  const axis = ({ readings }) => range(SETS[readings].from, SETS[readings].to, 0.1);
  figure.slider("query", "query q: the hour we ask for", axis, clock);
  const reach = (width) => widthOf({ width });
  figure.slider("width", "width w: how far it looks, in hours", WIDTHS, reach);
  const sets = [
    ["five", "five, of exercise 3.2"],
    ["forty", "forty, of a whole day"],
  ];
  figure.select("readings", "readings", sets);
  const alt =
    "The readings over the hours of the day, the average of them, and the query as a line.";
  const svg = figure.drawing(356, alt, (d, now) => {
    plot(d, now, found);
    table(d, now, found(now));
  });
  drag(figure, svg);
  figure.tick(CLAIM, check);
  figure.begin(said);
}
