// The last act: all rounds, what is different in training, and why this word.

import { sum } from "../../numbers.js";
import { chance, share } from "../scene.js";
import { across, lookOf } from "./decoder.js";

export function end(scene) {
  const { told, roomy } = scene;
  const { rounds, text } = told.trace;
  const bottom = scene.bottom - (roomy ? 54 : 40);
  across(scene, { rounds: [...rounds.keys()], on: told.at, bottom });
  const middle = (scene.left + scene.right) / 2;
  scene.text(middle, scene.bottom - (roomy ? 20 : 13), text, {
    ...{ name: `whole ${text}`, anchor: "middle", lang: "fr", delay: 0.8 },
    ...{ bold: true, class: "sentence" },
    size: scene.fit([text], scene.right - scene.left, roomy ? 27 : 20),
  });
  scene.title("every round, second layer, mean of its four heads");
}

export function training(scene) {
  const { told, roomy } = scene;
  const { trace, before, known } = told;
  const n = trace.rounds.length;
  const heading = roomy ? 24 : 18;
  const { y, pitch, up } = scene.rows(n, { heading, most: roomy ? 58 : 46 });
  const inputs = trace.rounds.map(({ input }) => input.word);
  const wanted = trace.rounds.map(({ written }) => written.word);
  const small = Math.min(scene.small, 0.8 * pitch);
  const names = roomy ? ["before training", "after training"] : ["before", "after"];
  const column =
    Math.max(scene.width("> 99.9 %", small), scene.width(names[0])) + (roomy ? 20 : 12);
  const columnsAt = (size) => [scene.label(inputs, size), scene.label([...wanted, "wanted"], size)];
  const most = Math.min(scene.sizeIn(pitch), roomy ? 17 : 13.5);
  const cells = roomy ? 60 + 16 * n : 26 + 4 * n;
  const size = scene.shrunk(most, (each) => sum(columnsAt(each)) + 2 * column + cells);
  const [label, target] = columnsAt(size);
  const x = scene.left + label + 10;
  const out = scene.right - 2 * column - target - (roomy ? 22 : 6);
  const cell = Math.min((out - x - (roomy ? 26 : 8)) / n, roomy ? 66 : 30);
  const h = Math.min(pitch - 4, roomy ? 34 : 26);
  const inside = Math.min(11, 0.6 * h);
  const fits = inputs.every((word) => scene.width(word, inside, false) < cell - 5);
  const sees = scene.fitting(["what each place sees", "sees"], out - x - 8);
  scene.text(x, up, sees, { name: "h sees" });
  scene.text(out, up, "wanted", { name: "h wanted", bold: true });
  const columns = [scene.right - column, scene.right];
  columns.forEach((end, c) =>
    scene.text(end, up, names[c], { name: `h ${names[c]}`, anchor: "end" }),
  );
  scene.words(inputs, x - 10, y, { size, lang: "fr", key: "in" });
  trace.rounds.forEach(({ written: { id }, probabilities }, t) => {
    for (let s = 0; s < n; s++) {
      const [seen, from] = [s <= t, x + s * cell];
      scene.rect(from + 1, y[t] - h / 2, cell - 2, h, {
        ...{ name: `mask ${t} ${s}`, layer: "cell", rx: 3 },
        ...{ class: seen ? "seen" : "hatched", delay: 0.1 + 0.04 * (seen ? s : n) },
      });
      const more = { anchor: "middle", size: inside, lang: "fr", delay: 0.2 + 0.04 * s };
      if (seen && fits)
        scene.word(from + cell / 2, y[t], inputs[s], { name: `seen ${t} ${s}`, ...more });
    }
    const french = { size, lang: "fr", on: true, delay: 0.3 };
    scene.word(out, y[t], wanted[t], { name: `wanted ${t}`, ...french });
    [before[t], probabilities[id]].forEach((p, c) => {
      const of = ["before", "probability"][c];
      scene.number(columns[c], y[t], chance(p), {
        ...{ name: `chance ${c} ${t}`, size: small, row: pitch, delay: 0.4 + 0.3 * c },
        asks: [{ of, query: t, id }, `${wanted[t]}: ${chance(p)}`],
      });
    });
  });
  const whole = known ? `wanted: ${trace.text}` : `as if this were wanted: ${trace.text}`;
  scene.title(whole, "all places at once");
}

export function why(scene) {
  const { told, roomy } = scene;
  const { words, trace, at, cuts, cut, name } = told;
  const round = trace.rounds[at];
  const now = (cut ?? trace).rounds[at];
  const lines = scene.S.h < (words.length > 8 ? 420 : 300) ? 2 : 4;
  const table = (roomy ? 30 : lines > 2 ? 25 : 18) * lines + (roomy ? 40 : 32);
  const { left, start, broad, end } = across(scene, {
    ...{ rounds: [at], on: at, trace: cut ?? trace, bottom: scene.bottom - table },
    ...{ asks: undefined, rowAsks: undefined }, // a press takes a look away
  });
  const looks = lookOf(now);
  words.forEach((word, s) => {
    const place = [
      scene.left,
      left.y[s] - left.pitch / 2 + 1,
      end - 12 - scene.left,
      left.pitch - 2,
    ];
    scene.knife(s, start + 0.24 * broad, left.y[s], Math.min(roomy ? 10 : 9, 0.44 * left.pitch), {
      ...{ gone: cuts.includes(s), delay: 0.4, place },
      label: `Cut the look at ${word}: ${share(looks[s])}`,
    });
  });
  const all = [round.top[0], now.top[0], ...round.top.slice(1, 3), ...now.top.slice(1, 3)];
  const first = [...new Set(all)].slice(0, lines);
  const top = scene.bottom - table + (roomy ? 14 : 9);
  const rows = scene.rows(first.length, { top, heading: roomy ? 22 : 17, most: 34 });
  const { y, pitch, up } = rows;
  const size = Math.min(roomy ? 17 : 14, 0.75 * pitch);
  const label = Math.max(scene.label(first.map(name), size), scene.width("next word"));
  const from = scene.left + label + 12;
  const column = (scene.right - from) / 2;
  const room = column - scene.width("> 99.9 %") - 18;
  const without = cuts.length
    ? [`without ${cuts.map((s) => words[s]).join(", ")}`, `without ${cuts.length} looks`]
    : ["press × on a line", "press ×"];
  const head = scene.fitting(without, column, scene.small, true);
  scene.text(scene.left + label, up, "next word", { name: "h next", anchor: "end" });
  scene.text(from, up, "with all looks", { name: "h whole" });
  scene.text(from + column, up, head, { name: "h without", bold: true });
  first.forEach((id, i) => {
    const word = { anchor: "end", size, lang: "fr", on: id === now.top[0] };
    scene.word(scene.left + label, y[i], name(id), { name: `top ${id}`, ...word });
    [round, ...(cuts.length ? [now] : [])].forEach(({ probabilities, top }, c) => {
      const [best, p] = [id === top[0], chance(probabilities[id])];
      const when = c ? "without" : "with all looks";
      scene.bar(from + c * column, y[i], probabilities[id], p, {
        ...{ name: `${c} ${id}`, role: best ? "loss" : "plain", soft: !c, room, pitch, bold: best },
        asks: [{ of: "probability", query: at, id, cut: c > 0 }, `${name(id)}, ${when}: ${p}`],
        delay: 0.2 + 0.3 * c,
      });
    });
  });
  const after = `round ${at + 1}, after “${round.input.word}”`;
  scene.title(`${after}: second layer, mean of its four heads`, after);
}
