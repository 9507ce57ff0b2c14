// Has axe-core look at the page that is open, and gives what shuts some readers out: the rule, the
// element's selector, and what is wrong. website/checks/site_check.py calls this with axe-core's script.
//
// Its rule about contrast takes 2 ms for each element, and thousands of a page's words look the
// same. So it looks at one of each kind: of the elements with the same letters on the same
// backgrounds. Where it could not judge that one, as when something hides it, it looks at all of
// the kind; and it looks at each that another element lies over or under.
async (script) => {
  if (!window.axe) new Function(script).call(window);
  window.scrollTo(0, 0); // nothing under the header that stays
  document.querySelector(".bd-sidebar-primary")?.scrollTo(0, 0); // nor under its search button

  const numbers = new Map(); // of the kinds of backgrounds
  const grounds = new Map(); // of the elements
  const ground = (element) => {
    if (!element) return 0;
    if (!grounds.has(element)) {
      const style = getComputedStyle(element);
      const { backgroundColor, backgroundImage, opacity, mixBlendMode } = style;
      const own = `${backgroundColor} ${backgroundImage} ${opacity} ${mixBlendMode}`;
      const below = ground(element.parentElement);
      const key = `${below} ${own}`;
      if (!numbers.has(key)) numbers.set(key, numbers.size + 1);
      grounds.set(element, own === "rgba(0, 0, 0, 0) none 1 normal" ? below : numbers.get(key));
    }
    return grounds.get(element);
  };
  const kind = (element) => {
    const style = getComputedStyle(element);
    const letters = `${style.webkitTextFillColor} ${style.webkitTextStroke}`; // both have the colour
    return `${ground(element)} ${letters} ${style.textShadow} ${style.fontSize} ${style.fontWeight}`;
  };

  const lifted = ({ position, top, left, transform, translate, margin }) =>
    !["static", "relative"].includes(position) ||
    (position === "relative" && [top, left].some((value) => parseFloat(value))) ||
    [transform, translate].some((value) => value !== "none") ||
    margin.includes("-");
  const elements = [...document.querySelectorAll("body *")].filter((element) =>
    element.checkVisibility({ opacityProperty: true, visibilityProperty: true }),
  );
  const boxes = new Map(elements.map((element) => [element, element.getBoundingClientRect()]));
  const layers = elements.filter((element) => lifted(getComputedStyle(element)));
  const floats = elements.filter((element) => getComputedStyle(element).float !== "none");
  const meet = (a, b) =>
    a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  const apart = (element) =>
    element.namespaceURI.endsWith("svg") ||
    floats.some((box) => box.contains(element)) || // over other boxes, but no text lies under it
    layers.some((layer) => meet(boxes.get(layer), boxes.get(element)) && !element.contains(layer));

  const texts = (element) => [...element.childNodes].filter(({ nodeType }) => nodeType === 3);
  const words = (element) => texts(element).some(({ data }) => /[\p{L}\p{N}]/u.test(data));
  const kinds = new Map();
  const looked_at = [...document.querySelectorAll("input, select, textarea, button")];
  for (const element of elements) {
    if (!words(element) || apart(element)) {
      if (texts(element).some(({ data }) => data.trim())) looked_at.push(element);
      continue;
    }
    const name = kind(element);
    if (kinds.has(name)) kinds.get(name).push(element);
    else kinds.set(name, [element]);
  }

  const judged = new Set(); // the elements whose contrast axe-core could measure
  const after = (checks) => {
    for (const { result, node } of checks)
      if (typeof result === "boolean") judged.add(node.element);
    return checks;
  };
  axe.configure({
    rules: [{ id: "color-contrast", selector: "[data-looked-at]" }],
    checks: [{ id: "color-contrast", after }],
  });
  const violations = async (those, runOnly) => {
    for (const element of those) element.setAttribute("data-looked-at", "");
    const { violations } = await axe.run({ runOnly, resultTypes: ["violations"] });
    for (const element of those) element.removeAttribute("data-looked-at");
    return violations.flatMap(({ id, nodes }) =>
      nodes.map((node) => [id, node.target.join(" "), node.failureSummary]),
    );
  };
  const values = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
  const samples = [...kinds.values()].map(([one]) => one);
  const found = await violations([...looked_at, ...samples], { type: "tag", values });
  const open = [...kinds.values()]
    .filter(([one]) => !judged.has(one))
    .flatMap(([, ...more]) => more);
  if (open.length) found.push(...(await violations(open, ["color-contrast"])));
  return found;
};
