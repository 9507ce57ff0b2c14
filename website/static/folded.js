// The cells that a page has folded away lie in a file beside it (extensions/folded_cells.py), so that
// no text waits for them. Here they come into their folds: all of them once the page is at rest, or
// at once if the reader opens one, prints, or goes to a place that is in none of the open text. Until
// then, and where they cannot be fetched, a fold has a link to them.
(() => {
  const stubs = new Map(); // from each fold that is still empty to what stands in it
  for (const stub of document.querySelectorAll(".book-folded")) stubs.set(stub.parentElement, stub);
  if (!stubs.size || location.protocol === "file:") return; // a file may not fetch another one
  const [file] = document.querySelector(".book-folded a").href.split("#");
  const words = (new URLSearchParams(location.search).get("highlight") ?? "").toLowerCase();

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
    const cell = page.querySelector(`${stub?.firstElementChild.hash} > .cell`);
    if (!stubs.delete(fold) || !cell) return; // a cell that has changed since keeps its link
    stub.replaceWith(...cell.cloneNode(true).childNodes);
    window.bookCopyButtons(fold);
    for (const word of words.split(/\s+/).filter(Boolean))
      _highlightText(fold, word, "highlighted"); // as sphinx_highlight.js marks the page
    if (!stubs.size) window.bookTabStops();
  };
  const fillAll = async () => {
    const page = await fetched();
    for (const fold of [...stubs.keys()]) fill(fold, page);
  };
  const unless = (promise) => promise.catch(() => {}); // the link is there

  /** To a place that was not there when the browser looked for it. */
  const go = () => {
    const place = () => document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (location.hash && !place())
      unless(fillAll().then(() => place() && location.replace(location.hash)));
  };
  addEventListener("hashchange", go);
  go();
  document.addEventListener(
    "toggle",
    ({ target }) => {
      if (target.open && stubs.has(target)) unless(fetched().then((page) => fill(target, page)));
    },
    true,
  );
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
