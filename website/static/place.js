// Where the reader is: the contents mark the section that is on the screen, and a table or a formula
// that is no wider than its frame is out of the keyboard's way, for it need not be scrolled.
(() => {
  const links = new Map();
  for (const link of document.querySelectorAll("#pst-page-toc-nav a[href^='#']")) {
    const place = document.getElementById(decodeURIComponent(link.hash.slice(1)));
    const section = place?.closest("section");
    if (section) links.set(section, link);
  }
  const crossing = new Set();
  const mark = () => {
    // of a section and one inside it, the inner one, which is further down in the contents
    const read = [...links.keys()].filter((section) => crossing.has(section)).at(-1);
    for (const [section, link] of links) {
      if (section === read) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
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

  // Each is measured when it has been laid out, and again when it or what is in it gets another
  // size, as by a font that comes late. First all are measured and then all are changed: in turn,
  // each would have a long page laid out anew.
  const boxes = ".pst-scrollable-table-container, .book-formula";
  const sizes = new ResizeObserver((entries) => {
    const found = [...new Set(entries.map(({ target }) => target.closest(boxes)))];
    const wide = found.map((box) => box.scrollWidth > box.clientWidth);
    found.forEach((box, i) => {
      box.tabIndex = wide[i] ? 0 : -1;
    });
  });
  for (const box of document.querySelectorAll(boxes))
    for (const part of [box, ...box.children]) sizes.observe(part);
})();
