// Where the reader is: the contents mark the section that is on the screen, and a table or a formula
// that is no wider than its frame is out of the keyboard's way, for it need not be scrolled. First
// all are measured and then all are changed: in turn, each would have a long page laid out anew.
(() => {
  const links = new Map();
  for (const link of document.querySelectorAll("#pst-page-toc-nav a[href^='#']")) {
    const place = document.getElementById(decodeURIComponent(link.hash.slice(1)));
    const section = place?.closest("section");
    if (section && !links.has(section)) links.set(section, link); // its heading, not a name in it
  }
  /** Contents that are longer than the screen scroll by themselves, to what is marked in them. */
  const show = (link) => {
    const box = link.closest("#pst-secondary-sidebar, dialog"); // in which a phone shows them
    const [at, frame] = [link, box].map((element) => element.getBoundingClientRect());
    if (at.top < frame.top || at.bottom > frame.bottom)
      box.scrollTop += at.top - frame.top - box.clientHeight / 3;
  };
  const crossing = new Set();
  const mark = () => {
    // of a section and one inside it, the inner one, which is further down in the contents
    const read = [...links.keys()].filter((section) => crossing.has(section)).at(-1);
    for (const [section, link] of links) {
      if (section === read) {
        link.setAttribute("aria-current", "true");
        show(link);
      } else link.removeAttribute("aria-current");
    }
  };
  // a line across the window, a quarter down: what crosses it is being read
  const line = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries)
        crossing[isIntersecting ? "add" : "delete"](target);
      mark();
    },
    { rootMargin: "-25% 0px -74.9% 0px" },
  );
  for (const section of links.keys()) line.observe(section);

  const idle = window.requestIdleCallback ?? ((later) => setTimeout(later, 50));
  const measure = () => {
    const boxes = [...document.querySelectorAll(".pst-scrollable-table-container, .book-formula")];
    const wide = boxes.map((box) => box.scrollWidth > box.clientWidth);
    boxes.forEach((box, i) => {
      box.tabIndex = wide[i] ? 0 : -1;
    });
  };
  const rest = () => {
    // of a fresh page some sections are not laid out yet: scheme.js does that first
    if (document.documentElement.dataset.fresh !== undefined) return idle(rest);
    document.fonts.ready.then(() => idle(measure)); // one that comes late makes a table wider
  };
  // What the theme calls at first, and whenever the page changes.
  window.bookTabStops = () => idle(rest);
})();
