// What the parts of pages that run in a browser share: elements, controls, numbers as text. The site
// has it as a module, next to the folders of _site/; page.py puts it into the explorer's script.

/** An element. Words are put in as text, never as HTML; an attribute that is false is left out. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes))
    if (value !== false) element.setAttribute(name, value === true ? "" : value);
  element.append(...children);
  return element;
}

/** A label with its control inside; `words` is a text, or several elements. */
export function labelled(words, control, ...more) {
  return make("label", { class: "field" }, make("span", {}, ...[words].flat()), control, ...more);
}

/** `options` are pairs of a value and its words; of a value that is none of them, the first. */
export function select(options, chosen, attributes = {}) {
  const list = make("select", attributes);
  for (const [value, words] of options) list.append(make("option", { value }, words));
  list.value = chosen;
  if (list.selectedIndex < 0) list.selectedIndex = 0;
  return list;
}

export function button(words, press) {
  const element = make("button", { type: "button" }, words);
  element.addEventListener("click", press);
  return element;
}

let made = 0;

/** An id that no other element of the page has. */
export function newId() {
  made += 1;
  return `book-part-${made}`;
}

/** A number as the chapters write it, with a true minus and never minus zero. */
export function shown(value, digits = 0) {
  const text = value.toFixed(digits);
  return Number(text) === 0 ? text.replace("-", "") : text.replace("-", "\u2212");
}

/** 0.873 -> "87 %", with a space that does not break. */
export const percent = (share, digits = 0) => `${shown(100 * share, digits)}\u00a0%`;
