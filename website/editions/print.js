/* What the book does in Chromium before it is printed (website/editions/pdf.py). */

const all = (selector) => [...document.querySelectorAll(selector)];

async function loaded() {
  await Promise.all([...document.fonts].map((face) => face.load()));
  await Promise.all([...document.images].map((image) => image.decode().catch(() => {})));
}

/* What is wider than the page, and must not break, gets smaller letters, down to two thirds. */
function fit() {
  const wide = (element) => element.scrollWidth > element.parentElement.clientWidth + 1;
  for (const element of all(".book-formula > math, table")) {
    const size = parseFloat(getComputedStyle(element).fontSize);
    for (let part = 0.95; wide(element) && part > 0.66; part -= 0.05)
      element.style.setProperty("font-size", `${size * part}px`, "important");
  }
}

/* An entry of the index names a page once. Chromium breaks pages elsewhere if it has broken them
before, so the book is laid out anew. */
function number(pages) {
  document.body.hidden = true;
  document.body.getBoundingClientRect();
  for (const place of all(".book-at")) {
    place.textContent = pages[place.closest("a").getAttribute("href").slice(1)];
    if (place.matches("a.book-at + a.book-at"))
      place.hidden = place.textContent === place.previousElementSibling.textContent;
  }
  document.body.hidden = false;
}

/* Signs that no font here has: they look like one that no font can have. */
function lacking() {
  const pen = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const drawn = (sign) => {
    pen.clearRect(0, 0, 30, 30);
    pen.font = "20px Book, Formulas, Signs, serif";
    pen.fillText(sign, 2, 22);
    return pen.getImageData(0, 0, 30, 30).data.join();
  };
  const none = drawn("\u{10fffe}");
  const signs = new Set(document.body.innerText.match(/[^\p{ASCII}\s\p{Cf}]/gu));
  return [...signs].filter((sign) => drawn(sign) === none);
}

function wrong() {
  const on = (element) => element.closest(".book-page")?.id ?? "front";
  const found = [];
  for (const image of document.images)
    if (!image.naturalWidth) found.push(`${on(image)}: the picture cannot be read: ${image.src}`);
  const right = document.body.getBoundingClientRect().right + 1;
  for (const element of all(".book-page :is(p, pre, img, table, math, math *, dt, h1, h2)")) {
    const box = element.getBoundingClientRect();
    const end = Math.max(box.right, box.left + element.scrollWidth);
    const start = element.outerHTML.slice(0, 100);
    if (end > right) found.push(`${on(element)}: cut off, ${end} of ${right} px: ${start}`);
  }
  const signs = lacking();
  if (signs.length)
    found.push(
      `no font on this machine has ${signs.slice(0, 9).join(" ")}: ${signs.length} signs` +
        " (for Chinese install one; Debian: apt install fonts-noto-cjk)",
    );
  return found;
}

window.edition = { loaded, fit, number, wrong };
