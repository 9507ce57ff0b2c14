// What a reader would see amiss on a page that is open: website/checks/site_check.py calls this, and says how
// many milliseconds a part of the page has to fill in.
async (patience) => {
  const found = [];
  const all = (selector) => [...document.querySelectorAll(selector)];
  const seen = (selector) => all(selector).filter((element) => element.checkVisibility());
  const called = (element) => element.cloneNode().outerHTML.replace(/<\/.*/, "").slice(0, 120);

  for (const fold of all("details:not(.dropdown)")) fold.open = true; // menus lie over the text
  const late = performance.now() + patience;
  while (all(".book-folded").length && performance.now() < late)
    await new Promise((done) => setTimeout(done, 20));
  for (const stub of all(".book-folded")) found.push(`never fills a fold: ${stub.innerHTML}`);
  // what is far from the screen is looked at, too
  for (const section of all("section")) section.style.contentVisibility = "visible";
  for (const part of all(".book-translator, .book-living")) {
    const end = performance.now() + patience;
    part.scrollIntoView({ behavior: "instant" });
    while (!part.querySelector("section") && performance.now() < end)
      await new Promise((done) => setTimeout(done, 20));
    if (!part.querySelector("section")) found.push(`never fills in: ${part.className}`);
  }
  window.scrollTo({ top: document.body.scrollHeight, behavior: "instant" });
  // what is wider than its frame can be scrolled by keyboard once place.js has measured it
  const frames = ".pst-scrollable-table-container, .book-formula";
  const out_of_reach = () =>
    seen(frames).filter((box) => box.scrollWidth > box.clientWidth && box.tabIndex < 0);
  const end = performance.now() + patience;
  while (out_of_reach().length && performance.now() < end)
    await new Promise((done) => setTimeout(done, 20));
  for (const box of out_of_reach()) found.push(`has no tab stop for what scrolls: ${called(box)}`);

  const width = document.documentElement.scrollWidth;
  if (width > window.innerWidth) found.push(`is ${width} px wide on ${window.innerWidth} px`);
  for (const box of seen("body, body *")) {
    const { overflowX, textOverflow } = getComputedStyle(box);
    const hides = ["hidden", "clip"].includes(overflowX) && textOverflow === "clip";
    const lost = box.scrollWidth - box.clientWidth;
    // what is 1 px large is for screen readers
    if (hides && box.clientWidth > 1 && lost > 1) found.push(`cuts ${lost} px off: ${called(box)}`);
  }
  for (const math of all(".math, math"))
    if (!math.matches("math, :has(math)") || math.matches("math:empty, math:has(merror)"))
      found.push(`has a formula that is not set: ${math.textContent}`);
  for (const image of all(".bd-article img"))
    if (!image.alt || image.alt.includes("/")) found.push(`has no words for ${image.src}`);
  for (const fold of all(".bd-article summary[aria-label]"))
    found.push(`calls a fold "${fold.ariaLabel}", not by its title: ${fold.innerText}`);
  const titles = seen("h1").length;
  if (titles !== 1) found.push(`has ${titles} titles`);
  const searches = seen(".search-button__button, .search-button-field").length;
  if (searches > 1) found.push(`has ${searches} search boxes`);
  return found;
};
