// The search page: what the address asks for, looked up in the records that were made with the site.
// Classic and no module, so that a page that was opened as a file can search, too.
(async () => {
  // In these groups are the hits, and so many are shown at first; which comes the sooner.
  const KINDS = {
    term: ["In the glossary", 3, 1.5],
    chapter: ["In the chapters", 12, 1],
    appendix: ["In the appendix", 3, 0.7],
    name: ["In the package", 5, 0.2],
  };
  const STOP_WORDS = new Set(
    `a about an and are as at be but by can do does for from get gets has have how i if in is it its
    me my need needed of on only or purpose so that the this to versus vs was what when where
    which why with work works you your`.split(/\s+/),
  );
  const says = document.getElementById("search-says");
  const results = document.getElementById("search-hits");
  const asked = new URLSearchParams(location.search).get("q")?.trim() ?? "";
  for (const input of document.querySelectorAll("input[name=q]")) input.value = asked;
  document.querySelector(".bd-search-container input[name=q]")?.select();
  if (!asked) return;
  says.textContent = "Fetching the book’s words …"; // the scripts after this one, 0.3 MB
  await new Promise((fetched) => addEventListener("DOMContentLoaded", fetched));
  says.textContent = "Searching …";

  // Chinese has no spaces: each two neighbours are a word. A name is found by its later parts, too.
  const SIGN = "(?!\\p{Script=Han})[\\p{L}\\p{N}_√]";
  const WORD = new RegExp(`\\p{Script=Han}+|(?:${SIGN})+(?:[-–.](?:${SIGN})+)*`, "gu");
  const pairs = (word) =>
    /^\p{Script=Han}{3,}$/u.test(word) ? [...word].slice(1).map((c, i) => word[i] + c) : [word];
  const words = (text) => (text.match(WORD) ?? []).flatMap(pairs);
  const parts = (word) => [
    word,
    ...[...word.matchAll(/(?<=[-–._√])|(?<=[a-z])(?=[A-Z])/g)].map(({ index }) =>
      word.slice(index),
    ),
  ];
  const plain = (word) => word.toLowerCase().replace(/[-–]|(?<=[a-z]{2}[^s])s$/g, "");
  const telling = (word) => word.length > 2 || /\W/.test(word);
  const kept = (word) => !STOP_WORDS.has(word.toLowerCase()) && plain(word);
  const asking = /为什么|什么是|是什么|什么|怎么样?|怎样|如何|[的了吗呢]/g; // Chinese stop words
  const plainly = asked.replace(asking, " ").trim() || asked;
  const query = plainly.replace(/\bsqrt\b[\s(]*/gi, "√"); // as the records of formulas have it
  const all = new Set(words(query).map(kept).filter(Boolean));
  // How much of what is asked one of a place's other names is, if all of it is asked.
  const named = (synonyms) => {
    const names = synonyms.split(", ").map((name) => words(name).map(kept).filter(Boolean));
    const found = names.filter((name) => name.length && name.every((word) => all.has(word)));
    return Math.max(0, ...found.map((name) => name.length / all.size));
  };
  const index = new MiniSearch({
    fields: ["title", "where", "text", "synonyms"],
    storeFields: ["address", "title", "where", "text", "kind", "name"],
    tokenize: (text) => words(text).flatMap(parts),
    processTerm: kept,
    searchOptions: {
      tokenize: words,
      prefix: telling,
      boost: { title: 4, synonyms: 2, where: 0.5 },
      boostDocument: (_id, word, { kind, title, name }) =>
        KINDS[kind][2] * (1 + 9 * name ** 2) * (all.size === 1 && plain(title) === word ? 2 : 1),
    },
  });
  const records = RECORDS.map(([address, title, where, text, kind, synonyms], id) => {
    return { id, address, title, where, text, kind, synonyms, name: named(synonyms) };
  });
  await index.addAllAsync(records, { chunkSize: 100 });

  const make = (tag, className = "", ...inside) => {
    const element = Object.assign(document.createElement(tag), { className });
    element.append(...inside);
    return element;
  };

  /** Where most of the words stand close together, with each of them marked. */
  const excerpt = (text, found) => {
    const runs = (query.match(/\p{Script=Han}+/gu) ?? []).filter((run) => text.includes(run));
    const longest = [...new Set([...runs, ...found])].sort((a, b) => b.length - a.length);
    const spelt = longest.map((word) => [...word].join("[-–]?") + (/\w$/.test(word) ? "s?" : ""));
    const mark = new RegExp(`(?<![a-z\\d])(${spelt.join("|")})(?![a-z\\d])`, "gi");
    const places = [...text.matchAll(mark)].map(({ index }) => index);
    const near = (place) => places.filter((other) => other >= place && other < place + 200).length;
    const best = places.reduce((best, one) => (near(one) > near(best) ? one : best), 0);
    const han = /\p{Script=Han}/u.test(text); // says more in less, and has no blanks to be cut at
    const [before, length] = han ? [30, 120] : [60, 240];
    const cut = (at, blank) => (han ? at : text[blank](" ", at));
    const start = best > before ? cut(best - before - 1, "indexOf") + 1 : 0;
    const end = start + length < text.length ? cut(start + length, "lastIndexOf") : text.length;
    const pieces = text.slice(start, end).split(mark);
    const shown = pieces.map((piece, i) => (i % 2 ? make("mark", "", piece) : piece));
    return [start ? "… " : "", ...shown, end < text.length ? " …" : ""];
  };

  const root = new URL(document.documentElement.dataset.content_root, location.href);
  const entry = ({ address, title, where, text, terms }) => {
    const link = Object.assign(make("a", "", title), { href: new URL(address, root) });
    link.search = new URLSearchParams({ highlight: terms.filter(telling).join(" ") });
    const page = where ? [make("span", "search-where", ` ${where}`)] : [];
    return make("li", "", link, ...page, make("p", "context", ...excerpt(text, terms)));
  };

  // All words first; if few places have them, then words spelt nearly so, and then any of them.
  const fuzzy = (word) => word.length > 4 && 0.25;
  const hits = [];
  let exact;
  for (const how of [{ combineWith: "AND" }, { combineWith: "AND", fuzzy }, { fuzzy }]) {
    const known = new Set(hits.map(({ id }) => id));
    hits.push(...index.search(query, how).filter(({ id }) => !known.has(id)));
    exact ??= hits.length;
    if (hits.length > 2) break;
  }
  const near = hits.length - exact ? `; ${hits.length - exact} with some words, or like them` : "";
  says.textContent = `${exact || "No"} ${exact === 1 ? "place" : "places"} with “${asked}”${near}.`;
  for (const kind of new Set(hits.map((hit) => hit.kind))) {
    const [title, n] = KINDS[kind];
    const found = hits.filter((hit) => hit.kind === kind);
    const list = make("ul", "search", ...found.slice(0, n).map(entry));
    results.append(make("h2", "", title), list);
    if (found.length <= n) continue;
    const more = make("button", "btn search-more", `All ${found.length}`);
    more.addEventListener("click", () => {
      list.append(...found.slice(n).map(entry));
      more.remove();
    });
    results.append(more);
  }
})().catch(({ message }) => {
  document.getElementById("search-says").textContent =
    `The search does not run (${message}). Load the page again.`;
});
