// Chapter 5: what one head or two bring of four sentences, as numbers and as points with their cuts.

import { cuts, hidden, NOUNS, place, QUESTIONS, SENTENCES, shares } from "./looks.js";

const [LEFT, TOP, SIDE] = [100, 96, 150];
const CELL = [42, 22];
const MIXED = SENTENCES.filter(([first, second]) => first !== second);

export const written = (nouns) => nouns.join(" … ");
const at = ([x, y]) => [LEFT + SIDE * x, TOP + SIDE * (1 - y)];

/** A row of weights for each head, and what comes of it: a column of numbers for each noun. */
function table(d, state) {
  const heads = state.two ? shares(state) : shares(state).slice(0, 1);
  const rows = [22, 48];
  d.text(4, 10, "percent", { anchor: "start", quiet: true });
  QUESTIONS.forEach((name, i) => d.text(85 + 42 * i, 10, name, { quiet: true }));
  MIXED.forEach((nouns, i) => d.text(238 + 72 * i, 10, written(nouns), { quiet: true }));
  heads.forEach((share, i) => {
    const y = state.two ? rows[i] : 35;
    d.text(4, y + 11, state.two ? `head ${i + 1}` : "one head", { anchor: "start", bold: true });
    d.row(64, y, [100 * share, 100 - 100 * share], "query", { top: 100, size: CELL });
    const to = state.two ? [rows[i]] : rows;
    for (const row of to) d.arrow([152, y + 11], [172, row + 11], { role: "query" });
  });
  NOUNS.forEach((noun, i) => {
    d.text(188, rows[i] + 11, noun);
    MIXED.forEach((nouns, j) =>
      d.cell(208 + 72 * j, rows[i], place(state, nouns)[i], "value", { digits: 2, size: [60, 22] }),
    );
  });
}

/** A sentence's two halves, as in Figure 5.2: green is dog. */
function mark(d, state, nouns) {
  const [x, y] = at(place(state, nouns));
  nouns.forEach((noun, i) =>
    d.box(x - 10 + 10 * i, y - 6, 10, 12, noun === "dog" ? "value" : "plain", { strength: 1 }),
  );
}

/** The words of a sentence: outside of the square, or beside its line, away from a straight cut. */
function name(d, state, nouns) {
  const [x, y] = at(place(state, nouns));
  const off = x - LEFT - SIDE / 2;
  const right = Math.abs(off) < 1 ? nouns[0] === "dog" : off > 0;
  const [over, up] = nouns[0] === nouns[1] ? [16, 0] : [14, -11];
  const [sign, anchor] = right ? [1, "start"] : [-1, "end"];
  d.text(x + sign * over, y + sign * up, written(nouns), { anchor, class: "living-above" });
}

/** A straight cut, through the centre. */
function straight(d, { towards: [x, y] }, options) {
  const reach = (SIDE / 2 + 6) / Math.max(Math.abs(x), Math.abs(y));
  const [u, v] = [LEFT + SIDE / 2, TOP + SIDE / 2];
  d.segment(u - reach * y, v - reach * x, u + reach * y, v + reach * x, options);
}

/** Where a map that bends cuts the line: between neighbours. */
function bends(d, state) {
  const along = SENTENCES.map((nouns) => place(state, nouns)[0]).sort((p, q) => p - q);
  for (let i = 1; i < along.length; i++) {
    const middle = (along[i] + along[i - 1]) / 2;
    const [x, y] = at([middle, 1 - middle]);
    d.segment(x - 9, y + 9, x + 9, y - 9, { role: "loss", width: 2, dashed: true });
  }
}

function verdict(state, { far }) {
  if (far) return "a straight cut";
  return hidden(state) ? "no cut at all" : "no straight cut, only bends (dotted)";
}

export function draw(d, state) {
  table(d, state);
  d.box(LEFT, TOP, SIDE, SIDE, "plain", { lit: false });
  const corners = [0, 1, 3, 2].map((i) => at(place(state, SENTENCES[i])));
  d.line([...corners, corners[0]], { lit: false, width: 2 });
  d.text(4, TOP + SIDE / 2, "cat ↑", { anchor: "start", quiet: true });
  d.text(LEFT + SIDE / 2, TOP + SIDE + 30, "dog →", { quiet: true });
  cuts(state).forEach((each, i) => {
    const y = TOP + SIDE + 52 + 18 * i;
    const look = { role: "loss", width: 2.5, dashed: i ? "7 5" : false };
    d.text(4, y, `${QUESTIONS[i]} noun`, { anchor: "start" });
    d.text(118, y, verdict(state, each), {
      anchor: "start",
      bold: true,
      role: each.far ? "value" : "loss",
    });
    if (each.far) d.segment(84, y, 110, y, look);
    if (each.far) straight(d, each, look);
    else if (!hidden(state)) bends(d, state);
  });
  const legend = "left half: the first noun, right: the second; green: dog";
  d.text(4, TOP + SIDE + 90, legend, { anchor: "start", quiet: true });
  for (const nouns of SENTENCES) mark(d, state, nouns);
  for (const nouns of SENTENCES) name(d, state, nouns);
}
