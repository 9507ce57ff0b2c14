// The ledger's filter: fills each element of the class book-ledger, and hides the claims that are
// not asked for.

import { labelled, make, select } from "../elements.js";

const KINDS = ["identity", "theorem", "experiment"];
const BUDGETS = [
  ["", "any"],
  ["seed", "several seeds"],
  ["step", "so many steps"],
  ["model", "so many models"],
];

const all = (options) => [["", "all"], ...options.map((text, i) => [String(i), text])];
const words = (text) => text.toLowerCase().split(/\s+/).filter(Boolean);

class Filter {
  constructor(host) {
    this.sections = [...document.querySelectorAll("section > section")].filter((section) =>
      section.querySelector("td a"),
    );
    const titles = this.sections.map((section) =>
      section.querySelector("h2").firstChild.textContent.trim(),
    );
    this.chapter = select(all(titles), "");
    this.kind = select([["", "all"], ...KINDS.map((kind) => [kind, kind])], "");
    this.budget = select(BUDGETS, "");
    this.said = make("input", { type: "search", autocomplete: "off" });
    this.status = make("p", { class: "status", role: "status" });
    const section = make("section", {
      class: "part ledger",
      "aria-label": "Which claims are shown",
    });
    section.append(labelled("Chapter", this.chapter), labelled("Kind", this.kind));
    section.append(labelled("Budget", this.budget), labelled("Words", this.said), this.status);
    section.addEventListener("input", () => this.#show());
    host.replaceChildren(section);
    this.#show();
  }

  #isAsked(row) {
    const [, claim, kind] = [...row.cells].map((cell) => cell.textContent.toLowerCase());
    const said = words(this.said.value).every((word) => claim.includes(word));
    return said && kind.startsWith(this.kind.value) && kind.includes(this.budget.value);
  }

  #show() {
    let [n, total] = [0, 0];
    const asked = [this.chapter, this.kind, this.budget, this.said].some(({ value }) => value);
    for (const [i, section] of this.sections.entries()) {
      const rows = [...section.querySelectorAll("tbody tr")];
      const chapter = this.chapter.value === "" || this.chapter.value === String(i);
      for (const row of rows) row.hidden = !(chapter && this.#isAsked(row));
      const shown = rows.filter((row) => !row.hidden).length;
      section.hidden = shown === 0;
      section.querySelector("details").open = asked;
      n += shown;
      total += rows.length;
    }
    this.status.textContent = n < total ? `${n} of ${total} claims` : `all ${total} claims`;
  }
}

for (const host of document.querySelectorAll(".book-ledger")) new Filter(host);
