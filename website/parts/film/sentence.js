// Another sentence: the examples, or one of the words that the model knows.

import { button, make } from "../elements.js";
import { nearSentences } from "../translator/near.js";
import { plain, split, Vocabulary } from "../translator/text.js";
import { WordBox } from "../translator/word_box.js";
import told from "../translator/words.js";
import { grammar } from "./told.js";

const LONGEST = 11; // words: so many rows, and <eos>, have room in the picture
const vocabulary = new Vocabulary(told.english, told.ids.unk);

/** Why the film cannot show these words; nothing if it can. */
export function refusal(words) {
  const unknown = words.filter((word) => !vocabulary.ids.has(word));
  if (!words.length) return "Write a sentence first.";
  if (unknown.length) return `The model does not know ${[...new Set(unknown)].join(", ")}.`;
  return words.length > LONGEST && `The picture has room for ${LONGEST} words.`;
}

export class Sentences {
  /** `take(words)` shows a sentence, or returns why it cannot. */
  constructor(take) {
    const next = (before) => grammar.next(before).words;
    const finished = (words) => grammar.next(words).complete;
    this.take = take;
    this.note = make("p", { class: "note", role: "status" });
    this.box = new WordBox({ next, finished, changed: () => this.note.replaceChildren() });
    this.box.input.setAttribute(
      "aria-label",
      `Your own, with the ${vocabulary.ids.size} words that it knows`,
    );
    this.box.input.placeholder = "the old cow …";
    const examples = this.#choices(told.examples);
    const ask = make(
      "div",
      { class: "ask-words" },
      this.box.element,
      make("button", { class: "go" }, "Watch it"),
    );
    const form = make(
      "form",
      {},
      make("p", {}, `Or your own, with the ${vocabulary.ids.size} words that it knows:`),
      ask,
      this.note,
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#leave(this.box.text);
    });
    this.dialog = dialogOf("Another sentence", examples, form);
    // Where the fold of words has the focus, Chromium does not close the dialog by itself.
    this.dialog.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && !event.defaultPrevented) this.dialog.close();
    });
  }

  #leave(text) {
    this.box.close();
    const words = split(plain(text));
    const why = refusal(words) || this.take(words);
    if (why) return this.#refuse(why, words);
    return this.dialog.close();
  }

  /** Why not, and three sentences that it can do. */
  #refuse(why, words) {
    const near = nearSentences(words, grammar, 3).filter((each) => !refusal(split(each)));
    const offered = near.length ? near : told.examples.slice(1, 4);
    const known = Object.entries(told.grammar.words).map(([kind, those]) => {
      const all = make("span", { lang: "en" }, those.join(", "));
      return make("p", {}, make("b", {}, `${kind}: `), all);
    });
    const summary = make("summary", {}, `Show the ${vocabulary.ids.size} words`);
    this.note.replaceChildren(
      `${why} It can do these:`,
      this.#choices(offered),
      make("details", {}, summary, ...known),
    );
  }

  #choices(sentences) {
    const choices = sentences.map((sentence) => {
      const choice = button(sentence, () => this.#leave(sentence));
      choice.lang = "en";
      return choice;
    });
    return make("span", { class: "examples" }, ...choices);
  }
}

export function dialogOf(name, ...parts) {
  const close = button("×", () => dialog.close());
  close.className = "close";
  close.setAttribute("aria-label", "Close");
  const dialog = make(
    "dialog",
    { "aria-label": name, closedby: "any" },
    close,
    make("p", { class: "strong" }, name),
    ...parts,
  );
  return dialog;
}
