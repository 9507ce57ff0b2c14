// Browsers load no modules into a page that was opened as a file, so this is none.
if (location.protocol === "file:") {
  for (const part of document.querySelectorAll(
    ".book-translator, .book-film, .book-living, .book-ledger",
  )) {
    const line = document.createElement("p");
    line.append(
      "This page was opened as a file, where the browser does not let it run this part: ",
    );
    line.append("serve the site with ", document.createElement("code"), " instead.");
    line.querySelector("code").append("make serve");
    part.append(line);
    part.dataset.stopped = "";
    part.style.minHeight = 0; // no room is kept for what does not come
  }
}
