// Beam search as the package has it (chapter 10), for whatever a beam is made of.

/** What a beam with this log-probability and so many tokens is worth: (5 + n) / 6 to the power α. */
export const scoreOf = (logP, nTokens, alpha) => logP / ((5 + nTokens) / 6) ** alpha;

/**
 * At each step `lengthen` makes longer beams of all beams, the likeliest first. Those that have
 * ended among the K best are set aside; the K best of the others go on, while the first of them
 * could still end with a better score than the best that has ended, up to maxLen tokens. One beam
 * is greedy. `logOf` is a beam's log-probability; `look` sees each step: all longer ones, the
 * beams, and the ended.
 */
export function keepBeams(first, { lengthen, hasEnded, logOf, K, alpha, maxLen, look = () => {} }) {
  let beams = [first];
  let best = Number.NEGATIVE_INFINITY; // the best score of what has ended
  const ended = [];
  for (let n = 1; n <= maxLen && beams.length && !isDone(n); n++) {
    const longer = lengthen(beams);
    const more = longer.slice(0, K).filter(hasEnded);
    best = Math.max(best, ...more.map((beam) => scoreOf(logOf(beam), n, alpha)));
    ended.push(...more);
    beams = longer.filter((beam) => !hasEnded(beam)).slice(0, K);
    look({ longer, beams, ended: [...ended] });
  }
  return { beams, ended };

  /** Whether a beam that ends with n tokens or more, its log-probability as now, is no better. */
  function isDone(n) {
    if (K === 1) return ended.length > 0;
    return (
      best >= Math.max(...[n, maxLen].map((length) => scoreOf(logOf(beams[0]), length, alpha)))
    );
  }
}
