// Has axe-core look at the page that is open, and gives what shuts some readers out: the rule, the
// element's selector, and what is wrong. website/checks/site_check.py calls this with axe-core's script.
//
// Its rule about contrast takes 2 ms for each element, and thousands of a page's words look the
// same. So it looks at one of each kind: of the elements that have the same name, classes and colours,
// as all have that they stand in. Where it could not judge that one, as when something hides it, it
// looks at all of the kind.
async (script) => {
  if (!window.axe) new Function(script).call(window);
  window.scrollTo(0, 0); // nothing under the header that stays
  document.querySelector(".bd-sidebar-primary")?.scrollTo(0, 0); // nor under its search button

  const names = new Map();
  const kind = (element) => {
    if (!element) return "";
    if (!names.has(element)) {
      const [classes, style] = ["class", "style"].map((name) => element.getAttribute(name));
      const { color, backgroundColor, fontSize } = getComputedStyle(element);
      const own = [element.localName, classes, style, color, backgroundColor, fontSize].join();
      names.set(element, `${kind(element.parentElement)} ${own}`);
    }
    return names.get(element);
  };
  const kinds = Map.groupBy(document.querySelectorAll("body *"), kind);

  axe.configure({ rules: [{ id: "color-contrast", selector: "[data-looked-at]" }] });
  const look = async (elements, runOnly) => {
    for (const element of elements) element.setAttribute("data-looked-at", "");
    const { violations, incomplete } = await axe.run({ runOnly, elementRef: true });
    for (const element of elements) element.removeAttribute("data-looked-at");
    const found = violations.flatMap(({ id, nodes }) =>
      nodes.map((node) => [id, node.target.join(" "), node.failureSummary]),
    );
    const open = incomplete.filter(({ id }) => id === "color-contrast");
    return [found, open.flatMap(({ nodes }) => nodes.map((node) => node.element))];
  };
  const values = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
  const [found, open] = await look(
    [...kinds.values()].map(([first]) => first),
    { type: "tag", values },
  );
  const more = open.flatMap((element) => kinds.get(kind(element)).slice(1));
  return more.length ? [...found, ...(await look(more, ["color-contrast"]))[0]] : found;
};
