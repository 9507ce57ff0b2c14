// What the living figures share: a state, its controls, the chapter's ticks, a line that is read out.

import { button, labelled, make, select, shown } from "../elements.js";
import { Drawing, element, Picture, tenTo } from "../drawing.js";

const PAUSE = 400; // ms without a change, after which the line is read out

/** A number in two figures, however small: 0.067, or 4.9·10⁻²⁰. */
export function tiny(value) {
  if (value === 0 || value >= 0.001)
    return shown(value, value === 0 || value >= 0.1 ? 2 : value >= 0.01 ? 3 : 4);
  const [digits, power] = value.toExponential(1).split("e-");
  return `${digits}·${tenTo(-power)}`;
}

/** Which claims broke and which hold again, for those who do not see the marks. */
export function news(before, now) {
  const name = (i) => (now.length === 1 ? "The claim" : `The ${["first", "second"][i]} claim`);
  const turned = (to, words) =>
    now.map((holds, i) => (holds === to && before[i] !== to ? words(name(i), before[i]) : ""));
  const broke = (claim, was) => `✗ ${claim} ${was ? "no longer holds" : "does not hold"}. `;
  const mended = (claim, was) => (was === false ? `✓ ${claim} holds again. ` : "");
  const all = now.length > 1 && before.includes(false) && now.every((holds) => holds === true);
  const good = all ? ["✓ Every claim holds. "] : turned(true, mended);
  const open = turned(null, (claim) => `○ ${claim} is not tested. `);
  return [...turned(false, broke), ...good, ...open].join("");
}

/**
 * A figure in place of what stands in `host`. Its parts are functions of the state, run after each
 * change: controls, drawings and ticks add themselves.
 */
export class Figure {
  constructor(host, { title, invite, state, settle = () => {} }) {
    this.settle = settle; // brings a state that cannot be, such as a query off the axis, in order
    this.first = Object.freeze({ ...state });
    this.state = { ...state };
    this.parts = [];
    this.holds = []; // of each claim: true, false or, where it is not tested, null
    this.sentence = () => "";
    this.controls = make("div", { class: "living-controls" });
    this.buttons = make("div", { class: "living-buttons" });
    this.picture = make("div", { class: "living-picture" });
    this.ticks = make("div", { class: "living-ticks" });
    this.status = make("p", { class: "living-status", role: "status" });
    this.section = make(
      "section",
      { class: "part living", "aria-label": title },
      make("p", { class: "living-title", "aria-hidden": "true" }, title),
      make("p", { class: "living-invite" }, invite),
      this.picture,
      this.controls,
      this.ticks,
      this.status,
    );
    host.replaceChildren(this.section);
  }

  /** Changes some of the state; everything that depends on it follows. */
  set(changes) {
    for (const name of Object.keys(changes))
      if (!(name in this.first)) throw new Error(`${name} is none of ${Object.keys(this.first)}`);
    Object.assign(this.state, changes);
    this.settle(this.state);
    this.update();
  }

  update() {
    for (const part of this.parts) part(this.state);
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.report(), PAUSE);
  }

  report() {
    const claims = news(this.reported ?? this.holds, this.holds);
    this.reported = [...this.holds];
    this.status.textContent = claims + this.sentence(this.state);
  }

  /** The last call of a figure: draws it, and makes the button that leads back to the chapter. */
  begin(sentence) {
    this.sentence = sentence;
    const isFirst = (state) => Object.keys(state).every((name) => state[name] === this.first[name]);
    this.controls.append(this.buttons);
    const back = this.button("As in the chapter", () => this.set(this.first));
    this.parts.push((state) => back.setAttribute("aria-disabled", isFirst(state)));
    this.update();
    this.report();
    return this;
  }

  /** A slider over the values `allowed`, or `allowed(state)`; `show` is how one is written. */
  slider(name, label, allowed, show = (value) => shown(value, 1), parent = this.controls) {
    const valuesOf = typeof allowed === "function" ? allowed : () => allowed;
    const words = make("span");
    const value = make("span", { class: "living-value", "aria-hidden": "true" });
    const input = make("input", { type: "range", min: 0, step: 1 });
    input.addEventListener("input", () => this.set({ [name]: valuesOf(this.state)[input.value] }));
    parent.append(labelled([words, value], input));
    this.parts.push((state) => {
      words.textContent = typeof label === "function" ? label(state) : label;
      const values = valuesOf(state);
      input.max = values.length - 1;
      input.value = nearest(values, state[name]);
      value.textContent = show(state[name]);
      input.setAttribute("aria-valuetext", show(state[name]));
    });
    return input;
  }

  /** `options` are pairs of a value, which is a string, and its words. */
  select(name, label, options, parent = this.controls) {
    const input = select(options, this.state[name]);
    input.addEventListener("change", () => this.set({ [name]: input.value }));
    parent.append(labelled(label, input));
    this.parts.push((state) => {
      input.value = state[name];
    });
    return input;
  }

  /** A box, which is ticked or not. */
  box(name, label, parent = this.controls) {
    const input = make("input", { type: "checkbox" });
    input.addEventListener("change", () => this.set({ [name]: input.checked }));
    parent.append(make("label", { class: "living-check" }, input, make("span", {}, label)));
    this.parts.push((state) => {
      input.checked = state[name];
    });
    return input;
  }

  button(words, press, parent = this.buttons) {
    return parent.appendChild(button(words, press));
  }

  /** An SVG of 350 units, in which `draw(drawing, state)` draws anew after each change. */
  drawing(height, alt, draw) {
    const svg = this.picture.appendChild(element("svg"));
    const attributes = { viewBox: `0 0 350 ${height}`, role: "img", "aria-label": alt };
    for (const [name, value] of Object.entries(attributes)) svg.setAttribute(name, value);
    const picture = new Picture(svg);
    this.parts.push((state) => {
      const drawing = new Drawing();
      draw(drawing, state);
      picture.show(drawing.things);
    });
    return svg;
  }

  /**
   * A claim; `check(state)` says whether it holds, why, and may say it in other words. It is null
   * where the state does not test the claim.
   */
  tick(text, check) {
    const mark = make("span", { class: "living-mark" });
    const words = make("span", {}, text);
    const why = make("span", { class: "living-why" });
    const line = make("p", { class: "living-tick" }, mark, make("span", {}, words, why));
    this.ticks.append(line);
    const place = this.holds.push(null) - 1;
    this.parts.push((state) => {
      const { holds, because, text: now = text } = check(state);
      words.textContent = now;
      line.dataset.holds = this.holds[place] = holds;
      mark.textContent = holds === null ? "○" : holds ? "✓" : "✗";
      why.textContent = because;
    });
  }
}

/** The numbers from `from` on, a step apart, up to `to`. */
export const range = (from, to, step) =>
  Array.from({ length: Math.floor((to - from) / step + 1e-9) + 1 }, (_, i) =>
    Number((from + i * step).toFixed(6)),
  );

export const list = (words) => words.join(", ").replace(/, ([^,]+)$/, " and $1");

function nearest(values, value) {
  const far = values.map((each) => Math.abs(each - value));
  return far.indexOf(Math.min(...far));
}
