// Chapter 5, sections 5.1 and 5.6: what sees gets of two nouns, and what can be read from it.

export const NOUNS = ["dog", "cat"];
/** The four sentences: their first and their second noun. */
export const SENTENCES = NOUNS.flatMap((first) => NOUNS.map((second) => [first, second]));
export const QUESTIONS = ["first", "second"];
const SAME = 1e-9; // nearer than that, two places are one
const CENTRE = 0.5; // the places of a sentence and of the one with its nouns exchanged are mirrored

/** The share of the weight that the first noun gets, for the column dog and for the column cat. */
export const shares = ({ two, a, b }) => [a / 100, (two ? b : a) / 100];

/** The two numbers that the head, or the two heads together, bring of a sentence. */
export const place = (state, nouns) =>
  shares(state).map((share, column) => {
    const [first, second] = nouns.map((noun) => (noun === NOUNS[column] ? 1 : 0));
    return share * first + (1 - share) * second;
  });

export const apart = ([x, y], [u, v]) => Math.hypot(x - u, y - v);

/** The point between p and q that is nearest to the origin. */
function nearest([px, py], [qx, qy]) {
  const [dx, dy] = [qx - px, qy - py];
  const long = dx ** 2 + dy ** 2;
  const t = long ? Math.min(1, Math.max(0, -(px * dx + py * dy) / long)) : 0;
  return [px + t * dx, py + t * dy];
}

/**
 * The straight cut that keeps farthest from all sentences when one of the nouns is asked for: its
 * distance from the nearest one, 0 where there is no cut, and the direction towards dog. It passes
 * through the centre, because there what is to be called dog is mirrored in what is to be called cat.
 */
export function cut(state, which) {
  const dogs = SENTENCES.filter((nouns) => nouns[which] === "dog");
  const [p, q] = dogs.map((nouns) => place(state, nouns).map((number) => number - CENTRE));
  const towards = nearest(p, q);
  const far = Math.hypot(...towards);
  return far < SAME ? { far: 0, towards: null } : { far, towards };
}

export const cuts = (state) => QUESTIONS.map((_, which) => cut(state, which));

/** A sentence that is in the same place as dog … cat, where there is one. */
export const hidden = (state) =>
  SENTENCES.find(
    (nouns) =>
      nouns.join() !== "dog,cat" && apart(place(state, nouns), place(state, ["dog", "cat"])) < SAME,
  );
