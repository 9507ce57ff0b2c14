// The box for the sentence. Below it opens a list of the words that may come next, by their kinds.

import { make, newId } from "../elements.js";
import { plain, split } from "./text.js";

export class WordBox {
  /**
   * `next(words, begun)` maps what may follow these words to its kinds; `begun` is the beginning of
   * what is being typed. `changed(text)` is called after each change. Where `finished(words)`, a
   * click opens no list.
   */
  constructor({ next, changed, finished }) {
    this.next = next;
    this.finished = finished;
    this.changed = changed;
    this.options = [];
    this.active = -1;
    const list = newId();
    this.input = make("input", {
      id: newId(),
      type: "text",
      lang: "en",
      role: "combobox",
      autocomplete: "off",
      autocapitalize: "none",
      spellcheck: "false",
      "aria-autocomplete": "list",
      "aria-controls": list,
      "aria-expanded": "false",
    });
    this.list = make("div", {
      id: list,
      class: "list",
      role: "listbox",
      "aria-label": "Next word",
    });
    this.list.hidden = true;
    this.element = make("div", { class: "box" }, this.input, this.list);
    this.#listen();
  }

  get text() {
    return this.input.value;
  }

  set text(value) {
    this.input.value = value;
    this.close();
    this.changed(value);
  }

  close() {
    this.list.hidden = true;
    this.#point(-1);
    this.input.setAttribute("aria-expanded", "false");
  }

  #listen() {
    const { input, list } = this;
    input.addEventListener("input", () => {
      this.changed(input.value);
      this.#open();
    });
    input.addEventListener("click", () => {
      if (!this.finished(split(plain(this.text)))) this.#open();
    });
    input.addEventListener("blur", () => this.close());
    input.addEventListener("keydown", (event) => this.#press(event));
    list.addEventListener("pointerdown", (event) => event.preventDefault()); // the box keeps focus
    list.addEventListener("click", ({ target }) => {
      const i = this.options.indexOf(target.closest("[role=option]"));
      if (i >= 0) this.#take(i);
    });
  }

  #press(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      if (this.list.hidden) this.#open();
      this.#move(step);
    } else if (event.key === "Enter" && this.active >= 0) {
      event.preventDefault();
      this.#take(this.active);
    } else if (event.key === "Escape" && !this.list.hidden) {
      event.preventDefault();
      this.close();
    }
  }

  /** The words before the one that is being typed, the words that may stand there, by kinds. */
  #suggestions() {
    const typed = plain(this.text) + (/\s$/.test(this.text) ? " " : "");
    const before = split(typed);
    const begun = typed.endsWith(" ") ? "" : (before.pop() ?? "");
    const wanted = this.next(before, begun);
    const longer = [...wanted].filter(([word]) => word.startsWith(begun) && word !== begun);
    if (longer.length || !wanted.has(begun)) return { before, found: longer };
    before.push(begun); // it is a word already: what may come after it?
    return { before, found: [...this.next(before, "")] };
  }

  #open() {
    const { before, found } = this.#suggestions();
    this.before = before;
    this.options = [];
    const groups = new Map();
    for (const [word, kind] of found) {
      const option = make("span", { id: newId(), role: "option", "aria-selected": "false" }, word);
      this.options.push(option);
      groups.set(kind, [...(groups.get(kind) ?? []), option]);
    }
    const parts = [...groups].map(([kind, options]) => {
      const title = make("span", { class: "kind", "aria-hidden": "true" }, kind);
      return make("div", { role: "group", "aria-label": kind }, title, ...options);
    });
    this.list.replaceChildren(...parts);
    this.#point(-1);
    this.list.hidden = parts.length === 0;
    this.list.scrollTop = 0;
    this.input.setAttribute("aria-expanded", String(parts.length > 0));
  }

  /** To the next option or the one before; from none to the first or the last. */
  #move(step) {
    const { length } = this.options;
    const from = this.active < 0 && step < 0 ? 0 : this.active;
    if (length) this.#point((from + step + length) % length);
  }

  #point(i) {
    this.active = i;
    this.options.forEach((option, j) => option.setAttribute("aria-selected", String(i === j)));
    if (i < 0) return this.input.removeAttribute("aria-activedescendant");
    this.input.setAttribute("aria-activedescendant", this.options[i].id);
    this.options[i].scrollIntoView({ block: "nearest" });
  }

  #take(i) {
    this.input.value = [...this.before, this.options[i].textContent, ""].join(" ");
    this.changed(this.input.value);
    this.#open();
  }
}
