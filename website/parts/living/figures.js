// Puts each living figure of the page where the page asks for it; the module has the figure's name:
// <div class="book-living" data-figure="query"><p>what stands there without scripts</p></div>

for (const host of document.querySelectorAll(".book-living"))
  import(`./${host.dataset.figure}.js`).then(({ start }) => start(host));
