// The last act: all rounds, what is different in training, and why this word.

import { sum } from "../../numbers.js";
import { chance, share } from "../scene.js";
import { lookOf, sides } from "./decoder.js";

export function end(scene) {
  const { told, roomy } = scene;
  const { trace } = told;
  const room = roomy ? 54 : 40;
  sides(scene, { rounds: [...trace.rounds.keys()], on: told.at, bottom: scene.bottom - room });
  scene.text(
    `whole ${trace.text}`,
    trace.text,
    (scene.left + scene.right) / 2,
    scene.bottom - (roomy ? 20 : 13),
    {
      ...{ anchor: "middle", cls: "strong sentence", lang: "fr", d: 0.8 },
      size: scene.fit([trace.text], scene.right - scene.left, roomy ? 27 : 20),
    },
  );
  scene.title("every round, second layer, mean of its four heads");
}

export function training(scene) {
  const { told, roomy } = scene;
  const { trace, before, known } = told;
  const { rounds } = trace;
  const n = rounds.length;
  const heading = roomy ? 24 : 18;
  const { y, pitch } = scene.rows(n, {
    top: scene.top + heading,
    most: roomy ? 58 : 46,
  });
  const inputs = rounds.map(({ input }) => input.word);
  const wanted = rounds.map(({ written }) => written.word);
  const small = Math.min(scene.small, 0.8 * pitch);
  const figures = scene.width("> 99.9 %", small) + 6;
  const columnsAt = (size) => [scene.label(inputs, size), scene.label([...wanted, "wanted"], size)];
  const [gap, cells] = roomy ? [16, 60 + 16 * n] : [4, 26 + 4 * n];
  const most = Math.min(scene.sizeIn(pitch), roomy ? 17 : 13.5);
  const room = scene.right - scene.left - 2 * (figures + gap);
  const spare = (room - sum(columnsAt(most)) - 60 - 64 * n) / 2;
  const hasBars = roomy && room - sum(columnsAt(11)) - cells > 56;
  const bar = hasBars ? Math.min(96, Math.max(28, spare)) : 0;
  const column = figures + bar + gap;
  const size = scene.shrunk(most, (each) => {
    const [label, target] = columnsAt(each);
    return label + target + 2 * column + cells;
  });
  const [label, target] = columnsAt(size);
  const x = scene.left + label + 10;
  const out = scene.right - 2 * column - target - (roomy ? 22 : 6);
  const cell = Math.min((out - x - (roomy ? 26 : 8)) / n, roomy ? 66 : 30);
  const h = Math.min(pitch - 4, roomy ? 34 : 26);
  const inside = Math.min(11, 0.6 * h);
  const fits = inputs.every((word) => scene.width(word, inside, false) < cell - 5);
  const up = y[0] - pitch / 2 - heading / 2 + 1;
  const columns = [out + target + (roomy ? 22 : 6), scene.right - column + gap];
  scene.text("h sees", scene.fitting(["what each place sees", "sees"], out - x - 8), x, up);
  scene.text("h wanted", "wanted", out, up, { cls: "strong" });
  const fullNames = bar + figures > scene.width("before training") + 8;
  const names = fullNames ? ["before training", "after training"] : ["before", "after"];
  columns.forEach((from, c) => {
    const place = bar ? { x: from } : { x: from + figures, anchor: "end" };
    scene.text(`h ${names[c]}`, names[c], place.x, up, {
      anchor: place.anchor ?? "start",
      d: 0.3 * c,
    });
  });
  for (let t = 0; t < n; t++) {
    scene.word(`in ${t}`, inputs[t], x - 10, y[t], { anchor: "end", size, lang: "fr" });
    for (let s = 0; s < n; s++) {
      const seen = s <= t;
      const place = { x: x + s * cell + 1, y: y[t] - h / 2, w: cell - 2, h, r: 3 };
      scene.add("rect", `mask ${t} ${s}`, {
        cls: seen ? "fill seen" : "hatched",
        layer: "cell",
        ...place,
        d: 0.1 + 0.04 * (seen ? s : n),
      });
      if (seen && fits)
        scene.text(`seen ${t} ${s}`, inputs[s], place.x + cell / 2 - 1, y[t], {
          anchor: "middle",
          size: inside,
          cls: "ink",
          lang: "fr",
          d: 0.2 + 0.04 * s,
        });
    }
    scene.word(`wanted ${t}`, wanted[t], out, y[t], { size, lang: "fr", on: true, d: 0.3 });
    const after = rounds[t].probabilities[rounds[t].written.id];
    [before[t], after].forEach((p, c) => {
      const from = columns[c];
      const d = 0.4 + 0.3 * c;
      if (bar)
        scene.add("rect", `p ${c} ${t}`, {
          cls: "fill loss soft",
          layer: "cell",
          x: from,
          y: y[t] - 0.22 * h,
          w: Math.max(1.5, bar * p),
          h: 0.44 * h,
          r: 2,
          d,
        });
      const of = ["before", "probability"][c];
      const asks = [{ of, query: t, id: rounds[t].written.id }, `${wanted[t]}: ${chance(p)}`];
      scene.number(
        `chance ${c} ${t}`,
        chance(p),
        from + (bar ? Math.max(1.5, bar * p) + 6 : figures),
        y[t],
        {
          anchor: bar ? "start" : "end",
          cls: "number",
          size: small,
          asks,
          d,
        },
      );
    });
  }
  scene.title(
    known ? `wanted: ${trace.text}` : `as if this were wanted: ${trace.text}`,
    "all places at once",
  );
}

export function why(scene) {
  const { told, roomy } = scene;
  const { words, trace, at, cuts, cut, name } = told;
  const round = trace.rounds[at];
  const now = cut ? cut.rounds[at] : round;
  const lines = scene.S.h < (words.length > 8 ? 420 : 300) ? 2 : 4;
  const table = (roomy ? 30 : lines > 2 ? 25 : 18) * lines + (roomy ? 40 : 32);
  const looks = lookOf(now);
  const { left, start, broad, written } = sides(scene, {
    rounds: [at],
    on: at,
    bottom: scene.bottom - table,
    press: true,
    looks,
    out: () => now.written.word,
  });
  words.forEach((word, s) => {
    const gone = cuts.includes(s);
    const middle = start + 0.24 * broad;
    const y = left.y[s];
    const r = Math.min(roomy ? 10 : 9, 0.44 * left.pitch);
    scene.add("rect", `cut ${s}`, {
      cls: gone ? "knife gone" : "knife",
      layer: "cell",
      x: middle - r,
      y: y - r,
      w: 2 * r,
      h: 2 * r,
      r,
      d: 0.4,
    });
    scene.text(`cut mark ${s}`, gone ? "+" : "×", middle, y, {
      anchor: "middle",
      size: 1.5 * r,
      cls: gone ? "quiet" : "strong",
      d: 0.4,
    });
    scene.add("press", `cut ${s}`, {
      ...{
        cls: "ask",
        x: scene.left,
        y: y - left.pitch / 2 + 1,
        w: written - 12 - scene.left,
        h: left.pitch - 2,
      },
      ...{ does: { cut: s }, pressed: gone, label: `Cut the look at ${word}: ${share(looks[s])}` },
    });
  });
  const first = [
    ...new Set([round.top[0], now.top[0], ...round.top.slice(1, 3), ...now.top.slice(1, 3)]),
  ].slice(0, lines);
  const heading = roomy ? 22 : 17;
  const { y, pitch } = scene.rows(first.length, {
    top: scene.bottom - table + (roomy ? 14 : 9) + heading,
    most: 34,
  });
  const size = Math.min(roomy ? 17 : 14, 0.75 * pitch);
  const label = Math.max(scene.label(first.map(name), size), scene.width("next word"));
  const from = scene.left + label + 12;
  const column = (scene.right - from) / 2;
  const room = column - scene.width("> 99.9 %") - 18;
  const up = y[0] - pitch / 2 - heading / 2 + 2;
  scene.text("h next", "next word", scene.left + label, up, { anchor: "end" });
  scene.text("h whole", "with all looks", from, up);
  const without = cuts.length
    ? [`without ${cuts.map((s) => words[s]).join(", ")}`, `without ${cuts.length} looks`]
    : ["press × on a line", "press ×"];
  scene.text("h without", scene.fitting(without, column, scene.small, true), from + column, up, {
    cls: "strong",
  });
  first.forEach((id, i) => {
    scene.word(`top ${id}`, name(id), scene.left + label, y[i], {
      anchor: "end",
      size,
      lang: "fr",
      on: id === now.top[0],
    });
    [round, ...(cuts.length ? [now] : [])].forEach(({ probabilities, top }, c) => {
      const bar = Math.max(1.5, room * probabilities[id]);
      const x = from + c * column;
      const best = id === top[0];
      scene.add("rect", `chance ${c} ${id}`, {
        cls: `fill ${best ? "loss" : "plain"}${c ? "" : " soft"}`,
        layer: "cell",
        x,
        y: y[i] - 0.25 * pitch,
        w: bar,
        h: 0.5 * pitch,
        r: 2,
        d: 0.2 + 0.3 * c,
      });
      scene.number(`share ${c} ${id}`, chance(probabilities[id]), x + bar + 7, y[i], {
        ...{ anchor: "start", cls: best ? "number strong" : "number", d: 0.2 + 0.3 * c },
        asks: [
          { of: "probability", query: at, id, ...(c ? { cut: true } : {}) },
          `${name(id)}, ${c ? "without" : "with all looks"}: ${chance(probabilities[id])}`,
        ],
      });
    });
  });
  scene.title(
    `round ${at + 1}, after “${round.input.word}”: second layer, mean of its four heads`,
    `round ${at + 1}, after “${round.input.word}”`,
  );
}
