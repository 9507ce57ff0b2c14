"""One colour for one thing, in the whole book, on white paper and on black."""

from typing import NamedTuple

INK, QUIET, FAINT, PAPER = "#1a1a1a", "#595959", "#bdbdbd", "#ffffff"
# Okabe and Ito's palette without its yellow, which is too faint on white.
BLUE, ORANGE, GREEN, RED, PURPLE, SKY, GREY, BLACK = (
    "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#7F7F7F", INK,
)  # fmt: skip
# Of the same hue, for words: on white they have a contrast of 4.5 or more, as small letters need.
INKS = {
    ORANGE: "#8A6100", GREEN: "#007A58", RED: "#A84A00", PURPLE: "#A0537F", SKY: "#1B6F9F",
    GREY: QUIET,
}  # fmt: skip


class Role(NamedTuple):
    """How a thing is coloured: its surface and its lines, by day and by night."""

    surface: str
    line: str  # darker than the surface, for a contrast of 3 with the paper
    dark_surface: str
    dark_line: str


ROLES = {
    "word": Role(GREY, "#707070", GREY, "#949494"),
    "query": Role(BLUE, "#00639C", "#1F8ACB", "#3D9AD6"),
    "key": Role(ORANGE, "#B27800", "#B87F00", "#E69F01"),
    "value": Role(GREEN, "#008A64", GREEN, "#1FB98C"),
    "memory": Role(PURPLE, "#B0558A", "#B8668F", "#CC79A8"),
    "position": Role(SKY, "#2A8AC4", "#4192B2", "#7CCFEF"),
    "loss": Role(RED, "#D35D00", RED, "#EE7A22"),
    "mask": Role(FAINT, INK, "#5c6370", "#f2f2f2"),
    "plain": Role(PAPER, "#767676", "#121212", "#949494"),
}
NAMED = {  # what has which role; the notation's palette shows this table
    "words, tokens": "word",
    "queries; attention weights; the decoder's state": "query",
    "keys": "key",
    "values; attention's output": "value",
    "memory; the encoder's states": "memory",
    "positions": "position",
    "loss; the word that is wanted": "loss",
    "masked": "mask",
    "scores and all else": "plain",
}


def at_night() -> dict[str, str]:
    """The dark colour that replaces each light one that is not the same in both."""
    pairs = {QUIET: "#b8b8b8"}
    for role in ROLES.values():
        pairs |= {role.surface: role.dark_surface, role.line: role.dark_line}
    return {light: dark for light, dark in pairs.items() if light != dark}


def style_sheet(day: str, night: str) -> str:
    """The palette as CSS custom properties, ``--ink``, ``--query``, ``--query-line`` and so on.

    What the selector ``day`` selects has the light ones, what ``night`` selects the dark ones, but
    for paper, which is white. The site's parts and the explorer begin with this sheet.
    """
    light = {"ink": INK, "quiet": QUIET, "faint": FAINT, "paper": PAPER}
    dark = {name: at_night()[colour] for name, colour in light.items()}
    for name, role in ROLES.items():
        light |= {name: role.surface, f"{name}-line": role.line}
        dark |= {name: role.dark_surface, f"{name}-line": role.dark_line}
    rules = (
        f"{selector} {{ {' '.join(f'--{n}: {c.lower()};' for n, c in colours.items())} }}"
        for selector, colours in ((day, light), (night, dark))
    )
    return "{}\n@media not print {{ {} }}\n".format(*rules)
