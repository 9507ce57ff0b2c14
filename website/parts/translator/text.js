// From typed text to ids, as the package's Vocabulary does it.

// biome-ignore lint/suspicious/noControlCharactersInRegex: Python takes these for white space
const WHITE_SPACE = /[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/;

/** The words between white space, in Unicode's normal form C. */
export function split(text) {
  return text
    .split(WHITE_SPACE)
    .filter(Boolean)
    .map((word) => word.normalize("NFC"));
}

export class Vocabulary {
  /** All words in the order of their ids; the specials, which come first, are no text. */
  constructor(words, unknown) {
    this.words = words;
    this.unknown = unknown;
    const isSpecial = (word) => /^<.*>$/.test(word);
    this.ids = new Map(words.map((word, id) => [word, id]).filter(([word]) => !isSpecial(word)));
  }

  encode(text) {
    return split(text).map((word) => this.ids.get(word) ?? this.unknown);
  }
}

/** What the grammar writes has small letters, no marks behind words, and no quotation marks. */
export function plain(text) {
  return text
    .toLowerCase()
    .replace(/["“”„«»()]|[.,;:!?]+(?=["“”„«»)]*(\s|$))/g, "")
    .trimEnd();
}

/** French words as they are printed: none stands apart behind an apostrophe. */
export function french(words) {
  return words.join(" ").replaceAll("' ", "'");
}
