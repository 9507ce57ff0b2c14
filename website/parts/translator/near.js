// What is near to what a visitor types: the word that was meant, and sentences that the model knows.

const BEAMS = 12;
const ALIKE = 3; // beams to which the same is wrong: more of them would push out others
const LONGEST = 10; // words: what comes after them is not looked at
const SPARE = 0.6; // what a word too many or too few costs; a wrong one costs 1 at most

/** How many letters are too many, too few or changed places; a wrong one counts one and a half. */
function distance(a, b) {
  const d = [...Array(a.length + 1).keys()].map((i) => [i]);
  for (let j = 0; j <= b.length; j++) d[0][j] = j;
  for (let i = 1; i <= a.length; i++)
    for (let j = 1; j <= b.length; j++) {
      const other = d[i - 1][j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1.5);
      d[i][j] = Math.min(d[i - 1][j] + 1, d[i][j - 1] + 1, other);
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (swapped) d[i][j] = Math.min(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d[a.length][b.length];
}

/** The known word that is meant by one with a typing error, or by another form of it ("sleeping"). */
export function nearWord(word, known) {
  const stem = word.replace(/(ing|ed)$/, "");
  const isForm = (each) =>
    stem !== word && stem.length > 2 && each.startsWith(stem) && each.length <= stem.length + 1;
  const allowed = [0, 0, 0, 1, 1, 1.5, 1.5, 1.5][word.length] ?? 2;
  const fits = (each) => word.length > 3 || each.length === word.length; // letters change places
  const far = new Map(known.map((each) => [each, isForm(each) ? 0 : distance(word, each)]));
  return known
    .filter((each) => each[0] === word[0] && fits(each) && far.get(each) <= allowed)
    .sort((a, b) => far.get(a) - far.get(b))[0];
}

/**
 * Sentences of the grammar that differ least from these words, found by beam search: of each
 * beginning, `row` has what it costs to make it from the first 0, 1, 2, … of the words.
 */
export function nearSentences(typed, grammar, count) {
  const known = [...grammar.kindOf.keys()];
  const wanted = typed.slice(0, LONGEST).map((word) => {
    return grammar.kindOf.has(word) ? word : (nearWord(word, known) ?? word);
  });
  if (!wanted.some((word) => grammar.kindOf.has(word))) return [];
  const cost = (a, b) => {
    if (a === b) return 0;
    if (a === `${b}s` || b === `${a}s`) return 0.2;
    return grammar.kindOf.get(a) === grammar.kindOf.get(b) ? 0.5 : 1;
  };
  const longer = ({ words, row }, word) => {
    const next = [row[0] + SPARE];
    wanted.forEach((each, j) => {
      next.push(Math.min(row[j] + cost(word, each), row[j + 1] + SPARE, next[j] + SPARE));
    });
    return { words: [...words, word], row: next, least: Math.min(...next) };
  };
  const found = [];
  let beams = [{ words: [], row: [0, ...wanted.map((_, j) => (j + 1) * SPARE)] }];
  for (let length = 0; length <= wanted.length + 2; length++) {
    const ways = beams.flatMap((beam) => {
      const { words, complete } = grammar.next(beam.words);
      if (complete) found.push({ sentence: beam.words.join(" "), far: beam.row.at(-1) });
      return [...words.keys()].map((word) => longer(beam, word));
    });
    const alike = new Map();
    const isNew = ({ row }) => {
      const key = String(row);
      alike.set(key, (alike.get(key) ?? 0) + 1);
      return alike.get(key) <= ALIKE;
    };
    beams = ways.sort((a, b) => a.least - b.least).filter(isNew);
    beams.length = Math.min(beams.length, BEAMS);
  }
  const near = found.filter(({ far }) => far <= wanted.length / 2).sort((a, b) => a.far - b.far);
  return near.slice(0, count).map(({ sentence }) => sentence);
}
