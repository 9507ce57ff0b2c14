// What was written: both sentences, where a head looked while it wrote a word, the likeliest words.

import { labelled, make, newId, percent, select, shown } from "../elements.js";
import { order } from "../numbers.js";

const PAUSE = 220; // milliseconds between two words
const SHOWN = 5; // likeliest words
const MEAN = "mean";

export class Written {
  /** `full` has everything to choose; else one head is shown, `start`, with layer and head from 0. */
  constructor({ full, start }) {
    this.full = full;
    this.start = start;
    this.layer = select([[start.layer, start.layer]], start.layer);
    this.head = select([[start.head, start.head]], start.head);
    this.english = make("div", {
      class: "words",
      lang: "en",
      role: "list",
      "aria-label": "English",
    });
    this.french = make("div", { class: "words", lang: "fr" });
    this.says = make("p", { class: "says", role: "status" });
    this.likely = make("ol", { class: "likely" });
    this.likelyTitle = make("p", { class: "title" });
    this.found = make("ol", { class: "found" });
    this.foundTitle = make("p", { class: "title" }, "Sentences that the beams have set aside");
    this.element = this.#build();
  }

  #build() {
    const legend = make("legend", { class: "title" }, "French: choose a word");
    const french = make("fieldset", {}, legend, this.french);
    const title = make("p", { class: "title" }, "English: where it looks");
    const element = make("div", { class: "written" }, title, this.english, french, this.says);
    element.hidden = true;
    if (!this.full) return element;
    const heads = make("div", { class: "knobs" });
    heads.append(labelled("Layer", this.layer), labelled("Head", this.head));
    heads.addEventListener("change", () => this.#choose(this.chosen, true));
    element.append(heads, this.likelyTitle, this.likely, this.foundTitle, this.found);
    return element;
  }

  /**
   * Shows a translation word by word. `source` and `target` are words; `steps[t]` holds what the
   * model saw when it wrote target[t]: probabilities [id] and cross [layer][head][s]. `name(id)` is
   * the word of an id; `found` are sentences as [text, log-probability].
   */
  show(told) {
    this.#begin(told);
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    return new Promise((done) => this.#write(0, still ? 0 : PAUSE, done)).then(() =>
      this.#say(this.chosen, true),
    );
  }

  /** Shows a translation at once, to begin with: what a page opens with is not read out. */
  open(told) {
    this.#begin(told);
    this.#write(0, 0, () => this.#say(this.chosen, false));
  }

  #begin({ source, target, steps, name, found }) {
    clearTimeout(this.timer);
    Object.assign(this, { source, target, steps, name });
    this.element.hidden = false;
    this.#fillChoices(steps[0].cross);
    this.english.replaceChildren(...source.map((word) => this.#sourceWord(word)));
    this.#showFound(found);
    this.group = newId();
    this.french.replaceChildren();
    this.says.replaceChildren();
  }

  #write(t, pause, done) {
    this.french.append(this.#targetWord(this.target[t], t));
    const isEnd = this.target[t] === "<eos>" && t > 0;
    if (!isEnd) this.#choose(t, false);
    if (t + 1 === this.target.length) done();
    else if (pause) this.timer = setTimeout(() => this.#write(t + 1, pause, done), pause);
    else this.#write(t + 1, pause, done);
  }

  #sourceWord(word) {
    const share = make("span", { class: "percent" }, "\u00a0");
    return make("span", { class: "word", role: "listitem" }, this.#spelled(word), share);
  }

  #targetWord(word, t) {
    const radio = make("input", { type: "radio", name: this.group, value: t });
    const label = make("label", { class: "word" }, radio, this.#spelled(word));
    radio.addEventListener("change", () => this.#choose(t, true));
    label.addEventListener("pointerenter", ({ pointerType }) => {
      if (pointerType === "mouse") this.#look(t);
    });
    label.addEventListener("pointerleave", () => this.#look(this.chosen));
    return label;
  }

  #spelled(word) {
    if (word !== "<eos>") return make("span", {}, word);
    return make("span", { class: "end", title: "the end of the sentence" }, this.#named(word));
  }

  /** A small one does not speak of <eos>. */
  #named(word) {
    return word === "<eos>" && !this.full ? "end" : word;
  }

  #choose(t, aloud) {
    this.chosen = t;
    this.french.children[t].querySelector("input").checked = true;
    this.#look(t);
    if (aloud) this.#say(t, false);
  }

  /** The weights of the chosen head, or the mean of its layer, when target[t] was written. */
  #weights(t) {
    const heads = this.steps[t].cross[this.layer.value];
    if (this.head.value !== MEAN) return [...heads[this.head.value]];
    return [...heads[0]].map(
      (_, s) => heads.reduce((sum, head) => sum + head[s], 0) / heads.length,
    );
  }

  #look(t) {
    if (t === undefined) return;
    this.#weights(t).forEach((share, s) => {
      const word = this.english.children[s];
      word.style.setProperty("--share", share.toFixed(4));
      word.dataset.share = share;
      word.querySelector(".percent").textContent = percent(share);
    });
    if (this.full) this.#showLikely(t);
  }

  #showLikely(t) {
    const { probabilities } = this.steps[t];
    const ids = order(probabilities).slice(0, SHOWN);
    const written = this.target[t];
    if (!ids.some((id) => this.name(id) === written))
      ids.push(probabilities.findIndex((_, id) => this.name(id) === written));
    const before = this.target.slice(0, t).join(" ") || "the start";
    this.likelyTitle.replaceChildren("Likeliest after ", make("i", { lang: "fr" }, before));
    this.likely.replaceChildren(
      ...ids.map((id) => {
        const word = this.name(id);
        const bar = make("span", {
          class: "bar",
          style: `--share: ${probabilities[id].toFixed(4)}`,
        });
        const share = make("span", { class: "percent" }, percent(probabilities[id], 1));
        const label = make("span", { class: "likely-word", lang: "fr" }, word);
        const row = make("li", { "data-share": probabilities[id] }, label, bar, share);
        if (word === written) row.setAttribute("aria-current", "true");
        return row;
      }),
    );
  }

  #showFound(found = []) {
    this.foundTitle.hidden = this.found.hidden = found.length === 0;
    const row = ([text, logP]) => {
      return make(
        "li",
        {},
        make("span", { lang: "fr" }, text),
        ` (log-probability ${shown(logP, 2)})`,
      );
    };
    this.found.replaceChildren(...found.map(row));
  }

  #fillChoices(cross) {
    const filled = (list, options) => {
      const { value } = list;
      list.replaceChildren(...options.map((i) => make("option", { value: i }, i)));
      list.value = value;
    };
    filled(this.layer, [...cross.keys()]);
    filled(this.head, [...cross[0].keys(), MEAN]);
  }

  #who() {
    if (!this.full) return "one of the model's heads looks";
    const { layer, head } = this;
    if (head.value === MEAN) return `the heads of layer ${layer.value} together look`;
    return `head ${head.value} of layer ${layer.value} looks`;
  }

  /** What is seen, in words: the sentence, when it is new, and where the chosen word looks. */
  #say(t, isNew) {
    const weights = this.#weights(t);
    const [first, second] = order(weights);
    const word = (text, lang = "fr") => make("i", { lang }, this.#named(text));
    const at = (s) => [word(this.source[s], "en"), ` ${percent(weights[s])}`];
    const sentence = this.target.filter((w) => w !== "<eos>").join(" ");
    const line = ["To write ", word(this.target[t]), `, ${this.#who()} at `, ...at(first)];
    if (weights[second] >= 0.005) line.push(", ", ...at(second));
    line.push(".");
    const spoken = make("span", { class: "spoken", lang: "fr" }, `${sentence}. `);
    this.says.replaceChildren(...(isNew ? [spoken] : []), ...line);
  }
}
