// The book's drawings, as transformer_book/drawings makes them, in the page: 350 units wide, text of
// 12 units or more, a role for a colour. The colours of the roles stand in living.css.

import { shown } from "../elements.js";

const NAMESPACE = "http://www.w3.org/2000/svg";
const WIDTH = 350;
const ROLES = ["word", "query", "key", "value", "memory", "position", "loss", "mask", "plain"];

export const surface = (role) => `var(--${known(role)})`;
const written = (role) => `color-mix(in srgb, ${line(role)} 75%, var(--ink))`; // dark enough to read
export const line = (role) => `var(--${known(role)}-line)`;

function known(role) {
  if (!ROLES.includes(role)) throw new Error(`role must be one of ${ROLES}, got ${role}`);
  return role;
}

export class Drawing {
  constructor(height, alt) {
    this.svg = document.createElementNS(NAMESPACE, "svg");
    this.svg.setAttribute("viewBox", `0 0 ${WIDTH} ${height}`);
    this.svg.setAttribute("role", "img");
    this.svg.setAttribute("aria-label", alt);
  }

  clear() {
    this.svg.replaceChildren();
  }

  add(tag, attributes, content = "") {
    const made = document.createElementNS(NAMESPACE, tag);
    for (const [name, value] of Object.entries(attributes))
      if (value !== null) made.setAttribute(name, value);
    made.textContent = content;
    this.svg.append(made);
    return made;
  }

  text(
    x,
    y,
    words,
    { anchor = "middle", bold = false, quiet = false, role = null, size = 12 } = {},
  ) {
    const fill = role ? written(role) : quiet ? "var(--quiet)" : "var(--ink)";
    const style = { "font-weight": bold ? 700 : null, "font-size": size };
    return this.add(
      "text",
      { x, y: y + 0.35 * size, "text-anchor": anchor, fill, ...style },
      words,
    );
  }

  line(points, { role = "plain", width = 1.5, dashed = false, lit = true } = {}) {
    const d = points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
    const stroke = lit ? line(role) : "var(--faint)";
    const dash = { "stroke-dasharray": dashed === true ? "1 4" : dashed || null };
    return this.add("path", { d, fill: "none", stroke, "stroke-width": width, ...dash });
  }

  segment(x, y, u, v, options = {}) {
    return this.line(
      [
        [x, y],
        [u, v],
      ],
      options,
    );
  }

  /** The left axis and the one at the base. */
  axes(left, top, base, right) {
    this.line([
      [left, top],
      [left, base],
      [right, base],
    ]);
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

  dot(x, y, radius, role, opacity = 1) {
    const style = { fill: surface(role), "fill-opacity": opacity, stroke: line(role) };
    return this.add("circle", { cx: x, cy: y, r: radius, ...style });
  }

  box(x, y, width, height, role, { strength = 0.22, dashed = false, lit = true } = {}) {
    const style = { fill: lit ? surface(role) : "none", "fill-opacity": strength };
    const stroke = lit ? line(role) : "var(--faint)";
    const dash = { "stroke-dasharray": dashed ? "2 3" : null };
    return this.add("rect", { x, y, width, height, rx: 4, ...style, stroke, ...dash });
  }

  ring(x, y, width, height) {
    const where = { x: x - 1, y: y - 1, width: width + 2, height: height + 2, rx: 4 };
    this.add("rect", { ...where, fill: "none", stroke: "var(--ink)", "stroke-width": 1.6 });
  }

  /** A number in its cell: the larger, the fuller coloured. `struck`: it may not be looked at. */
  cell(
    x,
    y,
    value,
    role,
    { size = [34, 20], digits = 0, top = 1, struck = false, bold = false } = {},
  ) {
    const where = { x: x + 1, y: y + 1, width: size[0] - 2, height: size[1] - 2, rx: 2.5 };
    const full = Number.isFinite(value) ? Math.min(1, Math.abs(value) / top) : 0;
    if (struck) this.add("rect", { ...where, fill: "var(--faint)", "fill-opacity": 0.4 });
    else if (role === "plain") this.add("rect", { ...where, fill: "none", stroke: "var(--faint)" });
    else this.add("rect", { ...where, fill: surface(role), "fill-opacity": 0.1 + 0.4 * full });
    if (struck) this.segment(x + 5, y + size[1] - 4, x + size[0] - 5, y + 4);
    else this.number(x + size[0] / 2, y + size[1] / 2, value, digits, bold);
  }

  number(x, y, value, digits, bold) {
    const words = Number.isFinite(value) ? shown(value, digits) : "NaN";
    this.text(x, y, words, { bold }).setAttribute("data-value", value);
  }

  /** A row of cells, whose places are given back: the middle of each. */
  row(x, y, values, role, options = {}) {
    const [width] = options.size ?? [34, 20];
    values.forEach((value, i) => this.cell(x + i * width, y, value, role, options));
    return values.map((_, i) => x + (i + 0.5) * width);
  }

  /** A clock; a hand is an angle, clockwise from the top, a role, and a length up to 1. */
  dial(x, y, radius, ...hands) {
    this.add("circle", { cx: x, cy: y, r: radius, fill: "var(--paper)", stroke: "var(--faint)" });
    if (hands.length === 2) this.sector(x, y, radius / 2, hands[0][0], hands[1][0]);
    for (const [angle, role, length = 1] of hands) {
      const tip = (radius - 1) * length;
      this.arrow([x, y], [x + tip * Math.sin(angle), y - tip * Math.cos(angle)], {
        role,
        width: 2,
      });
    }
  }

  sector(x, y, radius, from, to) {
    const at = (angle) => `${x + radius * Math.sin(angle)} ${y - radius * Math.cos(angle)}`;
    const way = Math.sin(to - from) > 0 ? 1 : 0;
    const d = `M${x} ${y}L${at(from)}A${radius} ${radius} 0 0 ${way} ${at(to)}Z`;
    this.add("path", { d, fill: surface("word"), "fill-opacity": 0.3 });
  }
}
