// The line that says where a number comes from. It stands in the caption's place until it is closed.

import { button, make } from "../elements.js";
import { origin } from "./origin.js";

export class Asked {
  /** `changed()` is called when another number is asked, or none; `left()` by the button that closes. */
  constructor({ changed, left }) {
    this.changed = changed;
    this.label = make("b", {});
    this.of = make("span", { class: "of" });
    this.sum = make("span", { class: "sum" });
    const line = make("p", { role: "status" }, this.label, this.of, this.sum);
    this.place = make("span", { class: "place", "aria-hidden": "true" });
    const step = (by, sign, name) => {
      const made = button(sign, () => this.#to(this.cell + by));
      made.setAttribute("aria-label", name);
      return made;
    };
    this.steps = make(
      "span",
      { class: "cells" },
      step(-1, "‹", "The number before"),
      this.place,
      step(1, "›", "The next number"),
    );
    const close = button("×", left);
    close.className = "close";
    close.setAttribute("aria-label", "Close");
    this.element = make(
      "div",
      { class: "asked" },
      line,
      make("div", { class: "asked-keys" }, this.steps, close),
    );
    this.element.hidden = true;
  }

  /** `name` is that of the thing in the picture, `count` how many numbers it has side by side. */
  open(trace, { name, does: { address, count } }, cell = 0) {
    Object.assign(this, { trace, name, address, count });
    this.element.hidden = false;
    this.#to(cell);
  }

  #to(cell) {
    const { address, count } = this;
    this.cell = (cell + count) % count;
    const { from = 0, ...rest } = address;
    const { label, of, text } = origin(this.trace, { ...rest, cell: from + this.cell });
    this.label.textContent = label;
    this.of.textContent = of;
    this.sum.textContent = text;
    this.steps.hidden = count < 2;
    this.place.textContent = `${this.cell + 1}/${count}`;
    this.changed();
  }

  close() {
    if (this.element.hidden) return;
    this.element.hidden = true;
    this.name = undefined;
    this.changed();
  }
}
