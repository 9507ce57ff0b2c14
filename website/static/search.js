// The search page: what the address asks for, looked up in the index that was made with the site.

const AT_FIRST = 12; // of a kind; more come when the last one is near the screen
const KINDS = [
  ["term", "In the glossary", 3],
  ["chapter", "In the chapters", AT_FIRST],
  ["appendix", "In the appendix", 3],
  ["name", "In the package", 5],
];
const root = new URL(document.documentElement.dataset.content_root, location.href);
const says = document.getElementById("search-says");
const results = document.getElementById("search-results");
const asked = new URLSearchParams(location.search).get("q")?.trim() ?? "";
const words = asked.replace(/\bsqrt\b[\s(]*/gi, "√"); // as the records of formulas have it

const make = (tag, className = "", ...inside) => {
  const element = Object.assign(document.createElement(tag), { className });
  element.append(...inside);
  return element;
};

/** An entry; Pagefind has escaped the text of an excerpt, and marked the words that were found. */
function entry({ meta, excerpt }) {
  const link = make("a", "", meta.title);
  const address = new URL(meta.address, root);
  address.searchParams.set("highlight", asked);
  link.href = address;
  const context = make("p", "context");
  context.innerHTML = excerpt;
  const where = meta.where ? [make("span", "search-where", ` ${meta.where}`)] : [];
  return make("li", "", link, ...where, context);
}

/** Adds the next entries to a list, and goes on once the last of them comes near the screen. */
async function fill(list, hits, n) {
  const found = await Promise.all(hits.splice(0, n).map((hit) => hit.data()));
  const same = ({ meta }) => meta.title.toLowerCase() === asked.toLowerCase();
  const exact = found.filter(same);
  list.append(...[...exact, ...found.filter((one) => !same(one))].map(entry));
  if (!hits.length) return;
  const observer = new IntersectionObserver(
    (entries) => {
      if (!entries.some((one) => one.isIntersecting)) return;
      observer.disconnect();
      fill(list, hits, AT_FIRST);
    },
    { rootMargin: "200px" },
  );
  observer.observe(list.lastElementChild);
}

async function search() {
  results.ariaBusy = "true";
  const { options, search } = await import(new URL("_static/search/pagefind.js", root));
  await options({ excerptLength: 30 });
  const ask = async ([kind, title, n]) => {
    const { results: hits } = await search(words, { filters: { kind } });
    return { title, n, hits, total: hits.length };
  };
  const found = await Promise.all(KINDS.map(ask));
  if (/^[^√]*[_(]/.test(words)) found.unshift(found.pop()); // a name of the package
  const total = found.reduce((sum, { total }) => sum + total, 0);
  says.textContent = total
    ? `${total} ${total === 1 ? "place" : "places"} with “${asked}”.`
    : `Nothing has all words of “${asked}”. Try fewer, or one of the glossary.`;
  for (const { title, n, hits } of found.filter(({ total }) => total)) {
    const list = make("ul", "search");
    const more = make("button", "btn search-more", `All ${hits.length}`);
    results.append(make("h2", "", title), list);
    const rest = n < AT_FIRST ? hits.splice(Math.max(n, 3)) : [];
    if (rest.length) {
      more.addEventListener("click", () => {
        more.remove();
        fill(list, rest, AT_FIRST);
      });
      results.append(more);
    }
    await fill(list, hits, n);
  }
  results.ariaBusy = "false";
}

for (const input of document.querySelectorAll("input[name=q]")) input.value = asked;
document.querySelector(".bd-search-container input[name=q]")?.select();
if (location.protocol === "file:")
  says.textContent =
    "A page that is opened as a file cannot search. `make serve` shows the book so that it can.";
else if (asked)
  search().catch(({ message }) => {
    says.textContent = `The index could not be read (${message}). Load the page again.`;
  });
