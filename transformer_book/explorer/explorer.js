// The attention explorer; page.py makes one script of it and of what it imports.

import { labelled, make, select } from "./elements.js";

// Fills each element whose data-explorer is `key`; page.py says what `data` holds.
export function exploreAttention(key, style, data) {
  for (const host of document.querySelectorAll(`[data-explorer="${key}"]`))
    if (!host.shadowRoot) build(host, style, data);
}

// A shadow tree keeps the page's style sheets out, and takes the place of the plain table.
function build(host, style, data) {
  const chosen = { sentence: 0, ...data.start, word: 0 };
  const section = make("section", { "aria-label": "Attention explorer" });
  const choices = make("div", { class: "choices" });
  const words = make("div");
  const says = make("p", { role: "status" });
  const title = make("p", { class: "title" });
  const scroll = make("div", {
    class: "table",
    role: "region",
    "aria-label": "Table",
    tabindex: 0,
  });
  section.append(choices, words, says, title, scroll);
  host.attachShadow({ mode: "open" }).append(make("style", {}, style), section);
  followScheme(section);

  const sentence = () => data.sentences[chosen.sentence];
  const inPercent = (weight) => Math.round((100 * weight) / data.scale);
  const isWord = (word) => !/^<(pad|bos|eos)>$/.test(word);

  // The chosen kind of attention: who looks, at what, with which weights.
  function view() {
    const { source, target, maps, gold } = sentence();
    const [english, french] = data.languages;
    const reads = target.slice(0, -1);
    const atSource = { columns: source, columnLang: english };
    const atTarget = { columns: reads, columnLang: french };
    const heads = maps[chosen.kind][chosen.layer];
    const mean = (t, s) => heads.reduce((sum, head) => sum + head[t][s], 0) / heads.length;
    return {
      ...(chosen.kind === "decoder" ? atTarget : atSource),
      ...(chosen.kind === "encoder"
        ? { rows: source, next: null, rowLang: english }
        : { rows: reads, next: target.slice(1), rowLang: french }),
      gold: chosen.kind === "cross" ? gold : null,
      weights: heads[chosen.head] ?? heads[0].map((row, t) => row.map((_, s) => mean(t, s))),
      itself: chosen.kind !== "cross",
    };
  }

  const partners = (now, t) => (now.gold ?? []).filter(([, j]) => j === t).map(([i]) => i);
  const mark = () => make("span", { class: "gold", role: "img", "aria-label": "gold" });
  const spoken = (text) => make("span", { class: "spoken" }, text);

  // "le → chat": reads le, should write chat.
  function label(now, t) {
    const word = make("span", { class: now.next ? "reads" : "next" }, now.rows[t]);
    if (!now.next) return [word];
    const arrow = make("span", { "aria-hidden": "true" }, "→ ");
    return [word, make("span", { class: "next" }, spoken(", next "), arrow, now.next[t])];
  }

  function choice(name, title, options, change) {
    const list = select(options, chosen[name], { name });
    chosen[name] = list.value;
    list.addEventListener("change", () => {
      chosen[name] = list.value;
      change();
    });
    return labelled(title, list);
  }

  // Layers and heads depend on the kind; the first two selects stay, so that focus does.
  function choose() {
    const maps = sentence().maps[chosen.kind];
    const counted = (n) => Array.from({ length: n }, (_, i) => [i, i]);
    const heads = [...counted(maps[0].length), ["mean", "mean"]];
    while (choices.children.length > 2) choices.lastChild.remove();
    choices.append(choice("layer", "Layer", counted(maps.length), draw));
    choices.append(choice("head", "Head", heads, draw));
  }

  function draw() {
    const now = view();
    chosen.word = Math.min(chosen.word, now.rows.length - 1);
    drawWords(now);
    drawTable(now);
    look(chosen.word);
  }

  function drawWords(now) {
    const named = { role: "list", "aria-labelledby": "heading" };
    const list = make("ul", { class: "words", lang: now.columnLang, ...named });
    for (const word of now.columns) {
      const weighed = make("span", { class: "weighed", "data-column": "" }, word);
      list.append(make("li", { class: "word" }, weighed));
    }
    const group = make("div", { class: "words", lang: now.rowLang });
    now.rows.forEach((_, t) => {
      const radio = make("input", { type: "radio", name: "word", value: t });
      radio.checked = t === chosen.word;
      const [word, next] = label(now, t);
      const inner = make("span", now.itself ? { class: "weighed", "data-column": "" } : {}, word);
      const button = make("label", { class: "word" }, radio, inner, ...(next ? [next] : []));
      radio.addEventListener("change", () => {
        chosen.word = t;
        look(t);
      });
      hover(button, t);
      group.append(button);
    });
    const form = now.next ? " (word read → word to write)" : "";
    const legend = make("legend", {}, `Choose the word that looks${form}`);
    const fieldset = make("fieldset", {}, legend, group);
    const heading = make("p", { class: "heading", id: "heading" }, "Words that are looked at");
    words.replaceChildren(...(now.itself ? [fieldset] : [heading, list, fieldset]));
  }

  function drawTable(now) {
    const head = make("tr", {}, make("td"));
    for (const word of now.columns)
      head.append(make("th", { scope: "col", lang: now.columnLang }, make("span", {}, word)));
    const body = make("tbody");
    now.weights.forEach((row, t) => {
      const [word, next] = label(now, t);
      const line = make("tr", {}, make("th", { scope: "row", lang: now.rowLang }, word));
      if (next) line.firstChild.append(" ", next);
      const gold = partners(now, t);
      row.forEach((weight, s) => {
        const cell = make("td", {}, `${inPercent(weight)}`, ...(gold.includes(s) ? [mark()] : []));
        cell.style.setProperty("--w", weight / data.scale);
        cell.classList.toggle("zero", inPercent(weight) === 0);
        line.append(cell);
      });
      line.addEventListener("click", () => pick(t));
      hover(line, t);
      body.append(line);
    });
    const named = { "aria-labelledby": "title" };
    scroll.replaceChildren(make("table", named, make("thead", {}, head), body));
    title.replaceChildren(...description(now));
  }

  function description(now) {
    const head = chosen.head === "mean" ? "mean of all heads" : `head ${chosen.head}`;
    const what = `${data.titles[chosen.kind]}, layer ${chosen.layer}, ${head}`;
    const text = [make("strong", { id: "title" }, what), ", in percent of each row."];
    if (now.gold) {
      const linked = now.rows.map((_, t) => partners(now, t)).map((gold, t) => [gold, t]);
      const counted = linked.filter(([gold]) => gold.length);
      const right = counted.filter(([gold, t]) => gold.includes(strongest(now, t, isWord)[0]));
      text.push(" ", mark(), " is the gold alignment. Of the words to write that have one, ");
      text.push(`${right.length} of ${counted.length} look most at it, <eos> aside.`);
    }
    return text;
  }

  // The columns that pass, by weight; of equals, the first.
  function strongest(now, t, passes) {
    const row = now.weights[t];
    const columns = row.map((_, s) => s).filter((s) => passes(now.columns[s]));
    return columns.sort((a, b) => row[b] - row[a] || a - b);
  }

  function hover(element, t) {
    element.addEventListener("pointerenter", (e) => e.pointerType === "mouse" && look(t));
    element.addEventListener("pointerleave", (e) => e.pointerType === "mouse" && look(chosen.word));
  }

  function pick(t) {
    chosen.word = t;
    words.querySelectorAll("input")[t].checked = true;
    look(t);
  }

  // Shade what word t looks at, and say it.
  function look(t) {
    const now = view();
    const gold = partners(now, t);
    words.querySelectorAll("[data-column]").forEach((element, s) => {
      element.style.setProperty("--w", now.weights[t][s] / data.scale);
      element.querySelector(".percent")?.remove();
      const number = make("span", { class: "percent" }, `${inPercent(now.weights[t][s])}`);
      if (gold.includes(s)) number.append(mark());
      if (now.itself) number.setAttribute("aria-hidden", "true"); // else part of the button's name
      element.append(number);
    });
    scroll.querySelectorAll("tbody tr").forEach((row, i) => {
      if (i === t) row.setAttribute("aria-current", "true");
      else row.removeAttribute("aria-current");
    });
    tell(now, t, gold);
  }

  function tell(now, t, gold) {
    const quoted = (word, lang) => make("b", { lang }, word);
    const text = [now.next ? "Having read " : "From ", quoted(now.rows[t], now.rowLang)];
    if (now.next) text.push(", with ", quoted(now.next[t], now.rowLang), " to write");
    text.push(chosen.head === "mean" ? ", the heads together look at " : ", this head looks at ");
    const seen = strongest(now, t, () => true).filter((s) => inPercent(now.weights[t][s]) > 0);
    seen.slice(0, 3).forEach((s, i) => {
      const after = `\u00a0${inPercent(now.weights[t][s])}\u00a0%`;
      text.push(i ? ", " : "", quoted(now.columns[s], now.columnLang), after);
    });
    text.push(seen.length ? "." : "nothing.");
    if (now.gold && isWord(now.next[t])) {
      text.push(" Gold alignment: ");
      gold.forEach((s, i) => text.push(i ? ", " : "", quoted(now.columns[s], now.columnLang)));
      text.push(gold.length ? "." : "none.");
    }
    says.replaceChildren(...text);
  }

  const restart = () => {
    chosen.word = 0;
    choose();
    draw();
  };
  const titles = data.sentences.map(({ source }, i) => [i, source.filter(isWord).join(" ")]);
  const kinds = Object.entries(data.titles).map(([kind, text]) => [kind, text.split("-att")[0]]);
  choices.append(choice("sentence", "Sentence", titles, restart));
  choices.append(choice("kind", "Attention", kinds, restart));
  choose();
  draw();
}

// Dark where the page says so (this site, Colab, JupyterLab); where it says nothing, as the system.
function followScheme(section) {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const follow = () => {
    const { documentElement: html, body } = document;
    const lab = { true: "light", false: "dark" }[body.dataset.jpThemeLight];
    const said = [html.dataset.theme, html.getAttribute("theme"), body.dataset.theme, lab];
    const scheme = said.find((name) => name === "dark" || name === "light");
    section.classList.toggle("dark", scheme ? scheme === "dark" : system.matches);
  };
  follow();
  system.addEventListener("change", follow);
  const names = { attributeFilter: ["data-theme", "theme", "data-jp-theme-light"] };
  for (const element of [document.documentElement, document.body])
    new MutationObserver(follow).observe(element, names);
}
