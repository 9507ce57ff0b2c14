// What was written: both sentences, where a head looked while it wrote a word, the likeliest words.

import { labelled, make, newId, percent, select, shown } from "../elements.js";
import { mean, order } from "../numbers.js";
import { french } from "./text.js";

const PAUSE = 220; // milliseconds between two words
const SHOWN = 5; // likeliest words
const MEAN = "mean";
const NAMED = ["first", "second", "third", "fourth", "fifth", "sixth"];

/** Counted from 0, as everywhere in the book: "1, the second". */
const layerName = (i, before = ", ", after = "") =>
  NAMED[i] ? `${i}${before}the ${NAMED[i]}${after}` : `${i}`;

export class Written {
  /**
   * `full` has all to choose; else one look is shown, `start`: a layer, and a head or "mean".
   * `cross` has an entry for each head of each layer.
   */
  constructor({ full, start, cross }) {
    this.full = full;
    const layers = cross.map((_, i) => [i, layerName(i)]);
    const heads = cross[0].map((_, i) => [i, i]);
    this.layer = select(layers, start.layer);
    this.head = select([...heads, [MEAN, `mean of all ${heads.length}`]], start.head);
    this.english = make("div", {
      class: "words",
      lang: "en",
      role: "list",
      "aria-label": "English",
    });
    this.french = make("div", { class: "words", lang: "fr" });
    this.sentence = make("p", { class: "sentence", lang: "fr" });
    this.says = make("p", { class: "says", role: "status" });
    this.likely = make("ol", { class: "likely" });
    this.likelyTitle = make("p", { class: "title" });
    this.found = make("ol", { class: "found" });
    this.foundTitle = make("p", { class: "title" });
    this.element = this.#build();
  }

  #build() {
    const legend = make("legend", { class: "title" }, "French: choose a word");
    const written = make("fieldset", {}, legend, this.french);
    const looks = this.full ? "where the decoder's cross-attention looks" : "where it looks";
    const title = make("p", { class: "title" }, `English: ${looks}`);
    const element = make("div", { class: "written" }, this.sentence, title, this.english, written);
    element.append(this.says);
    element.hidden = true;
    if (!this.full) return element;
    const heads = make("div", { class: "knobs" });
    heads.append(labelled("Decoder layer, counted from 0", this.layer));
    heads.append(labelled("Head, counted from 0", this.head));
    heads.addEventListener("change", () => this.#choose(this.chosen, true));
    element.append(heads, this.likelyTitle, this.likely, this.foundTitle, this.found);
    return element;
  }

  /**
   * Shows a translation word by word. `source` and `target` are words; `steps[t]` holds what the
   * model saw when it wrote target[t]: probabilities [id] and cross [layer][head][s]. `name(id)` is
   * the word of an id; `found` are sentences as { text, ended, logP, score }; `reshaped` says in words what
   * has reshaped the probabilities.
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

  /** Nothing is shown any more. */
  clear() {
    clearTimeout(this.timer);
    this.element.hidden = true;
  }

  #begin({ source, target, steps, name, found, reshaped }) {
    clearTimeout(this.timer);
    Object.assign(this, { source, target, steps, name, reshaped, byReader: false });
    this.element.hidden = false;
    this.english.replaceChildren(...source.map((word) => this.#sourceWord(word)));
    this.#showFound(found);
    this.group = newId();
    for (const part of [this.french, this.sentence, this.says]) part.replaceChildren();
  }

  #write(t, pause, done) {
    this.french.append(this.#targetWord(this.target[t], t));
    const isEnd = this.target[t] === "<eos>" && t > 0;
    if (!isEnd && !this.byReader) this.#choose(t, false);
    if (t + 1 === this.target.length) {
      this.sentence.textContent = this.#text();
      if (!this.byReader) this.#choose(this.#crossing() ?? this.chosen, false);
      done();
    } else if (pause) this.timer = setTimeout(() => this.#write(t + 1, pause, done), pause);
    else this.#write(t + 1, pause, done);
  }

  /** The first word that looks to the left of where the word before it looked, if there is one. */
  #crossing() {
    const at = this.target.map((_, t) => order(this.#weights(t))[0]);
    const t = at.findIndex((s, i) => i > 0 && s < at[i - 1] && this.target[i] !== "<eos>");
    return t < 0 ? undefined : t;
  }

  #sourceWord(word) {
    const share = make("span", { class: "percent" }, "\u00a0");
    return make("span", { class: "word", role: "listitem" }, this.#spelled(word), share);
  }

  #targetWord(word, t) {
    const radio = make("input", { type: "radio", name: this.group, value: t });
    const label = make("label", { class: "word" }, radio, this.#spelled(word));
    radio.addEventListener("change", () => {
      this.byReader = true;
      this.#choose(t, true);
    });
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
    return [...heads[0]].map((_, s) => mean(heads.map((head) => head[s])));
  }

  #look(t) {
    if (t === undefined) return;
    this.says.style.visibility = t === this.chosen ? "" : "hidden"; // it speaks of the chosen word
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
    const ids = order(probabilities)
      .filter((id) => probabilities[id] > 0)
      .slice(0, SHOWN);
    const written = this.target[t];
    if (!ids.some((id) => this.name(id) === written))
      ids.push(probabilities.findIndex((_, id) => this.name(id) === written));
    const before = french(this.target.slice(0, t)) || "the start";
    const how = this.reshaped ? `, reshaped by ${this.reshaped}` : "";
    this.likelyTitle.replaceChildren("Likeliest after ", make("i", { lang: "fr" }, before), how);
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
    const scored = found.some(({ logP, score }) => score !== logP);
    const first = scored ? "the best score" : "the likeliest";
    this.foundTitle.textContent = `What the beams have found, ${first} first`;
    const row = ({ text, ended, logP, score }) => {
      const p = Math.exp(logP);
      const chance = p < 0.0005 ? "probability under 0.001" : `probability ${shown(p, 3)}`;
      const numbers = [chance, `log-probability ${shown(logP, 3)}`];
      if (scored) numbers.push(`score ${shown(score, 3)}`);
      if (!ended) numbers.push("stopped without an end");
      return make("li", {}, make("span", { lang: "fr" }, text), ` (${numbers.join(", ")})`);
    };
    this.found.replaceChildren(...found.map(row));
  }

  #who() {
    if (!this.full) return "it looks";
    const layer = layerName(this.layer.value, " (", ")");
    if (this.head.value === MEAN) return `the heads of layer ${layer} together look`;
    return `head ${this.head.value} of layer ${layer} looks`;
  }

  #text() {
    return french(this.target.filter((word) => word !== "<eos>"));
  }

  /** What is seen, in words: the sentence, when it is new, and where the chosen word looks. */
  #say(t, isNew) {
    const weights = this.#weights(t);
    const [first, second] = order(weights);
    const word = (text, lang = "fr") => make("i", { lang }, this.#named(text));
    const at = (s) => [word(this.source[s], "en"), ` ${percent(weights[s])}`];
    const line = ["To write ", word(this.target[t]), `, ${this.#who()} at `, ...at(first)];
    if (weights[second] >= 0.005) line.push(", ", ...at(second));
    line.push(".");
    const spoken = make("span", { class: "heard", lang: "fr" }, `${this.#text()}. `);
    this.says.replaceChildren(...(isNew ? [spoken] : []), ...line);
  }
}
