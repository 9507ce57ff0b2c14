/**
 * Loads a part when its place comes near the screen: until then the page does without. `script` is
 * the part's module, beside this file.
 */
export function whenNear(selector, script) {
  const places = document.querySelectorAll(selector);
  const load = () => {
    import(new URL(script, import.meta.url)).catch((error) => {
      for (const place of places) {
        place.append("This part could not be fetched; load the page again to try anew.");
        place.dataset.stopped = "";
        place.style.minHeight = 0; // no room is kept for what does not come
      }
      throw error;
    });
  };
  const seen = new IntersectionObserver(
    (entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      seen.disconnect();
      load();
    },
    { rootMargin: "600px" },
  );
  for (const place of places) seen.observe(place);
}
