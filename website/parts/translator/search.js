// How the next word is chosen: the controls for it, and the search that they ask for.

import { button, labelled, make, newId, select } from "../elements.js";
import { generator } from "../numbers.js";
import { beamSearch, filtered, greedy, sample } from "./decode.js";

const WAYS = [
  ["greedy", "the likeliest word", ""],
  ["beams", "beam search", " (chapter 10)"],
  ["sampling", "by chance", " (chapter 10)"],
];
const ALL = "all";

export class Search {
  /**
   * `changed` is called when a control is; `way` is that which is chosen first, and given in the
   * chapter that explains all of them.
   */
  constructor(changed, way) {
    this.seed = 1;
    this.explained = way !== undefined;
    this.way = WAYS.some(([name]) => name === way) ? way : "greedy";
    const counts = (...numbers) => numbers.map((n) => [n, n]);
    this.beamSize = select(counts(1, 2, 3, 4, 6, 8), 4);
    this.lengthPenalty = select(counts("0", "0.6", "1", "2"), "0.6");
    this.temperature = make("input", { type: "range", min: 0.1, max: 3, step: 0.1, value: 1 });
    this.shown = make("output", {}, "1.0");
    this.topK = select([[ALL, ALL], ...counts(1, 2, 5, 10, 50)], ALL);
    this.topP = select([[ALL, ALL], ...counts("0.5", "0.9", "0.95", "0.99")], ALL);
    this.again = button("Again", () => {
      this.seed += 1;
      changed(true);
    });
    this.element = this.#build(changed);
  }

  /** What a sample is drawn from; without sampling, the model's own probabilities. */
  probabilities(logits) {
    return filtered(logits, this.way === "sampling" ? this.#options() : {});
  }

  /** What reshapes the probabilities, in words; empty if nothing does. */
  get reshaped() {
    if (this.way !== "sampling") return "";
    const { temperature, topK, topP } = this.#options();
    const heat = temperature !== 1 && `temperature ${temperature.toFixed(1)}`;
    return [heat, topK && `top-k ${topK}`, topP && `top-p ${topP}`].filter(Boolean).join(", ");
  }

  /** What is written, ids; and all sentences that beam search has found. */
  run(model, source, limits) {
    if (this.way === "beams") {
      const beamSize = Number(this.beamSize.value);
      const lengthPenalty = Number(this.lengthPenalty.value);
      return beamSearch(model, source, limits, { beamSize, lengthPenalty });
    }
    if (this.way === "greedy") return { tokens: greedy(model, source, limits) };
    const random = generator(this.seed);
    return { tokens: sample(model, source, limits, { ...this.#options(), random }) };
  }

  #options() {
    const number = ({ value }) => (value === ALL ? undefined : Number(value));
    const [temperature, topK, topP] = [this.temperature, this.topK, this.topP].map(number);
    return { temperature, topK, topP };
  }

  #build(changed) {
    const row = (...controls) => make("div", { class: "knobs" }, ...controls);
    const knobs = {
      beams: row(
        labelled("Beams, K", this.beamSize),
        labelled("Length penalty", this.lengthPenalty),
      ),
      sampling: row(
        labelled("Temperature", this.temperature, this.shown),
        labelled("Top-k", this.topK),
        labelled("Top-p", this.topP),
        this.again,
      ),
    };
    const choose = (way) => {
      this.way = way;
      for (const [name, row] of Object.entries(knobs)) row.hidden = name !== way;
    };
    choose(this.way);
    this.temperature.addEventListener("input", () => {
      this.shown.value = Number(this.temperature.value).toFixed(1);
    });
    const ways = this.#ways(choose);
    const element = make("fieldset", { class: "how" });
    element.append(make("legend", {}, "How each word is chosen"), ways, ...Object.values(knobs));
    element.addEventListener("change", () => changed(false));
    return element;
  }

  #ways(choose) {
    const name = newId();
    const radios = WAYS.map(([way, text, where]) => {
      const radio = make("input", { type: "radio", name, value: way, checked: way === this.way });
      radio.addEventListener("change", () => choose(way));
      const words = this.explained ? text : text + where;
      return make("label", { class: "way" }, radio, words);
    });
    return make("div", { class: "ways" }, ...radios);
  }
}
