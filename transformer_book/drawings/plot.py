"""A plot of matplotlib's as a drawing: its words are text, in the drawings' letters and colours."""

import io
import re
from itertools import groupby
from typing import Any

from matplotlib.figure import Figure

from transformer_book.drawings.canvas import SANS, WIDE
from transformer_book.drawings.colours import INK, INKS, ROLES, at_night
from transformer_book.drawings.svg import SERIF

# What matplotlib measures words with; DejaVu, which it brings, has the signs that these lack.
FONTS: Any = {
    "font.family": ["sans-serif", "DejaVu Sans"],
    "font.sans-serif": [*SANS.split(",")[:-1], "DejaVu Sans"],
    "font.serif": [*SERIF.split(",")[:-1], "DejaVu Serif"],
    "mathtext.cal": "serif",
    "mathtext.fontset": "custom",
    "mathtext.it": "serif:italic",
    "svg.fonttype": "none",
    "svg.hashsalt": "a plot",
}
NOTHING = dict.fromkeys(("Creator", "Date", "Format", "Type"))
NIGHT = {INKS[role.surface]: role.dark_line for role in ROLES.values() if role.surface in INKS}
NIGHT |= at_night() | {"#000000": at_night()[INK]}
NUMBER = re.compile(r"(?:matrix|scale)\([^)]*\)|-?\d+\.\d{3,}")
SPAN = re.compile(r'<tspan x="([^"]*)" y="([^"]*)" style="([^"]*)">([^<]*)</tspan>')
MARK = re.compile(r'<path id="(\w+)" (d="[^"]*")[^>]*>')
USED = re.compile(r'<use xlink:href="#(\w+)" x="([^"]*)" y="([^"]*)"')
DISC = re.compile(r'd="M 0 ([\d.]+)\s+C')


def svg_of(figure: Figure) -> str:
    """The plot as SVG, the same characters every time, as wide as a drawing.

    GitHub drops style sheets, and what is used from elsewhere; so colours stand in attributes.
    """
    drawn = io.StringIO()
    figure.savefig(drawn, format="svg", metadata=NOTHING)
    _, frame, plot = re.split(r'<svg [^>]*(viewBox="[^"]*")[^>]*>', drawn.getvalue())
    plot = re.sub(r"\A.*?</defs>", "", plot, flags=re.DOTALL)  # a style of all pages around
    # A mark is drawn wherever it is used.
    marks = dict(MARK.findall(plot))
    plot = re.sub(r"<defs>\s*<path[^>]*>\s*</defs>", "", plot)
    plot = USED.sub(lambda use: mark_at(marks[use[1]], use[2], use[3]), plot)
    plot = re.sub(r'(?<=<g) id="[^"]*"| transform="rotate\(-0 [^"]*"', "", plot)
    # Words: a formula's letters become lines again, in the letters of the drawings.
    plot = re.sub(r"<text([^>]*)>\s*((?:<tspan[^>]*>[^<]*</tspan>\s*)+)", joined, plot)
    plot = re.sub(r"font-family: '[^;\"]*Serif[^;\"]*", f"font-family: {SERIF}", plot)
    plot = re.sub(r"font-family: '[^;\"]*(?:; )?", "", plot)
    # Attributes for styles, two places after the point, a line for each element.
    plot = re.sub(r'style="([^"]*)"', as_attributes, plot)
    plot = re.sub(r'="[^"]*"', lambda value: NUMBER.sub(shortened, value[0]), plot)
    plot = re.sub(r"\s*\n\s*(?=[MLCQz\d\"]|</svg>)", " ", plot)
    plot = re.sub(r"\n\s*(?:<g/>\s*)*", "\n", plot.strip())
    return f"{opening(frame, plot)}\n{plot}"


def mark_at(shape: str, x: str, y: str) -> str:
    """The beginning of the mark's element."""
    disc = DISC.match(shape)
    if disc:
        return f'<circle cx="{x}" cy="{y}" r="{disc[1]}"'
    return f'<path {shape} transform="translate({x} {y})"'


def as_attributes(style: re.Match) -> str:
    said = dict(each.split(":") for each in style[1].split(";") if each.strip())  # the last counts
    return " ".join(f'{name.strip()}="{value.strip()}"' for name, value in said.items())


def shortened(number: re.Match) -> str:
    return number[0] if "(" in number[0] else f"{float(number[0]):.2f}"


def joined(text: re.Match) -> str:
    """A line of words, of which a formula has made letters: each with its place, by their style."""
    letters = sorted(SPAN.findall(text[2]), key=lambda letter: float(letter[0]))
    spans = ""
    for (y, style), run in groupby(letters, key=lambda letter: letter[1:3]):
        xs, _, _, words = zip(*run, strict=True)
        spans += f'<tspan x="{xs[0]}" y="{y}" style="{style}">{"".join(words)}</tspan>'
    return f"<text{text[1]}>{spans}"


def opening(frame: str, plot: str) -> str:
    """The element, and the night for those colours that are in the plot."""
    width, height = map(float, re.findall(r"[\d.]+", frame)[2:])
    rules = [f".plot{{fill:{NIGHT[INK]}}}"]
    for light, dark in NIGHT.items():
        for name in ("fill", "stroke"):
            if (there := f'{name}="{light.lower()}"') in plot:
                rules.append(f".plot [{there}]{{{name}:{dark}}}")
    size = f"width='{WIDE}' height='{WIDE * height / width:.0f}'"
    return (
        "<svg xmlns='http://www.w3.org/2000/svg' xmlns:xlink='http://www.w3.org/1999/xlink'"
        f" class='plot' {frame} {size} style='max-width:100%;height:auto' role='img'"
        f" font-family='{SANS}' fill='{INK}' stroke-linejoin='round'>\n"
        f"<style>@media(prefers-color-scheme:dark){{{''.join(rules)}}}</style>"
    )
