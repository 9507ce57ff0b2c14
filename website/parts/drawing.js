// What all drawings of the page are made of. A Drawing is a list of things, made without a page, and a
// Picture puts them into an SVG. Colours are roles, as in transformer_book/drawings; the style sheet of
// the parts has them as --query, --query-line and so on.

import { shown } from "./elements.js";

const NAMESPACE = "http://www.w3.org/2000/svg";
const ROLES = ["word", "query", "key", "value", "memory", "position", "loss", "mask", "plain"];

function known(role) {
  if (!ROLES.includes(role)) throw new Error(`role must be one of ${ROLES}, got ${role}`);
  return role;
}
export const surface = (role) => `var(--${known(role)})`;
export const line = (role) => `var(--${known(role)}-line)`;
/** So many percent of a role's surface, on paper. */
export const mixed = (role, percent) =>
  `color-mix(in srgb, ${surface(role)} ${percent}%, var(--paper))`;
const written = (role) => `color-mix(in srgb, ${line(role)} 75%, var(--ink))`; // dark enough to read

/** A power of ten as it is written: 10⁻¹², and 1 for 10⁰. */
export function tenTo(power) {
  const digits = [...String(Math.abs(power))].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]);
  return power ? `10${power < 0 ? "⁻" : ""}${digits.join("")}` : "1";
}

const rounded = (value, to = 100) => Math.round(value * to) / to;

/** A point, as it stands in a path. */
export const point = ([x, y]) => `${rounded(x, 10)} ${rounded(y, 10)}`;
/** Straight from point to point. */
export const path = (points) => `M${points.map(point).join("L")}`;

export class Drawing {
  things = [];

  /**
   * An element with these attributes and words. What has a `name` stays from one drawing to the next,
   * so that CSS can move it; what comes in a `layer` stands over those before. It is moved `to` a
   * point, and its `cells`, a strength each, lie side by side in a space of 1 × 1 that is `scaled`.
   */
  add(tag, { name = this.things.length, ...thing }, words = "") {
    this.things.push({ tag, name, words, ...thing });
  }

  /** Words whose middle is at height y. */
  text(x, y, words, { anchor = "middle", bold, quiet, role, size = 12, ...more } = {}) {
    const fill = role ? written(role) : `var(--${quiet ? "quiet" : "ink"})`;
    const style = { "font-weight": bold ? 600 : undefined, "font-size": rounded(size), fill };
    this.add("text", { to: [x, y + 0.35 * size], "text-anchor": anchor, ...style, ...more }, words);
  }

  line(points, { role = "plain", width = 1.5, dashed = false, lit = true, ...more } = {}) {
    const stroke = lit ? line(role) : "var(--faint)";
    const dash = { "stroke-dasharray": dashed === true ? "1 4" : dashed || undefined };
    const style = { fill: "none", stroke, "stroke-width": rounded(width), ...dash };
    this.add("path", { d: path(points), ...style, ...more });
  }

  segment(x, y, u, v, options = {}) {
    const ends = [
      [x, y],
      [u, v],
    ];
    this.line(ends, options);
  }

  /** The left axis and the one at the base, with marks: where one stands, and its words. */
  axes(left, top, base, right, { up = [], along = [] } = {}) {
    this.line([
      [left, top],
      [left, base],
      [right, base],
    ]);
    for (const [y, words] of up) this.text(left - 6, y, words, { anchor: "end", quiet: true });
    for (const [x, words] of along) this.text(x, base + 12, words, { quiet: true });
  }

  arrow(from, to, options = {}) {
    this.line([from, to], options);
    const angle = Math.atan2(to[1] - from[1], to[0] - from[0]);
    const length = 4 + 1.3 * (options.width ?? 1.5);
    const side = (turn) => [
      to[0] - length * Math.cos(angle + turn),
      to[1] - length * Math.sin(angle + turn),
    ];
    this.line([side(0.5), to, side(-0.5)], options);
  }

  dot(x, y, radius, role = "plain", { strength = 1, ...more } = {}) {
    const style = { fill: surface(role), "fill-opacity": strength, stroke: line(role) };
    this.add("circle", { cx: rounded(x), cy: rounded(y), r: radius, ...style, ...more });
  }

  box(x, y, w, h, role, { strength = 0.22, dashed = false, lit = true, r = 4, ...more } = {}) {
    const style = { fill: lit ? surface(role) : "none", "fill-opacity": strength };
    const stroke = lit ? line(role) : "var(--faint)";
    const dash = { "stroke-dasharray": dashed === true ? "2 3" : dashed || undefined };
    this.rect(x, y, w, h, { rx: r, ...style, stroke, ...dash, ...more });
  }

  rect(x, y, w, h, more) {
    const [width, height] = [w, h].map((each) => Math.max(0, rounded(each)));
    this.add("rect", { x: rounded(x), y: rounded(y), width, height, ...more });
  }

  ring(x, y, w, h, more = {}) {
    const style = { rx: 4, fill: "none", stroke: "var(--ink)", "stroke-width": 1.6 };
    this.rect(x - 1, y - 1, w + 2, h + 2, { ...style, ...more });
  }

  /** A number in its cell: the larger, the fuller coloured. `struck`: it may not be looked at. */
  cell(x, y, value, role, options = {}) {
    const { size = [34, 20], digits = 0, top = 1, struck = false, bold = false } = options;
    const place = [x + 1, y + 1, size[0] - 2, size[1] - 2];
    const full = Number.isFinite(value) ? Math.min(1, Math.abs(value) / top) : 0;
    const faint = { fill: "none", stroke: "var(--faint)" };
    const filled = { fill: surface(role), "fill-opacity": 0.1 + 0.4 * full };
    const look = role === "plain" ? faint : filled;
    this.rect(...place, {
      rx: 2.5,
      ...(struck ? { fill: "var(--faint)", "fill-opacity": 0.4 } : look),
    });
    if (struck) return this.segment(x + 5, y + size[1] - 4, x + size[0] - 5, y + 4);
    const words = Number.isFinite(value) ? shown(value, digits) : "NaN";
    const middle = [x + size[0] / 2, y + size[1] / 2];
    return this.text(...middle, words, { bold, "data-value": value });
  }

  /** A row of cells. */
  row(x, y, values, role, options = {}) {
    const [width] = options.size ?? [34, 20];
    values.forEach((value, i) => this.cell(x + i * width, y, value, role, options));
  }
}

/** Draws things into an SVG, in layers, and keeps those that stay. */
export class Picture {
  constructor(svg, layers = [""]) {
    this.nodes = new Map();
    this.layers = new Map(layers.map((name) => [name, svg.appendChild(element("g"))]));
  }

  /** Returns the things by their nodes. */
  show(things) {
    const named = new Map(things.map((thing) => [`${thing.tag} ${thing.name}`, thing]));
    if (named.size < things.length) throw new Error("two things of a picture have one name");
    for (const [name, node] of this.nodes)
      if (!named.has(name)) {
        node.remove();
        this.nodes.delete(name);
      }
    const drawn = new Map();
    const next = new Map([...this.layers].map(([name, { firstChild }]) => [name, firstChild]));
    for (const [name, thing] of named) {
      const { layer = "" } = thing;
      const node = this.nodes.get(name) ?? element(thing.tag);
      this.nodes.set(name, node);
      draw(node, thing);
      drawn.set(node, thing);
      if (node === next.get(layer)) next.set(layer, node.nextSibling);
      else this.layers.get(layer).insertBefore(node, next.get(layer));
    }
    return drawn;
  }
}

export const element = (tag) => document.createElementNS(NAMESPACE, tag);

const moved = ([x, y]) => `translate(${rounded(x)}px, ${rounded(y)}px)`;

function draw(
  node,
  { tag, name, layer, words, does, to, from, scaled, cells, delay, ...attributes },
) {
  const scale = scaled ? ` scale(${scaled.map((each) => rounded(each)).join(", ")})` : "";
  const style = [
    delay === undefined ? "" : `--delay: ${rounded(delay)}s`,
    from ? `--from: ${moved(from)}` : "",
    to ? `transform: ${moved(to)}${scale}` : "",
  ];
  dress(node, { ...attributes, style: style.filter(Boolean).join("; ") || undefined });
  if (cells) fill(node, cells, scaled[0]);
  else if (node.textContent !== words) node.textContent = words;
}

function dress(node, attributes) {
  for (const name of node.getAttributeNames())
    if (attributes[name] === undefined) node.removeAttribute(name);
  for (const [name, value] of Object.entries(attributes))
    if (value !== undefined && node.getAttribute(name) !== String(value))
      node.setAttribute(name, value);
}

/** Cells side by side, a unit wide each; between wide ones a hair is left. */
function fill(node, cells, wide) {
  while (node.childElementCount > cells.length) node.lastChild.remove();
  while (node.childElementCount < cells.length) node.append(element("rect"));
  const width = rounded(wide > 5 ? 1 - 0.8 / wide : 1.04);
  Array.from(cells, (strength, i) =>
    dress(node.children[i], { x: i, width, height: 1, "fill-opacity": rounded(strength) }),
  );
}
