// Beam search as the package has it (chapter 10), for whatever a beam is made of.

/** What a beam with this log-probability and so many tokens is worth: (5 + n) / 6 to the power α. */
export const scoreOf = (logP, nTokens, alpha) => logP / ((5 + nTokens) / 6) ** alpha;

/**
 * At each step `lengthen` makes longer beams of all beams, the likeliest first. Those that have
 * ended among the K best are set aside; the K best of the others go on. Enough ended ones, or
 * maxLen steps, end the search. `look` sees each step: all longer ones, the beams, and the ended.
 */
export function keepBeams(first, { lengthen, hasEnded, K, maxLen = Infinity, look = () => {} }) {
  let beams = [first];
  const ended = [];
  for (let step = 0; step < maxLen && ended.length < K && beams.length; step++) {
    const longer = lengthen(beams);
    ended.push(...longer.slice(0, K).filter(hasEnded));
    beams = longer.filter((beam) => !hasEnded(beam)).slice(0, K);
    look({ longer, beams, ended: [...ended] });
  }
  return { beams, ended };
}
