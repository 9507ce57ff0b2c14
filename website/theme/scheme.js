// Stands in each page's head: light or dark before the first paint, and when the rest is laid out.
((root) => {
  const mode = localStorage.getItem("mode") || "auto";
  const night = mode === "auto" && matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.mode = mode;
  root.dataset.theme = night ? "dark" : mode === "auto" ? "light" : mode;
  // A fresh page is laid out section by section when it is idle, or all of it at the first touch;
  // one that the reader comes back to, or opens at a place, is laid out at once.
  const [visit] = performance.getEntriesByType("navigation");
  if (visit?.type !== "navigate" || location.hash || !window.requestIdleCallback) return;
  root.dataset.fresh = "";
  const settle = () => delete root.dataset.fresh;
  for (const touch of ["pointerdown", "keydown", "hashchange"])
    addEventListener(touch, settle, { once: true, capture: true });
  addEventListener("load", () => {
    const left = [...document.querySelectorAll(".bd-article > section > section")];
    const next = () => {
      const section = left.shift();
      if (!section || root.dataset.fresh === undefined) return settle();
      section.style.contentVisibility = "visible";
      requestIdleCallback(next);
    };
    requestIdleCallback(next);
  });
})(document.documentElement);
