// The translator of chapter 9 in the page: fills each element of the class book-translator.

import { button, labelled, make, newId, select } from "../elements.js";
import { generator } from "../numbers.js";
import { trace } from "./decode.js";
import { Grammar } from "./grammar.js";
import { load } from "./load.js";
import { Search } from "./search.js";
import { Vocabulary, french, plain, split } from "./text.js";
import { nearSentences, nearWord } from "./near.js";
import { WordBox } from "./word_box.js";
import words from "./words.js";
import { Written } from "./written.js";

const NAME = "The translator of chapter 9";
const { ids, english } = words;
const vocabulary = new Vocabulary(english, ids.unk);
const BEGUN = [...english, "don't", "doesn't", "isn't", "aren't"]; // which are read in full
const limits = { ...ids, maxLen: words.maxLen };
let grammar;

class Translator {
  constructor(host) {
    const full = host.dataset.size === "full";
    this.random = generator(Date.now());
    this.tried = 0;
    const finished = (typed) => theGrammar().next(typed).complete;
    this.box = new WordBox({ next: nextWords, finished, changed: (text) => this.#judge(text) });
    this.note = make("p", { class: "note", id: newId() });
    this.box.input.setAttribute("aria-describedby", this.note.id);
    this.state = make("p", { class: "state", role: "status" });
    this.search = new Search(
      (asked) => (asked || this.started) && this.translate(),
      host.dataset.search,
    );
    this.written = new Written({ full, start: words.head, cross: words.opening.steps[0].cross });
    this.help = make("div", { class: "help" });
    this.box.input.addEventListener("focus", () => this.#prepare());
    const section = this.#build(full);
    this.box.text = host.dataset.sentence ?? words.examples[0];
    this.#open(full);
    const leads = host.querySelectorAll(":scope > .part-lead"); // the chapter's words about it
    host.replaceChildren(...leads, section); // with all in it: nothing is read out before it is asked
  }

  /** A small one opens with the first example, which was translated when the site was built. */
  #open(full) {
    const opens = !full && this.box.text === words.examples[0];
    if (opens) this.written.open(words.opening);
    const size = `${words.kilobytes} kB`;
    this.#say(
      opens
        ? `This answer came with the page. “Translate” runs the model in your browser (${size}).`
        : `The model, ${size}, comes when you ask for it, and runs in this page.`,
    );
  }

  #build(full) {
    const label = make("label", { class: "title", for: this.box.input.id }, "An English sentence");
    const go = make("button", { type: "submit", class: "go" }, "Translate");
    const form = make("form", {}, label, make("div", { class: "ask" }, this.box.element, go));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#answer();
    });
    const more = make("div", { class: "knobs" });
    if (full) more.append(this.#examples());
    more.append(button("Another sentence", () => this.#another()));
    if (full) more.append(button("Clear", () => this.#clear()));
    form.append(this.note, more);
    const name = make("p", { class: "name", "aria-hidden": "true" }, NAME);
    const asked = make("div", {}, form, ...(full ? [this.search.element] : []), this.state);
    const answer = make("div", { class: "answer" }, this.written.element, this.help);
    const both = make("div", { class: "both" }, asked, answer);
    return make("section", { class: "part translator", "aria-label": NAME }, name, both);
  }

  #examples() {
    const options = words.examples.map((sentence) => [sentence, sentence]);
    const list = select([["", "choose …"], ...options], "");
    list.addEventListener("change", () => list.value && this.#take(list.value));
    this.examples = list;
    return labelled("Example", list);
  }

  /** The examples that are left, then sentences by chance. */
  #another() {
    this.tried += 1;
    this.#take(words.examples[this.tried] ?? theGrammar().random(this.random));
  }

  #take(sentence) {
    this.box.text = sentence;
    this.#answer();
  }

  /** On a phone the answer comes below what asks for it. */
  async #answer() {
    await this.translate();
    this.written.sentence.scrollIntoView({ block: "nearest" });
  }

  #clear() {
    this.box.text = "";
    this.box.input.focus();
    this.#forget("Write a sentence, or choose an example.");
  }

  /** Nothing is asked any more, so no old translation stays. */
  #forget(why) {
    this.asked = undefined;
    this.written.clear();
    this.help.replaceChildren();
    this.#say(why);
  }

  /** In the place of an answer: three sentences that can be read, and all words. */
  #offer(typed) {
    const near = nearSentences(typed, theGrammar(), 3);
    const sentences = near.length ? near : words.examples.slice(1, 4);
    const title = near.length ? "It can read these, which are near" : "It can read these";
    const known = Object.entries(words.grammar.words).map(([kind, those]) => {
      const all = make("span", { lang: "en" }, those.join(", "));
      return make("p", {}, make("b", {}, `${kind}: `), all);
    });
    const summary = make("summary", {}, `Show the ${vocabulary.ids.size} words`);
    this.help.replaceChildren(
      make("p", { class: "title" }, title),
      ...sentences.map((sentence) => button(sentence, () => this.#take(sentence))),
      make("details", {}, summary, ...known),
    );
  }

  /** Which words the model does not know. */
  #judge(text) {
    if (this.examples) this.examples.value = words.examples.includes(text) ? text : "";
    const typed = split(plain(text));
    const begun = !/\s$/.test(text) && document.activeElement === this.box.input;
    const strange = typed.filter((word, i) => {
      const isBegun = begun && i === typed.length - 1;
      return !vocabulary.ids.has(word) && !(isBegun && BEGUN.some((w) => w.startsWith(word)));
    });
    this.unknown = typed.filter((word) => !vocabulary.ids.has(word));
    this.#mark(strange);
  }

  #mark(strange) {
    this.box.input.setAttribute("aria-invalid", String(strange.length > 0));
    if (!strange.length) return this.note.replaceChildren();
    const marked = (word) => [", ", make("mark", { lang: "en" }, word)];
    const named = [...new Set(strange)].flatMap(marked);
    this.note.replaceChildren("The model does not know ", ...named.slice(1), ".");
    const known = [...vocabulary.ids.keys()];
    const meant = [...new Set(strange)].map((word) => [word, nearWord(word, known)]);
    const offers = meant.filter(([, near]) => near);
    if (!offers.length) return undefined;
    const offer = ([word, near]) => [" ", button(near, () => this.#mend(word, near))];
    return this.note.append(" Did you mean", ...offers.flatMap(offer), "?");
  }

  #mend(word, meant) {
    const typed = split(plain(this.box.text));
    this.box.text = typed.map((each) => (each === word ? meant : each)).join(" ");
    this.box.input.focus();
    if (!this.unknown.length) this.#answer();
  }

  #prepare() {
    const here = () => this.started || this.#say("The model is here.");
    return load().then(here, (error) => this.#fail(error));
  }

  #fail({ message }) {
    this.#say(`The model could not be fetched (${message}). “Translate” tries again.`);
  }

  #say(...parts) {
    const line = make("span", {}, ...parts);
    if (this.state.textContent !== line.textContent) this.state.replaceChildren(...line.childNodes);
  }

  async translate() {
    this.box.close();
    const text = plain(this.box.text);
    const typed = split(text);
    this.#mark(this.unknown);
    const refusal = this.#refusal(typed);
    this.help.replaceChildren();
    if (refusal) {
      this.#forget(refusal);
      return this.#offer(typed);
    }
    const asked = {};
    this.asked = asked;
    this.#say(`Fetching the model, ${words.kilobytes} kB …`);
    const model = await load().catch((error) => this.#fail(error));
    if (!model || this.asked !== asked) return undefined;
    this.started = true;
    return this.#write(model, typed);
  }

  #refusal(typed) {
    if (!typed.length) return "Write a sentence first.";
    if (this.unknown.length) return "A sentence with an unknown word is not translated.";
    const longest = words.maxLen - 1;
    return typed.length > longest && `A sentence must have at most ${longest} words.`;
  }

  #write(model, typed) {
    const source = [...vocabulary.encode(typed.join(" ")), ids.eos];
    const start = performance.now();
    const { tokens, found } = this.search.run(model, source, limits);
    const took = performance.now() - start;
    const { steps } = trace(model, source, limits, tokens);
    for (const step of steps) {
      step.logits[ids.pad] = -Infinity; // padding is not a word
      step.probabilities = this.search.probabilities(step.logits);
    }
    const name = (id) => words.french[id];
    const sentence = (written) => french(written.filter((id) => id !== ids.eos).map(name));
    const stopped = hasEnd(tokens)
      ? ""
      : `, and stopped after ${tokens.length} words without an end`;
    const line = `Written in ${Math.max(1, Math.round(took))} ms${stopped}. `;
    this.#say(line, ...whatIsNew(typed));
    return this.written.show({
      source: source.map((id) => english[id]),
      target: tokens.map(name),
      steps,
      name,
      found: found?.map(({ tokens, ...scored }) => ({
        text: sentence(tokens),
        ended: hasEnd(tokens),
        ...scored,
      })),
      reshaped: this.search.reshaped,
    });
  }
}

const hasEnd = (tokens) => tokens.at(-1) === ids.eos;

/** Where a sentence is none of those that the model has learnt from: words that never meet, or here. */
function whatIsNew(typed) {
  const learnt = theGrammar();
  if (learnt.next(typed).complete) return [];
  const cited = (part) => [make("i", { lang: "en" }, part.join(" ")), "."];
  const at = learnt.leaves(typed);
  if (at < 0) return ["In training, no whole sentence is ", ...cited(typed)];
  const pair = typed.slice(at - 1, at + 1);
  if (at > 0 && !learnt.joins(...pair))
    return ["In training, the model has never met ", ...cited(pair)];
  return ["In training, no sentence begins with ", ...cited(typed.slice(0, at + 1))];
}

function theGrammar() {
  grammar ??= new Grammar(words.grammar);
  return grammar;
}

/** What the grammar would write next; where it has no more to say, all words that are known. */
function nextWords(before, begun) {
  const next = theGrammar().next(before).words;
  if (next.size || !begun) return next;
  return new Map([...vocabulary.ids.keys()].map((word) => [word, "known words"]));
}

for (const host of document.querySelectorAll(".book-translator")) new Translator(host);
