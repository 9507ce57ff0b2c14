// Puts each living figure of the page where the page asks for it:
// <div class="book-living" data-figure="query"><p>what stands there without scripts</p></div>

const NAMES = [
  "query",
  "scaling",
  "mask",
  "clocks",
  "beams",
  "sampling",
  "roofline",
  "depth",
  "heads",
  "rates",
  "serving",
];

async function replace(host) {
  const name = host.dataset.figure;
  if (!NAMES.includes(name)) throw new Error(`data-figure must be one of ${NAMES}, got ${name}`);
  const { start } = await import(`./${name}.js`);
  start(host);
}

for (const host of document.querySelectorAll(".book-living")) replace(host);
