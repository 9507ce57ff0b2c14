// Where a row comes from: the word's, and that of its place.

import { span, strengths, two } from "../scene.js";

export function places(scene) {
  const { trace, words, asks } = scene.told;
  const sums = trace.encoder[0].attention.x;
  const { y, pitch } = scene.rows(words.length, { most: scene.roomy ? 90 : 66 });
  const size = scene.sizeIn(pitch);
  const x = scene.left + scene.label(words, size) + (scene.roomy ? 14 : 8);
  scene.chooses(y, pitch);
  const small = scene.roomy ? 12.5 : 11;
  const step = 0.29 * pitch;
  const figures = step >= small * 1.02;
  const plus = (t) => (scene.roomy ? `place ${t}:  + ` : "+ ");
  const from = x + (figures ? scene.width(`${plus(0)}−0.00`, small) + 16 : 4);
  const most = span(sums);
  const parts = [
    ["row", "word", trace.embedded, most, () => "", "embedding", "its row of the table"],
    ["place", "position", trace.positions, 2, plus, "position", "the row of its place"],
    ["sum", "memory", sums, most, () => "= ", "input", "the row that goes in"],
  ];
  words.forEach((word, t) => {
    scene.word(`word ${t}`, word, x - (scene.roomy ? 14 : 8), y[t], {
      anchor: "end",
      size,
      on: t === asks,
    });
    parts.forEach(([k, role, all, most, sign, of, what], i) => {
      const middle = y[t] + step * (i - 1);
      const d = i === 0 ? 0 : 0.25 * i + 0.04 * t;
      const address = { of, part: "source", query: t };
      scene.strip(
        `${k} ${t}`,
        role,
        strengths(all[t], most),
        from,
        middle,
        scene.right - from,
        0.84 * step,
        {
          ...{ d, asks: [address, `${word}: ${what}`] },
          ...(k === "place" ? { from: [40, 0] } : {}),
        },
      );
      if (figures)
        scene.number(`first ${k} ${t}`, sign(t) + two(all[t][0]), from - 7, middle, {
          size: small,
          cls: t === asks ? "number strong" : "number",
          asks: [address, `${word}: ${what} begins with ${two(all[t][0])}`],
          d,
        });
    });
  });
  scene.title(
    figures ? "word + place = what goes in; in figures, the first number" : "",
    "word + place = the row that goes in",
  );
}
