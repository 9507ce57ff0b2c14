// Where the reader is: the contents mark the section that is on the screen, and a table or a formula
// that is wider than its frame takes the keyboard's focus, so that it can be scrolled. Both are asked
// of an observer, since a script that measures lays out all of a long page at once.
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

  const near = new IntersectionObserver(
    (entries) => {
      const seen = entries.filter((entry) => entry.isIntersecting).map((entry) => entry.target);
      const wide = seen.map((box) => box.scrollWidth > box.clientWidth);
      seen.forEach((box, i) => {
        box.tabIndex = wide[i] ? 0 : -1;
      });
    },
    { rootMargin: "50% 0px" },
  );
  // what the theme calls at first, and whenever the page changes
  window.bookTabStops = () => {
    for (const box of document.querySelectorAll(".pst-scrollable-table-container, .book-formula")) {
      near.unobserve(box);
      near.observe(box);
    }
  };
})();
