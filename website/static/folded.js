// The cells that a page has folded away lie in a file beside it (extensions/folded_cells.py), so that
// no text waits for them. Here they come into their folds: all of them once the page is at rest, or
// at once if the reader opens one, prints, or goes to a place that is in none of the open text. Until
// then, and where they cannot be fetched, a fold has a link to them.
(() => {
  const stubs = new Map(); // from each fold that is still empty to what stands in it
  for (const stub of document.querySelectorAll(".book-folded")) stubs.set(stub.parentElement, stub);
  if (!stubs.size) return;
  const [file] = document.querySelector(".book-folded a").href.split("#");
  const words = (new URLSearchParams(location.search).get("highlight") ?? "").toLowerCase();
  const place = () => {
    try {
      return document.getElementById(decodeURIComponent(location.hash.slice(1)));
    } catch {
      return null; // #100% is no place
    }
  };
  if (location.protocol === "file:") {
    // where a page may not fetch another one, the reader goes there
    if (location.hash.startsWith("#claim-") && !place()) location.replace(file + location.hash);
    return;
  }

  let coming;
  const cells = async () => {
    const answer = await fetch(file, { cache: "no-cache" }); // or it may be older than the page
    if (!answer.ok) throw new Error(`${file}: ${answer.status}`);
    return new DOMParser().parseFromString(await answer.text(), "text/html");
  };
  const fetched = () => {
    coming ??= cells().catch((error) => {
      coming = undefined; // the next fold that is opened tries again
      throw error;
    });
    return coming;
  };

  const fill = (fold, page) => {
    const stub = stubs.get(fold);
    if (!stubs.delete(fold)) return;
    const cell = page.querySelector(`${stub.firstElementChild.hash} > .cell`);
    if (cell) {
      stub.replaceWith(...cell.cloneNode(true).childNodes);
      window.bookCopyButtons(fold);
      for (const word of words.split(/\s+/).filter(Boolean))
        _highlightText(fold, word, "highlighted"); // as sphinx_highlight.js marks the page
    } // one that has changed since keeps its link
    if (!stubs.size) window.bookTabStops();
  };
  const fillAll = async () => {
    const page = await fetched();
    for (const fold of [...stubs.keys()]) fill(fold, page);
  };
  const unless = (promise) => promise.catch(() => {}); // the link is there
  const fillOpen = () => {
    for (const fold of stubs.keys())
      if (fold.open) unless(fetched().then((page) => fill(fold, page)));
  };

  /** To a place that was not there when the browser looked for it. */
  const go = (scrolls) => {
    if (!location.hash || place()) return;
    const arrive = () => {
      const found = place();
      for (let fold = found?.closest("details"); fold; fold = fold.parentElement.closest("details"))
        fold.open = true; // as most browsers do by themselves
      if (found && scrolls) location.replace(location.hash);
    };
    unless(fillAll().then(arrive));
  };
  addEventListener("hashchange", () => go(true));
  const [visit] = performance.getEntriesByType("navigation");
  go(!visit || visit.type === "navigate"); // who comes back is where they were
  document.addEventListener("toggle", fillOpen, true);
  fillOpen(); // some may have been opened before this script came
  addEventListener("beforeprint", () => unless(fillAll()));

  const idle = window.requestIdleCallback ?? ((later) => setTimeout(later, 50));
  const fillInTurn = (page) => {
    const [fold] = stubs.keys();
    if (!fold) return;
    fill(fold, page);
    idle(() => fillInTurn(page));
  };
  const later = () => unless(fetched().then((page) => idle(() => fillInTurn(page))));
  if (navigator.connection?.saveData) return; // who pays for each byte gets what is opened
  if (document.readyState === "complete") idle(later);
  else addEventListener("load", () => idle(later));
})();
