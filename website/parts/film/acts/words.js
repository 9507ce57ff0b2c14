// Where a row comes from: the word's, and that of its place.

import { shown } from "../../elements.js";
import { span, strengths, two } from "../scene.js";

export function places(scene) {
  const { told, roomy } = scene;
  const { trace, words, asks } = told;
  const sums = trace.encoder[0].attention.x;
  const { y, pitch } = scene.rows(words.length, { most: roomy ? 90 : 66 });
  const size = scene.sizeIn(pitch);
  const gap = roomy ? 14 : 8;
  const x = scene.left + scene.label(words, size) + gap;
  scene.chooses(y, pitch);
  const small = roomy ? 12.5 : 11;
  const step = 0.29 * pitch;
  const figures = step >= small * 1.02;
  const added = (value, t) =>
    `${roomy ? `place ${t}: ` : ""}${value < 0 ? "−" : "+"} ${shown(Math.abs(value), 2)}`;
  const from = x + (figures ? scene.width(added(0, 0), small) + 16 : 4);
  const w = scene.right - from;
  const most = span(sums);
  const parts = [
    ["table", "word", trace.embedded, most, two, "embedding", "its row of the table"],
    ["place", "position", trace.positions, 2, added, "position", "the row of its place"],
    ["row", "memory", sums, most, (value) => `= ${two(value)}`, "input", "the row that goes in"],
  ];
  scene.words(words, x - gap, y, { on: asks, size });
  words.forEach((word, t) =>
    parts.forEach(([k, role, all, most, figure, of, what], i) => {
      const middle = y[t] + step * (i - 1);
      const more = { delay: i === 0 ? 0 : 0.25 * i + 0.04 * t };
      const address = { of, part: "source", query: t };
      scene.strip(from, middle, w, 0.84 * step, role, strengths(all[t], most), {
        ...{ ...more, name: `${k} ${t}`, from: k === "place" ? [40, 0] : undefined },
        asks: [address, `${word}: ${what}`],
      });
      if (!figures) return;
      const first = all[t][0];
      scene.number(from - 7, middle, figure(first, t), {
        ...{ ...more, name: `first ${k} ${t}`, size: small, bold: t === asks },
        asks: [address, `${word}: ${what} begins with ${two(first)}`],
      });
    }),
  );
  scene.title(
    figures ? "word + place = what goes in; in figures, the first number" : "",
    "word + place = the row that goes in",
  );
}
