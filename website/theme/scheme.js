// Stands in each page's head: light or dark before the first paint, and when the rest comes.
((root) => {
  try {
    localStorage; // which some browsers refuse, and the theme's scripts ask for, too
  } catch {
    const nothing = { getItem: () => null, setItem() {}, removeItem() {} };
    Object.defineProperty(window, "localStorage", { value: nothing });
  }
  const mode = localStorage.getItem("mode") || "auto";
  const night = mode === "auto" && matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.mode = mode;
  root.dataset.theme = night ? "dark" : mode === "auto" ? "light" : mode;

  // The page's script is asked for when all text has come and some of it is to be seen. A button
  // that is pressed before it is there does what it does then.
  const parsed = new Promise((done) =>
    document.addEventListener("readystatechange", done, { once: true }),
  );
  const painted = new Promise((done) => {
    addEventListener("load", () => setTimeout(done, 2000)); // a browser may keep paints to itself
    if (!window.PerformanceObserver?.supportedEntryTypes?.includes("paint")) return done();
    new PerformanceObserver(done).observe({ type: "paint", buffered: true });
  });
  let pressed;
  const press = ({ target }) => {
    pressed = target.closest(".search-button__button, .sidebar-toggle, .theme-switch-button");
  };
  addEventListener("click", press, true);
  Promise.all([parsed, painted]).then(() => {
    for (const late of document.querySelectorAll(".book-late")) {
      const script = late.content.querySelector("[src*='site.js']");
      script?.addEventListener("load", () =>
        setTimeout(() => {
          // after what the script does in turn (extensions/bundles.py)
          removeEventListener("click", press, true);
          pressed?.click();
        }),
      );
      late.replaceWith(late.content);
    }
  });

  // A fresh page is laid out section by section when it is idle, or all of it at the first touch,
  // and until it is seen it asks for no font that few of its words need; one that the reader comes
  // back to, or opens at a place, is laid out at once.
  const [visit] = performance.getEntriesByType("navigation");
  if (visit?.type !== "navigate" || location.hash || !window.requestIdleCallback) return;
  root.dataset.fresh = root.dataset.unseen = "";
  if (!document.querySelector("[href*=serif-italic]")) root.dataset.upright = "";
  const settle = () => {
    delete root.dataset.fresh;
    delete root.dataset.unseen;
  };
  for (const touch of ["pointerdown", "keydown", "hashchange"])
    addEventListener(touch, settle, { once: true, capture: true });
  const loaded = new Promise((done) => addEventListener("load", done));
  // All at once: with each font that came later, formulas would be laid out anew.
  const fonts = {
    math: '1em "Book Math"',
    msqrt: '1em "Book Root"',
    em: 'italic 1em "Book Serif"',
  };
  const come = () => {
    const asked = Object.keys(fonts).filter((tag) => document.querySelector(tag));
    return Promise.allSettled(asked.map((tag) => document.fonts.load(fonts[tag])));
  };
  Promise.all([loaded, painted])
    .then(come)
    .then(() => {
      delete root.dataset.unseen;
      getComputedStyle(root).color; // has styles made now, and the layout in a task of its own
      const left = [
        ...document.querySelectorAll(".bd-article > section > :is(section, dl.glossary)"),
      ];
      const next = () => {
        const section = left.shift();
        if (!section || root.dataset.fresh === undefined) return settle();
        section.style.contentVisibility = "visible";
        requestIdleCallback(next);
      };
      requestIdleCallback(next);
    });
})(document.documentElement);
