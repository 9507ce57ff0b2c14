/**
 * Loads a part when its place comes near the screen: until then the page does without. `script` is
 * the part's module, `behind` are those that it imports; all addresses are beside this file.
 */
export function whenNear(selector, script, behind) {
  const load = () => {
    for (const name of behind) {
      const link = document.createElement("link");
      link.rel = "modulepreload";
      link.href = new URL(name, import.meta.url);
      document.head.append(link);
    }
    import(new URL(script, import.meta.url));
  };
  const seen = new IntersectionObserver(
    (places) => {
      if (!places.some((place) => place.isIntersecting)) return;
      seen.disconnect();
      load();
    },
    { rootMargin: "600px" },
  );
  for (const place of document.querySelectorAll(selector)) seen.observe(place);
}
