// The film: why a word asks, and how each number is calculated, by a stored translator. Fills each
// element of the class book-film.

import { element, path, Picture } from "../drawing.js";
import { button, make, select } from "../elements.js";
import { load } from "../translator/load.js";
import { Asked } from "./asked.js";
import { drawMap } from "./map.js";
import { LAYERS, Scene } from "./scene.js";
import { dialogOf, refusal, Sentences } from "./sentence.js";
import { STEPS } from "./steps.js";
import { Moves } from "./moves.js";
import { factsOf, toldAt } from "./told.js";
import { watch } from "./watch.js";
import { WHY } from "./why.js";

const FIRST = Moves.sentence("cat");
const NEAR = 26; // px from a number, within which a finger means it
const canvas = document.createElement("canvas").getContext("2d");

/** What is not drawn, so that nobody takes the film for the whole; and how to use it. */
const ABOUT = [
  "Every number is calculated in this page by a translator of chapter 9. It has two layers in the encoder and two in the decoder, with four heads each, counted from one here and from 0 in chapter 12. It learned from 26,000 sentences, and from none of those that are offered first.",
  "It is one of ten that were trained alike (the translators on other pages are the first of them), and we chose it by its result: in this one the row of “the” alone decides the article. In all ten that row moves to its noun’s side, but in the others the decoder also asks the noun itself, more or less often. Section 12.6 has the table.",
  "The plane shows two of 64 directions: feminine less masculine, and several less one, made from every second noun and tested on the others. For the colours, a “the” that may not ask its noun (in “the black horses sleep”) is moved from spot to spot, nothing else is changed, and the decoder says what it would write (none: another word). In other sentences the borders lie a little elsewhere, and step 8 draws them anew for what was taken away. Before each of the 14 nouns “the” ends in the right colour.",
  "An arrow is what all four heads bring together: each value times its share, after the table that mixes them. For these sentences the second look alone would be enough: try it in step 8.",
  "Before each part the rows are brought to a common size (the norm), and what a part finds is added to what went in (chapter 7).",
  "In each round the decoder runs through all parts of both layers. The film stops at one here, at another there. A large share says where the model looks, and not what it finds there (chapter 12).",
  "This model reads whole words, marks their places with waves, and always writes the most probable word. One like ChatGPT has no encoder, and so no cross-attention. It reads pieces of words, and mostly draws the next one by chance.",
  "In the encoder grey is a word’s own row, light blue its place, and pink what becomes of the two. The decoder’s rows are all grey. Faint is far below zero, strong far above. Blue asks and looks, orange is a key, green is what is handed over, taken home or added, and orange-red the word that is written. Before training, the same model has random numbers, of which one draw is shown.",
  "Press a number, a share or a row to see where it comes from; nearly all of them say it. Swipe to go on and back. On a keyboard ← and → go on and back, Tab leads to the picture, there the arrows go from number to number, Enter asks, Esc closes.",
];

const measured = new Map();
function measure(text, size, bold = false) {
  const key = `${bold} ${text}`;
  if (!measured.has(key)) {
    canvas.font = `${bold ? 600 : 400} 100px ${getComputedStyle(document.querySelector(".film svg")).fontFamily}`;
    measured.set(key, canvas.measureText(text).width / 100);
  }
  return measured.get(key) * size;
}

class Film {
  constructor(host, model) {
    Object.assign(this, { host, model, step: 0, chosen: {}, cuts: [] });
    this.asked = new Asked({ changed: () => this.#answer(), left: () => this.#close() });
    this.sentences = new Sentences((words) => this.take(words));
    this.#build();
    this.#listen();
    this.moves = new Moves(model);
    this.#comes();
    new ResizeObserver(() => this.draw()).observe(this.svg);
  }

  #build() {
    this.svg = element("svg");
    this.svg.setAttribute("role", "group");
    this.svg.innerHTML = `<defs><pattern id="film-hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="hatch" width="1.6" height="6"/></pattern></defs>`;
    this.picture = new Picture(this.svg, LAYERS);
    for (const [name, group] of this.picture.layers)
      if (name !== "press") group.setAttribute("aria-hidden", "true");
    this.pressed = new Map(); // of what can be pressed, by its node
    this.name = make("b", { class: "name" });
    this.says = make("span", { class: "says" });
    this.heard = make("span", { class: "heard" });
    const telling = make(
      "p",
      { class: "telling", role: "status", "aria-atomic": "true" },
      this.name,
      this.says,
      this.heard,
    );
    this.label = make("span", {});
    this.who = select([], "");
    this.who.addEventListener("change", () => this.#choose(Number(this.who.value)));
    this.choice = make("label", { class: "who" }, this.label, this.who);
    this.foot = make("div", { class: "foot" }, telling, this.choice, this.asked.element);
    this.opener = button("", () => this.sentences.dialog.showModal());
    this.opener.className = "sentence";
    this.opener.setAttribute("aria-haspopup", "dialog");
    const about = dialogOf(
      "What the film leaves out, and how to use it",
      ...ABOUT.map((text) => make("p", {}, text)),
    );
    const help = button("?", () => about.showModal());
    help.setAttribute("aria-label", "What the film leaves out, and how to use it");
    this.title = make("h2", { class: "title" });
    this.section = make(
      "section",
      {
        ...{ class: "part film", "aria-label": "Why a word asks, and how, step by step" },
        tabindex: -1, // a click in the picture gives the keys to the film
      },
      make("div", { class: "head" }, this.title, this.opener, help),
      this.svg,
      this.foot,
      this.#controls(),
      this.sentences.dialog,
      about,
    );
    this.host.replaceChildren(this.section);
  }

  #controls() {
    const long = (text) => make("span", { class: "long" }, text);
    this.back = button("", () => this.go(this.step - 1));
    this.back.append("←", long(" Back"));
    this.back.setAttribute("aria-label", "Back");
    this.next = button("", () => this.go((this.step + 1) % STEPS.length));
    this.next.className = "go";
    this.scrubber = make("input", {
      type: "range",
      min: 1,
      max: STEPS.length,
      step: 1,
      "aria-label": "Step",
    });
    this.scrubber.addEventListener("input", () => this.go(this.scrubber.value - 1));
    let before;
    this.scrubber.addEventListener("pointerdown", () => {
      before = this.step;
    });
    this.scrubber.addEventListener("pointercancel", () => this.go(before)); // a finger scrolls the page
    this.count = make("span", { class: "count", "aria-hidden": "true" });
    return make(
      "div",
      { class: "controls" },
      this.back,
      make("div", { class: "way" }, this.scrubber, this.count),
      this.next,
    );
  }

  #listen() {
    window.addEventListener("hashchange", () => location.hash.match(/^#film\b/) && this.#comes());
    this.section.addEventListener("keydown", (event) => this.#press(event));
    this.svg.addEventListener("click", (event) => this.#point(event));
    let down;
    this.svg.addEventListener("pointerdown", ({ clientX: x, clientY: y, pointerType }) => {
      down = pointerType === "mouse" ? undefined : { x, y };
    });
    this.svg.addEventListener("pointerup", ({ clientX, clientY }) => {
      if (!down) return;
      const [x, y] = [clientX - down.x, clientY - down.y];
      this.swiped = Math.abs(x) > 40 && Math.abs(x) > 1.5 * Math.abs(y);
      if (this.swiped) this.go(this.step + (x < 0 ? 1 : -1));
    });
  }

  #press(event) {
    const { key, target } = event;
    if (event.altKey || event.ctrlKey || event.metaKey || target.closest("dialog, input, select"))
      return;
    const thing = this.pressed.get(target);
    const turn = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[
      key
    ];
    if (thing && turn) this.#walk(target, turn[0] || turn[1]);
    else if (thing && (key === "Enter" || key === " ")) this.#do(thing);
    else if (key === "Escape" && !this.asked.element.hidden) this.#close();
    else if (turn?.[0] && !target.closest(".asked")) this.go(this.step + turn[0]);
    else return;
    event.preventDefault();
  }

  /** Moves the focus from a number to the next or the one before, in the order of reading. */
  #walk(from, by) {
    const all = this.#stops();
    const to = all[all.indexOf(from) + by];
    if (to) this.#stopAt(to).focus();
  }

  /** What of the picture keys can reach. */
  #stops() {
    return [...this.pressed].filter(([, { role }]) => role).map(([node]) => node);
  }

  #stopAt(node) {
    for (const each of this.#stops()) each.setAttribute("tabindex", each === node ? 0 : -1);
    this.at = node && this.pressed.get(node).name;
    return node;
  }

  #point({ clientX, clientY, detail, target }) {
    const { swiped } = this;
    this.swiped = false;
    if (swiped) return undefined;
    if (!this.section.contains(document.activeElement)) this.section.focus({ preventScroll: true });
    if (detail === 0 && this.pressed.has(target)) return this.#do(this.pressed.get(target)); // by a reader's key
    const at = this.svg.getBoundingClientRect();
    const [x, y] = [clientX - at.left, clientY - at.top];
    const away = (thing) =>
      Math.hypot(
        ...[
          [x, thing.x, thing.width],
          [y, thing.y, thing.height],
        ].map(([p, from, size]) => Math.max(from - p, 0, p - from - size)),
      );
    const all = [...this.pressed.values()].map((thing) => ({
      thing,
      far: away(thing) + (thing.role ? 0 : 12),
    }));
    const near = all.filter(({ far }) => far <= NEAR).sort((a, b) => a.far - b.far)[0];
    if (!near) return this.asked.close();
    const { thing } = near;
    return this.#do(
      thing,
      Math.floor(
        Math.min(0.999, Math.max(0, (x - thing.x) / thing.width)) * (thing.does.count ?? 1),
      ),
    );
  }

  #do(thing, cell = thing.does.first) {
    const { row, cut, address } = thing.does;
    if (row !== undefined) this.#choose(row);
    else if (cut !== undefined) this.#cut(cut);
    else this.asked.open(address.cut ? this.told.cut : this.told.trace, thing, cell);
  }

  #close() {
    const { name } = this.asked;
    this.asked.close();
    const node = this.#stops().find((each) => this.pressed.get(each).name === name);
    if (node) this.#stopAt(node).focus();
  }

  /** A number is asked, or none any more. */
  #answer() {
    const asks = !this.asked.element.hidden;
    this.section.classList.toggle("asks", asks);
    this.draw();
    if (asks) this.foot.scrollIntoView({ block: "nearest" });
  }

  /** Another word is followed, or another round. */
  #choose(value) {
    const step = STEPS[this.step];
    if (step.who === "nouns") this.#read(Moves.sentence(this.moves.nouns[value]));
    else this.chosen[step.who] = value;
    this.go(this.step);
  }

  #cut(s) {
    this.cuts = this.cuts.includes(s)
      ? this.cuts.filter((each) => each !== s)
      : [...this.cuts, s].sort((a, b) => a - b);
    this.show();
    this.foot.scrollIntoView({ block: "nearest" });
  }

  /** Shows a sentence; returns why it cannot. */
  take(words) {
    const why = this.#read(words);
    if (!why) this.go(Math.max(this.step, WHY.length));
    return why;
  }

  #read(words) {
    const trace = watch(this.model, words);
    if (!trace.ended) return "The model finds no end to this one; please take another.";
    this.facts = factsOf(trace);
    this.chosen = {};
    this.noun =
      this.moves.nouns.find((n) => Moves.sentence(n).join() === words.join()) ?? this.noun;
    this.opener.replaceChildren(
      make("i", { lang: "en" }, words.join(" ")),
      make("span", { "aria-hidden": "true" }, " ▾"),
      make("span", { class: "heard" }, ", another sentence"),
    );
    return undefined;
  }

  /** To the step and the sentence in the page's address, as #film-12-the-dog-sleeps. */
  #comes() {
    const [, step = 1, asked] = location.hash.match(/^#film-(\d+)-?(.*)$/) ?? [];
    const words = asked?.split("-");
    this.#read(FIRST);
    if (asked && !refusal(words)) this.#read(words);
    this.go(step - 1);
    this.hasCome = true;
    if (!location.hash.startsWith("#film")) return;
    this.host.scrollIntoView();
    this.section.focus({ preventScroll: true });
  }

  go(step) {
    this.at = undefined;
    this.step = Math.min(STEPS.length - 1, Math.max(0, step));
    const { cuts } = STEPS[this.step];
    this.cuts = cuts ? cuts(this.moves.told(this.noun)) : [];
    this.show();
    if (!this.hasCome) return;
    const words = this.facts.words.slice(0, -1).join("-");
    const sentence = words === FIRST.join("-") ? "" : `-${words}`;
    history.replaceState(null, "", `#film-${this.step + 1}${sentence}`);
  }

  show() {
    const step = STEPS[this.step];
    const first = WHY.includes(step);
    if (!first) this.told = toldAt(this.facts, step, this);
    else this.told = step.twice ? this.moves.twice : this.moves.told(this.noun, this.cuts);
    const { told } = this;
    this.asked.close();
    this.title.textContent = first ? "Why a word asks" : "How each number is calculated";
    this.opener.hidden = first;
    const { name } = step;
    const [n, of] = first
      ? [this.step + 1, WHY.length]
      : [this.step + 1 - WHY.length, STEPS.length - WHY.length];
    const last = this.step === STEPS.length - 1;
    this.name.textContent = name;
    this.says.replaceChildren(...step.says(told).map(written));
    this.heard.textContent = ` ${step.seen(told)}.`;
    this.count.textContent = `${n} / ${of}`;
    this.scrubber.value = this.step + 1;
    this.scrubber.setAttribute(
      "aria-valuetext",
      `${this.title.textContent}, ${n} of ${of}: ${name}`,
    );
    this.scrubber.style.setProperty("--at", this.step / (STEPS.length - 1));
    this.back.disabled = this.step === 0;
    const turn = this.step === WHY.length - 1;
    const go = last ? "Again " : turn ? "The numbers " : "Next ";
    this.next.replaceChildren(make("span", { class: "long" }, go), last ? "↺" : "→");
    const to = turn ? "Next: how each number is calculated" : "Next";
    this.next.setAttribute("aria-label", last ? "Again, from the first step" : to);
    const options =
      {
        words: told.words.map((word, t) => `${word}${nth(told.words, t)}`),
        rounds: told.trace.rounds.map(({ written }, r) => `${r + 1}: ${written.word}`),
        nouns: told.nouns,
      }[step.who] ?? [];
    this.choice.hidden = !step.who;
    this.label.textContent = step.label ?? "";
    this.who.replaceChildren(...options.map((words, value) => make("option", { value }, words)));
    this.who.value = step.who === "rounds" ? told.at : told.asks;
    this.draw();
  }

  draw() {
    const { clientWidth: w, clientHeight: h } = this.svg;
    if (!w || !h) return;
    this.svg.setAttribute("viewBox", `0 0 ${w} ${h}`);
    const step = STEPS[this.step];
    const upright = w >= 900;
    const M = upright
      ? { x: 4, y: 4, w: Math.min(320, 0.3 * w), h: h - 8 }
      : { x: 4, y: 2, w: w - 8, h: 100 };
    const S = upright
      ? { x: M.w + 40, y: 2, w: w - M.w - 42, h: h - 4 }
      : { x: 1, y: 116, w: w - 2, h: h - 117 };
    const scene = new Scene(this.told, {
      S: step.lens ? S : { x: 1, y: 2, w: w - 2, h: h - 4 },
      measure,
    });
    step.draw(scene);
    this.#outline(scene);
    const focused = this.pressed.get(document.activeElement);
    const around = step.lens ? this.#around(step, { M, S, upright }) : [];
    const nodes = this.picture.show([...around, ...scene.things]);
    this.pressed = new Map([...nodes].filter(([, { does }]) => does));
    const stops = this.#stops();
    const at = stops.find((node) => this.pressed.get(node).name === this.at);
    this.#stopAt(at ?? stops[0]);
    const what = stops.length ? ", whose numbers say where they come from" : "";
    this.svg.setAttribute("aria-label", `The picture${what}`);
    if (focused && !this.pressed.has(document.activeElement)) (at ?? this.next).focus();
  }

  /** The map, the stage, and what leads from the one to the other. */
  #around({ round, lit, done, lens }, { M, S, upright }) {
    const { trace, at, words } = this.told;
    const r = { at, all: trace.rounds.length - 1 }[round] ?? round;
    const french =
      r === undefined ? [] : trace.rounds.slice(0, r + 1).map(({ input }) => input.word);
    const shows = lit.includes("next") || lit.includes("scores");
    const next = shows ? (this.told.cut ?? trace).rounds[r].written.word : "";
    const [map, stage] = [M, S].map((place) => new Scene(this.told, { S: place, measure }));
    const given = { upright, lit, done, lens, french, next };
    const boxes = drawMap(map, { ...given, english: words.slice(0, -1) });
    const panel = { layer: "back", fill: "var(--shelf)" };
    stage.rect(S.x, S.y, S.w, S.h, { name: "panel", rx: 10, ...panel });
    stage.add("path", { name: "lens", d: lensFrom(boxes[lens], S, upright), ...panel });
    return [...stage.things, ...map.things];
  }

  /** Around the number that is asked. */
  #outline(scene) {
    const { name, cell, count } = this.asked;
    const thing = name && scene.things.find((each) => each.name === name);
    if (!thing) return;
    const w = thing.width / count;
    const wide = Math.max(w, 5);
    const x = thing.x + (cell + 0.5) * w - wide / 2 + 1;
    const look = { name: "asked", layer: "text", rx: 2, "pointer-events": "none" };
    scene.ring(x, thing.y - 0.5, wide - 2, thing.height + 1, look);
  }
}

/** A word in italics is in quotes for who hears it. */
function written(part) {
  if (typeof part === "string") return part;
  const { mark, lang, word } = part;
  const made = make(mark, lang ? { lang } : {}, word);
  const quote = (sign) => make("span", { class: "quote" }, sign);
  return mark === "i" ? make("span", {}, quote("“"), made, quote("”")) : made;
}

/** Which of two of the same word. */
const nth = (words, t) =>
  words.indexOf(words[t]) < words.lastIndexOf(words[t]) ? ` (${t + 1})` : "";

/** A path from the lit part of the map to the stage, which shows it made large. */
function lensFrom({ x, y, w, h }, S, upright) {
  const corners = upright
    ? [
        [x + w, y],
        [S.x + 1, S.y + 12],
        [S.x + 1, S.y + S.h - 12],
      ]
    : [
        [x, y + h],
        [S.x + 12, S.y + 1],
        [S.x + S.w - 12, S.y + 1],
      ];
  return path([...corners, [x + w, y + h]]);
}

async function start(host) {
  host.film = new Film(host, await load(new URL("weights.safetensors", import.meta.url)));
}

for (const host of document.querySelectorAll(".book-film"))
  start(host).catch((error) => {
    host.append(
      make(
        "p",
        {},
        `The film could not be fetched (${error.message}); load the page again to try anew.`,
      ),
    );
    host.dataset.stopped = ""; // no room is kept for what does not come
    throw error;
  });
