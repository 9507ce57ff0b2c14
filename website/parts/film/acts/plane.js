// The first act: words as points of a plane, coloured by what the decoder would write there, and the way
// that a word goes when it asks. Beside the plane, or under it, stands who answers and how much.

import { line, mixed, path } from "../../drawing.js";
import { embeddingOf, placeOf } from "../../translator/model.js";
import { SHOWN, spotOf, VIEW } from "../moves.js";
import { filled, share, span, strengths, two } from "../scene.js";

const CELL = 3; // px of a coloured square
const SHADES = { le: 7, les: 15, la: 24 }; // percent of the colour of what is written
/** How a point looks: a noun, the word that moves, and where it began. */
const POINTS = {
  noun: { fill: "var(--paper)", stroke: "var(--ink)" },
  asker: { fill: line("query"), stroke: "var(--paper)" },
  began: { fill: "none", stroke: line("query") },
};
const FOLLOWED = { "stroke-width": 2.5 };
const WRONG = { class: "wrong", fill: "var(--paper)", "stroke-width": 3 };
const sentenceOf = ({ words }) => words.slice(0, -1).join(" ");
const shortName = (word) => (word === "<eos>" ? "end" : word);

class Plane {
  constructor(scene) {
    const { S, roomy } = scene;
    Object.assign(this, { scene, roomy, told: scene.told, taken: [] });
    const [beside, under] = [Math.min(350, 0.36 * S.w), 152];
    const P = roomy ? { ...S, w: S.w - beside } : { ...S, h: S.h - under };
    const scale = Math.min(P.h / (VIEW.high - VIEW.low), P.w / 18.5); // as much as the dots need
    const h = Math.floor(Math.min(P.h, scale * (VIEW.high - VIEW.low)));
    const w = Math.floor(Math.min(P.w, scale * (VIEW.right - VIEW.left)));
    this.P = { x: Math.round(P.x), y: Math.round(P.y), w, h };
    const left = (VIEW.left + VIEW.right - w / scale) / 2;
    this.at = ([x, y]) => [this.P.x + scale * (x - left), this.P.y + scale * (VIEW.high - y)];
    this.from = (px, py) => [left + (px - this.P.x) / scale, VIEW.high - (py - this.P.y) / scale];
    this.panel = roomy
      ? { x: S.x + w + 22, y: S.y + 6, w: S.w - w - 24, h: S.h - 12 }
      : { x: S.x + 6, y: S.y + S.h - under + 8, w: S.w - 12, h: under - 10 };
    this.size = roomy ? 14.5 : 12.5;
  }

  ground(field) {
    const { scene, P, roomy } = this;
    scene.rect(P.x, P.y, P.w, P.h, { name: "ground", fill: "var(--shelf)" });
    const [x, y] = this.at([0, 0]);
    const axis = { lit: false, width: 1 };
    scene.segment(P.x, y, P.x + P.w, y, { name: "across", ...axis });
    scene.segment(x, P.y, x, P.y + P.h, { name: "up", ...axis });
    const size = roomy ? 13 : 11.5;
    const names = [
      ["west", "← masculine", P.x + 6, y - 9, "start"],
      ["east", roomy ? "feminine in French →" : "feminine →", P.x + P.w - 6, y - 9, "end"],
      ["north", "↑ more than one", x + 7, P.y + 11, "start"],
      ["south", "↓ one", x + 7, P.y + P.h - 10, "start"],
    ];
    for (const [k, s, px, py, anchor] of names) {
      const w = scene.width(s, size, false);
      this.taken.push({ x: anchor === "end" ? px - w : px, y: py - 8, w, h: 16 });
      scene.text(px, py, s, { name: k, size, anchor });
    }
    if (field) this.#regions(field);
  }

  /** What would be written, square by square, and each word where it has most room. */
  #regions(field) {
    const { scene, P } = this;
    const paths = new Map();
    const coarse = [];
    for (let y = 0; y < P.h; y += CELL) {
      let start = 0;
      let before;
      for (let x = 0; x < P.w + CELL; x += CELL) {
        const h = Math.min(CELL, P.h - y);
        const here = x < P.w ? field(this.from(P.x + x + CELL / 2, P.y + y + h / 2)) : null;
        if (here !== null && x % 24 === 0 && y % 24 === 0) coarse.push([here, P.x + x, P.y + y]);
        if (here === before) continue;
        const w = Math.min(x, P.w) - start;
        if (before)
          paths.set(
            before,
            `${paths.get(before) ?? ""}M${P.x + start} ${P.y + y}h${w}v${h}h${-w}z`,
          );
        [start, before] = [x, here];
      }
    }
    for (const [word, d] of paths) {
      const fill = mixed("loss", SHADES[word]);
      scene.add("path", { name: `region ${word}`, layer: "back", d, fill });
      const named = this.taken.flatMap((b) => [0, 0.5, 1].map((t) => [b.x + t * b.w, b.y + 8]));
      const others = coarse.filter(([other]) => other !== word).map(([, u, v]) => [u, v]);
      const points = this.told.ways.flat().map(this.at);
      const room = ([, x, y]) =>
        Math.min(
          ...[x - P.x, P.x + P.w - x, y - P.y - 10, P.y + P.h - y - 10],
          ...[...others, ...named, ...points].map(([u, v]) => Math.hypot(u - x, v - y)),
        );
      const [, x, y] = coarse
        .filter(([own]) => own === word)
        .reduce((a, b) => (room(b) > room(a) ? b : a), [null, P.x, P.y]);
      const size = this.roomy ? 26 : 19;
      const w = scene.width(word, size);
      const look = { size, anchor: "middle", role: "loss", bold: true, lang: "fr" };
      scene.text(x, y, word, { name: `region ${word}`, ...look });
      this.taken.push({ x: x - w / 2, y: y - size / 2, w, h: size });
    }
  }

  dot(name, [x, y], r, kind, more = {}) {
    const look = { ...POINTS[kind], "stroke-width": 1.3 };
    this.scene.dot(x, y, r, "plain", { name: `dot ${name}`, ...look, ...more });
    this.taken.push({ x: x - r, y: y - r, w: 2 * r, h: 2 * r });
  }

  /** A word at its point, where nothing stands yet; `must` it, it stands on what is there. */
  label(name, words, [x, y], { must = false, size = this.size, gap = 9, ...look } = {}) {
    const { scene, P } = this;
    const w = scene.width(words, size);
    const far = must ? [1, 2.2, 4, 6] : [1, 1.6];
    const sides = far
      .map((times) => times * gap)
      .flatMap((g) => [
        ...[
          [x + g, y, "start"],
          [x - g, y, "end"],
          [x, y - g - 4, "middle"],
          [x, y + g + 4, "middle"],
        ],
        ...[
          [x + g, y - g, "start"],
          [x - g, y - g, "end"],
          [x + g, y + g, "start"],
          [x - g, y + g, "end"],
        ],
      ]);
    const boxed = ([lx, ly, anchor]) => ({
      x: anchor === "start" ? lx - 2 : anchor === "end" ? lx - w - 2 : lx - w / 2 - 2,
      ...{ y: ly - 0.6 * size, w: w + 4, h: 1.2 * size },
    });
    const inside = (b) =>
      b.x >= P.x && b.x + b.w <= P.x + P.w && b.y >= P.y && b.y + b.h <= P.y + P.h;
    const free = (b) =>
      !this.taken.some(
        (o) => b.x < o.x + o.w && o.x < b.x + b.w && b.y < o.y + o.h && o.y < b.y + b.h,
      );
    const best = sides.find((each) => inside(boxed(each)) && free(boxed(each)));
    const [lx, ly, anchor] = best ?? sides.find((each) => inside(boxed(each))) ?? sides[0];
    if (!best && !must) return;
    this.taken.push(boxed([lx, ly, anchor]));
    scene.text(lx, ly, words, { name, size, anchor, quiet: false, lang: "en", ...look });
  }

  /** A line with a tip, if it's long enough to have one. */
  arrow(name, from, to, { width, ...more }) {
    const [[x, y], [u, v]] = [this.at(from), this.at(to)];
    const long = Math.hypot(u - x, v - y);
    const tip = long < 12 ? 0 : 5 + width;
    const [a, c] = long ? [(u - x) / long, (v - y) / long] : [0, 0];
    const [ex, ey] = [u - tip * a, v - tip * c];
    this.scene.segment(x, y, ex, ey, { name: `arrow ${name}`, role: "value", width, ...more });
    if (!tip) return;
    const half = 0.55 * tip;
    const [left, right] = [1, -1].map((way) => [ex - way * half * c, ey + way * half * a]);
    const d = path([[u, v], left, right]);
    this.scene.add("path", { name: `tip ${name}`, d, ...filled("value"), ...more });
  }

  /** Draws a way from spot to spot; labels come later, and stand beside it. */
  way(name, spots, { on = false, ...more }) {
    const p = spots.map(this.at);
    const look = { role: "query", width: 1.6, "stroke-opacity": on ? 1 : 0.45 };
    this.scene.line(p, { name: `way ${name}`, ...look, ...more });
    for (let i = 1; i < p.length; i++)
      for (let t = 0; t < 1; t += 0.1) {
        const [x, y] = p[i].map((to, axis) => t * p[i - 1][axis] + (1 - t) * to);
        this.taken.push({ x: x - 2, y: y - 2, w: 4, h: 4 });
      }
  }

  /** The word that moves, and where it began. */
  the(spot, { from, word = "the", key = "0", kind = "asker", ...more } = {}) {
    if (from) this.dot(`from ${key}`, this.at(from), this.roomy ? 5 : 4, "began");
    this.dot(key, this.at(spot), this.roomy ? 8 : 6.5, kind, { layer: "text", ...more });
    this.label(`word ${key}`, word, this.at(spot), {
      ...{ must: true, bold: true, size: this.size + 1.5, gap: 12 },
    });
  }

  /** Draws all nouns as they go in; those that can be followed can be pressed. */
  cloud() {
    const { told, scene } = this;
    const place = placeOf(told.place, told.trace.model.config.d_model);
    const all = told.cloud.flatMap(({ forms, feminine }) =>
      [...new Set(forms)].map((word) => ({ word, feminine })),
    );
    const seen = [told.noun, ...SHOWN];
    const rank = ({ word }) => (seen.includes(word) ? seen.indexOf(word) : seen.length);
    const points = all
      .sort((a, b) => rank(a) - rank(b))
      .map(({ word, feminine }) => {
        const row = embeddingOf(told.trace.model.sourceTable, told.idOf(word));
        const at = this.at(spotOf(row.map((x, i) => x + place[i])));
        const on = word === told.noun;
        const r = on ? 6 : seen.includes(word) ? 4.5 : 3;
        const look = { ...(feminine && { fill: "var(--ink)" }), ...(on && FOLLOWED) };
        this.dot(`noun ${word}`, at, r, "noun", look);
        const does = { row: told.nouns.indexOf(word) };
        if (does.row >= 0) scene.press(`noun ${word}`, [at[0] - 8, at[1] - 8, 16, 16], { does });
        return { word, at, on };
      });
    for (const { word, at, on } of points.slice(0, this.roomy ? 34 : 20))
      this.label(on ? `word ${told.place}` : `noun ${word}`, word, at, {
        ...(seen.includes(word)
          ? { must: on, bold: true }
          : { quiet: true, size: this.size - 2.5 }),
      });
  }

  /** The other words of the sentence, at `stage` of their ways. */
  others(stage) {
    const { words, ways, place } = this.told;
    words.forEach((word, s) => {
      if (!s) return;
      const [at, on] = [this.at(ways[stage][s]), s === place];
      this.dot(String(s), at, on ? 6 : 4.5, "noun", on ? FOLLOWED : {});
      this.label(`word ${s}`, shortName(word), at, { must: on, bold: on });
    });
  }

  /** Lines of the panel: a word each, its share of `layer`, and what `more` adds. */
  list(head, layer, { more, foot, prefix = "" } = {}) {
    const { scene, told, roomy, panel } = this;
    const { words, looks, place } = told;
    const n = words.length + (foot ? 1 : 0);
    const pitch = Math.min(roomy ? 44 : 25, (panel.h - 18) / n);
    const size = Math.min(this.size, 0.8 * pitch);
    const names = words.map((word) => `${prefix}${shortName(word)}`);
    const label = Math.max(...names.map((name) => scene.width(name, size))) + 10;
    head.forEach(([s, x, anchor = "start"]) => {
      const look = { anchor, size: roomy ? 12.5 : 11.5 };
      scene.text(panel.x + x * panel.w, panel.y + 6, s, { name: `head ${s}`, ...look });
    });
    const y = (s) => panel.y + 18 + pitch * (s + 0.5);
    names.forEach((_, s) => {
      const on = s === place;
      const x = panel.x + label;
      scene.word(x - 8, y(s), names[s], { name: `list ${s}`, anchor: "end", size, on });
      if (layer !== undefined) this.#share(s, looks[layer][s], { x, y: y(s), layer, on, pitch });
      more?.(s, { x, y: y(s), pitch, size, on });
    });
    if (foot) {
      const line = { name: "list line", lit: false, width: 1 };
      scene.segment(panel.x, y(n - 1.5), panel.x + panel.w, y(n - 1.5), line);
      foot({ x: panel.x, y: y(n - 1), size });
    }
  }

  #share(s, w, { x, y, layer, on, pitch }) {
    const { scene, panel, told } = this;
    const room = this.bars ? 0.16 * panel.w : Math.min(0.32 * panel.w, panel.x + panel.w - x - 160);
    scene.bar(x + this.bars * panel.w, y, w, share(w), {
      ...{ name: s, role: "query", room, pitch, high: 12, size: this.size - 1, bold: on },
      asks: [
        { of: "share", part: "encoder", layer, query: 0, key: s },
        `the looks at ${shortName(told.words[s])}: ${share(w)}`,
      ],
    });
  }
  bars = 0;

  /** A row of numbers with its name, in the panel. */
  row(name, row, y, role, address) {
    const { scene, panel, roomy } = this;
    scene.text(panel.x, y, name, { name: `name ${name}`, bold: true, size: roomy ? 13 : 12 });
    const h = roomy ? 24 : 18;
    scene.strip(panel.x, y + 12 + h / 2, panel.w, h, role, strengths(row, span([row])), {
      name: "row",
      asks: [address, `${name}: its ${row.length} numbers`],
    });
    return y + 12 + h;
  }

  lines(texts, y) {
    const { scene, panel, roomy } = this;
    texts.forEach(([s, look = {}], i) => {
      const size = scene.fit([s], panel.w, this.size, look.bold);
      const more = { name: `line ${s}`, lang: "en", size, ...look };
      scene.text(panel.x, y + (roomy ? 27 : 19) * i, s, more);
    });
  }
}

export function point(scene) {
  const plane = new Plane(scene);
  const { told } = plane;
  plane.ground();
  plane.cloud();
  const query = told.place;
  const row = told.trace.encoder[0].attention.x[query];
  const y = plane.row(`${told.noun} in its place`, row, plane.panel.y + 10, "memory", {
    ...{ of: "input", part: "source", query },
  });
  const [x, up] = told.ways[0][query];
  const where = `${two(Math.abs(x))} to the ${x > 0 ? "right" : "left"}, ${two(Math.abs(up))} ${up > 0 ? "up" : "down"}`;
  plane.lines([[`here: ${where}`], ["● feminine   ○ masculine in French"]], y + 22);
}

export function colours(scene) {
  const plane = new Plane(scene);
  const { told } = plane;
  plane.ground(told.field);
  plane.the(told.ways[0][0]);
  const row = told.trace.encoder[0].attention.x[0];
  const y = plane.row("the, at the beginning", row, plane.panel.y + 10, "memory", {
    ...{ of: "input", part: "source", query: 0 },
  });
  const asked = ["le? la? les?", { quiet: false, lang: "fr" }];
  plane.lines([[sentenceOf(told), { bold: true }], asked], y + 24);
}

export function asks(scene) {
  const plane = new Plane(scene);
  const { told, panel, roomy } = plane;
  const { looks, ways, words, trace } = told;
  plane.ground(told.field);
  plane.the(ways[0][0]);
  plane.others(0);
  looks[0].forEach((w, s) => {
    if (!s) return;
    const look = { role: "query", width: 14 * w, opacity: 0.2 + 0.5 * w, delay: 0.3 };
    scene.line([ways[0][s], ways[0][0]].map(plane.at), { name: `look ${s}`, ...look });
  });
  const { heads } = trace.encoder[0].attention;
  const whole = (name, t) => heads.flatMap((head) => [...head[name][t]]);
  const [query, keys] = [whole("queries", 0), words.map((_, s) => whole("keys", s))];
  const most = span([query, ...keys]);
  const h = roomy ? 18 : 12;
  plane.bars = 0.3;
  plane.list([], 0, {
    prefix: "key of ",
    more(s, { x, y }) {
      const [w, delay] = [0.28 * panel.w, 0.2 + 0.1 * s];
      scene.strip(x, y, w, h, "key", strengths(keys[s], most), { name: `key ${s}`, delay });
      if (s) return;
      const query_ = { anchor: "end", bold: true, size: plane.size - 1 };
      scene.text(x - 8, panel.y + 6, "query of the", { name: "query of", ...query_ });
      scene.strip(x, panel.y + 6, w, h, "query", strengths(query, most), { name: "query" });
    },
  });
}

/** The arrows of one look, end to end from where the word is, the longest first. */
function moved(plane, layer) {
  const { told, scene, panel } = plane;
  const { ways, words, arrows, place } = told;
  const [before, after] = layer ? [2, 3] : [0, 1];
  plane.ground(told.field);
  if (layer) {
    plane.way("first look", [ways[0][0], ways[1][0]], { on: true });
    plane.way("network", [ways[1][0], ways[2][0]], { on: true, role: "plain", width: 2.5 });
  }
  const far = (s) => Math.hypot(...arrows[layer][s]);
  let from = ways[before][0];
  [...words.keys()]
    .sort((a, b) => far(b) - far(a))
    .forEach((s, i) => {
      const to = from.map((x, axis) => x + arrows[layer][s][axis]);
      plane.arrow(String(s), from, to, { width: s === place ? 4 : 2.5, delay: 0.3 + 0.2 * i });
      const middle = plane.at(from.map((x, axis) => (x + to[axis]) / 2));
      if (far(s) > 1.5)
        plane.label(`of ${s}`, s ? shortName(words[s]) : "itself", middle, { role: "value" });
      from = to;
    });
  plane.the(ways[after][0], { from: ways[0][0] });
  const sum = (axis) => arrows[layer].reduce((all, each) => all + each[axis], 0);
  const figures = ([x, y]) =>
    `${two(Math.abs(x))} ${x < 0 ? "←" : "→"}  ${two(Math.abs(y))} ${y < 0 ? "↓" : "↑"}`;
  const right = { anchor: "end", size: plane.size - 1, role: "value" };
  plane.list(
    [
      [`layer ${layer + 1}: shares`, 0],
      ["pulls", 1, "end"],
    ],
    layer,
    {
      more: (s, { y, on }) =>
        scene.text(panel.x + panel.w, y, figures(arrows[layer][s]), {
          ...{ name: `pull ${s}`, ...right, bold: on },
        }),
      foot({ x, y, size }) {
        scene.text(x, y, "together", { name: "sum", size, bold: true });
        const s = figures([sum(0), sum(1)]);
        scene.text(panel.x + panel.w, y, s, { name: "sum of it", ...right, bold: true });
      },
    },
  );
}

export function moves(scene) {
  const plane = new Plane(scene);
  const { told } = plane;
  const start = told.ways[0][0];
  const whole = told.value.map((x, axis) => start[axis] + x);
  moved(plane, 0);
  plane.arrow("whole", start, whole, { width: 2, opacity: 0.3 });
}

export const again = (scene) => moved(new Plane(scene), 1);

/** The ways of *the* in several sentences, each to a word that it becomes. */
function waysTo(plane, all) {
  all.forEach(({ key, ways, on }) => {
    plane.way(key, ways, { on, delay: 0.2 });
    if (!on) plane.dot(`the ${key}`, plane.at(ways.at(-1)), 6, "asker", { opacity: 0.55 });
  });
  for (const { key, ways, on, word } of all.toSorted((a, b) => (b.on ?? 0) - (a.on ?? 0)))
    if (on) plane.the(ways.at(-1), { from: ways[0], word, key });
    else plane.label(`the ${key}`, word, plane.at(ways.at(-1)));
}

export function nouns(scene) {
  const plane = new Plane(scene);
  const { told } = plane;
  plane.ground(told.field);
  const all = told.moves.all([]).filter(({ noun }) => [told.noun, ...SHOWN].includes(noun));
  const is = ({ noun }) => noun === told.noun;
  waysTo(
    plane,
    all.map((each) => ({
      ...{ key: is(each) ? "0" : each.noun, word: `… ${each.noun}: ${each.article}`, on: is(each) },
      ways: each.ways.map(([first]) => first),
    })),
  );
  plane.lines(
    all.map((each) => [`${sentenceOf(each)}: ${each.trace.text}`, { bold: is(each) }]),
    plane.panel.y + 14,
  );
}

export function both(scene) {
  const plane = new Plane(scene);
  const { words, ways, looks, seconds, trace } = plane.told;
  plane.ground();
  const all = seconds.map(([t, s, article]) => ({
    ...{ key: String(t), word: `… ${words[s]}: ${article}`, on: true },
    ways: ways.map((rows) => rows[t]),
  }));
  waysTo(plane, all);
  const given = (t, s) => looks.map((look) => share(look[t][s])).join(", then ");
  const texts = seconds.map(([t, s], i) => [
    `${["first", "second"][i]} the: ${words[s]} gets ${given(t, s)}`,
  ]);
  const spoken = [sentenceOf(plane.told), { bold: true }];
  const written = [trace.text, { role: "value", bold: true, lang: "fr" }];
  plane.lines([spoken, ...texts, written], plane.panel.y + 12);
}

export function cut(scene) {
  const plane = new Plane(scene);
  const { roomy, panel } = plane;
  const { cuts, words, place, now, ways, end, field, moves, noun, article } = plane.told;
  const first = (rows) => rows.map(([the]) => the);
  plane.ground(field);
  plane.way("whole", first(ways), { opacity: 0.7 });
  plane.way("0", first(now.ways), { on: true, delay: 0.2 });
  for (const each of moves.all(cuts))
    if (each.noun !== noun)
      plane.dot(`the ${each.noun}`, plane.at(each.end[0]), 4.5, each.right ? "asker" : "began");
  plane.dot("whole", plane.at(end[0]), roomy ? 6 : 5, "began");
  plane.the(now.end[0], {
    ...{ from: ways[0][0], word: `… ${noun}: ${now.article}` },
    ...(now.article === article ? {} : { kind: "began", ...WRONG }),
  });
  const columns = [0.36, 0.7];
  const heads = ["press ×", "first look", "second look"];
  plane.list(
    heads.map((s, i) => [s, i ? columns[i - 1] : 0]),
    undefined,
    {
      more(s, { y, pitch }) {
        columns.forEach((column, layer) => {
          const gone = cuts.includes(`${layer} ${s}`);
          const x = panel.x + column * panel.w;
          const r = Math.min(10, 0.44 * pitch);
          const w = share(now.looks[layer][s]);
          const name = `${layer} ${s}`;
          const figures = { bold: s === place, size: plane.size - 1 };
          scene.text(x + 2 * r + 6, y, gone ? "–" : w, { name: `cut share ${name}`, ...figures });
          const look = `${heads[layer + 1]} at ${shortName(words[s])}`;
          scene.knife(name, x + r, y, r, {
            ...{ gone, place: [x - 6, y - pitch / 2 + 0.5, 0.32 * panel.w, pitch - 1] },
            label: gone ? `Give back the ${look}` : `Take away the ${look}: ${w}`,
          });
        });
      },
    },
  );
}
