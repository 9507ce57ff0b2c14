// What a reader would see amiss on a page that is open: website/checks/site_check.py calls this. It waits
// for what the page's scripts fill in until it is there or has failed, and says so once a minute.
async () => {
  const found = [];
  const all = (selector) => [...document.querySelectorAll(selector)];
  const seen = (selector) => all(selector).filter((element) => element.checkVisibility());

  const idle = () => new Promise((done) => requestIdleCallback(done));
  let wrong = false;
  for (const event of ["error", "unhandledrejection"])
    addEventListener(event, () => {
      wrong = true;
    });
  const until = async (what, there) => {
    const told = setInterval(() => console.info(`waits for ${what}`), 60_000);
    while (!there() && !wrong) await idle();
    clearInterval(told);
  };

  for (const fold of all("details:not(.dropdown)")) fold.open = true; // menus lie over the text
  for (const part of all(".book-translator, .book-living, .book-film")) {
    const there = () => {
      part.scrollIntoView({ behavior: "instant" }); // again: the page above it may have grown
      return part.querySelector("section") || "stopped" in part.dataset;
    };
    await until(`a part: ${part.className}`, there);
    if (!part.querySelector("section")) found.push(`never fills in: ${part.className}`);
  }
  window.scrollTo({ top: document.body.scrollHeight, behavior: "instant" });
  await document.fonts.ready;
  await idle(); // the folds that are open now have said so
  await idle();
  // The theme's script lets the keyboard scroll what is wider than its frame 300 ms after a fold was
  // opened; axe-core looks whether it does.
  await new Promise((done) => setTimeout(done, 301));

  const width = document.documentElement.scrollWidth;
  if (width > window.innerWidth) found.push(`is ${width} px wide on ${window.innerWidth} px`);
  for (const box of seen("body, body *")) {
    const { overflowX, textOverflow } = getComputedStyle(box);
    const hides = ["hidden", "clip"].includes(overflowX) && textOverflow === "clip";
    const lost = box.scrollWidth - box.clientWidth;
    // what is 1 px large is for screen readers
    if (hides && box.clientWidth > 1 && lost > 1)
      found.push(`cuts ${lost} px off: ${box.cloneNode().outerHTML.slice(0, 120)}`);
  }
  for (const math of all(".math, math"))
    if (!math.matches("math, :has(math)") || math.matches("math:empty, math:has(merror)"))
      found.push(`has a formula that is not set: ${math.textContent}`);
  for (const image of all(".bd-article img"))
    if (!image.alt || image.alt.includes("/")) found.push(`has no words for ${image.src}`);
  return found;
};
