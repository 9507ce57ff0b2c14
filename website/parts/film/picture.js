// Draws a list of named things into an SVG and keeps those that stay, so that CSS can move them.
//
// A thing is { k, t, … }: its name, one of the kinds below, and its numbers; o is its opacity, `d` how
// many seconds after the others it comes, `from` how far from its place. Things with `does` can be
// pressed: they lie on top, and all else is for the eyes alone.

const SVG = "http://www.w3.org/2000/svg";
const LAYERS = ["back", "line", "cell", "text"];

const round = (value) => Math.round(value * 100) / 100;
const at = (x, y) => `translate(${round(x)}px, ${round(y)}px)`;

const KINDS = {
  rect: { tag: "rect", layer: "back", draw: (a) => box(a) },
  image: { tag: "image", layer: "back", draw: (a) => ({ ...box(a), href: a.href }) },
  path: {
    tag: "path",
    layer: "line",
    draw: ({ p, b = 1 }) => ({ d: p, "stroke-width": round(b) }),
  },
  text: {
    tag: "text",
    layer: "text",
    draw: ({ x, y, size, anchor = "start", lang }) => ({
      "font-size": round(size),
      "text-anchor": anchor,
      lang,
      transform: at(x, y),
    }),
  },
  strip: {
    tag: "g",
    layer: "cell",
    draw: ({ x, y, w, h, v }) => ({
      transform: `${at(x, y)} scale(${round(w / v.length)}, ${round(h)})`,
    }),
  },
  press: {
    tag: "rect",
    layer: "press",
    draw: (a) => ({
      ...box({ r: 4, ...a }),
      ...(a.label ? { role: "button", "aria-label": a.label, "aria-pressed": a.pressed } : {}),
    }),
  },
};

function box({ x, y, w, h, r = 0 }) {
  const [width, height] = [w, h].map((each) => Math.max(0, round(each)));
  return { x: round(x), y: round(y), width, height, rx: r };
}

const element = (tag) => document.createElementNS(SVG, tag);

function dress(node, attributes) {
  for (const [name, value] of Object.entries(attributes))
    if (value === undefined) node.removeAttribute(name);
    else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
}

/** The cells of a strip, a unit wide each; between wide ones a hair is left. */
function fill(node, { v, w }) {
  while (node.childElementCount > v.length) node.lastChild.remove();
  while (node.childElementCount < v.length) node.append(element("rect"));
  const cell = w / v.length;
  const width = round(cell > 5 ? 1 - 0.8 / cell : 1.04);
  Array.from(v, (strength, i) =>
    dress(node.children[i], { x: i, width, height: 1, "fill-opacity": round(strength) }),
  );
}

export class Picture {
  constructor(svg) {
    this.nodes = new Map();
    this.things = new Map(); // of what can be pressed, by its node
    const seen = element("g");
    seen.setAttribute("aria-hidden", "true");
    this.groups = { press: element("g") };
    for (const layer of LAYERS) seen.append((this.groups[layer] = element("g")));
    svg.append(seen, this.groups.press);
  }

  show(things) {
    const named = new Map(things.map((thing) => [`${thing.t}:${thing.k}`, thing]));
    if (named.size < things.length) throw new Error("two things of a picture have one name");
    for (const [name, node] of this.nodes)
      if (!named.has(name)) {
        node.remove();
        this.nodes.delete(name);
      }
    const next = new Map(
      Object.entries(this.groups).map(([name, { firstChild }]) => [name, firstChild]),
    );
    this.things.clear();
    for (const [name, thing] of named) {
      const layer = thing.layer ?? KINDS[thing.t].layer;
      const node = this.nodes.get(name) ?? element(KINDS[thing.t].tag);
      this.nodes.set(name, node);
      this.#draw(node, thing);
      if (node === next.get(layer)) next.set(layer, node.nextSibling);
      else this.groups[layer].insertBefore(node, next.get(layer));
      if (thing.does) this.things.set(node, thing);
    }
  }

  #draw(node, thing) {
    const { cls, s, o = 1, d = 0, from } = thing;
    const { transform, ...attributes } = KINDS[thing.t].draw(thing);
    const style = [`--d: ${round(d)}s`, from && `--from: ${at(...from)}`];
    if (transform) style.push(`transform: ${transform}`);
    dress(node, {
      class: cls,
      opacity: round(o),
      ...attributes,
      style: style.filter(Boolean).join("; "),
    });
    if (s !== undefined && node.textContent !== s) node.textContent = s;
    if (thing.v) fill(node, thing);
  }
}
