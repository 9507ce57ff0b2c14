"""Cuts the site's fonts to the characters that a book in English with formulas needs.

    python -m website fonts FOLDER

FOLDER holds Source Serif 4 and STIX Two Math as web fonts (npm: ``@fontsource/source-serif-4`` and
``@fontsource/stix-two-math``). It takes brotli besides fontTools. What a font lacks, the reader's
own fonts show.
"""

import sys
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTFont

from website import ROOT

FONTS = ROOT / "website" / "static" / "fonts"
# English, French and German. With this each font is under 14,600 bytes, the first that a server
# sends without waiting for an answer.
LATIN = (
    "U+0020-007E,U+00A0,U+00A7,U+00A9,U+00AB,U+00B0-00B2,U+00B5,U+00B7,U+00BB,U+00BD,U+00C0,U+00C4,"
    "U+00C7,U+00C9,U+00D6,U+00D7,U+00DC,U+00DF-00E2,U+00E4,U+00E7-00EB,U+00EE,U+00EF,U+00F3,U+00F4,"
    "U+00F6,U+00F9,U+00FB,U+00FC,U+0153,U+2013,U+2014,U+2018,U+2019,U+201C-201E,U+2026,U+2212"
)
LETTERS = "U+0020-007E,U+00A0,U+00AC,U+00AF,U+00B1,U+00B7,U+00D7,U+0131,U+0237,U+0302-0304"
GREEK = "U+0391-03A9,U+03B1-03C9,U+03D1,U+03D5,U+03D6,U+03F1,U+03F5"
ITALIC = "U+1D434-1D467,U+210E,U+1D6E2-1D71B,U+1D400-1D433"  # italic, its h, Greek; bold
SCRIPT = "U+1D49C-1D4B5,U+212C,U+2130,U+2131,U+210B,U+2110,U+2112,U+2133,U+211B"
SIGNS = (
    "U+2016,U+2020,U+2026,U+2032,U+2033,U+2061-2064,U+2102,U+2113,U+2115,U+211D,U+2124,U+2190-2194,"
    "U+21D0-21D4,U+2200,U+2202,U+2203,U+2205-2209,U+220F,U+2211,U+2212,U+2213,U+2215,U+2216,U+2218,"
    "U+2219,U+221A,U+221D,U+221E,U+2223,U+2225,U+2227-222B,U+2234,U+223C,U+2243,U+2245,U+2248,"
    "U+2250,U+2254,U+2260,U+2261,U+2264,U+2265,U+226A,U+226B,U+2282,U+2286,U+2295,U+2297,U+2299,"
    "U+22A4,U+22A5,U+22C5,U+22EE,U+22EF,U+22F1,U+2308-230B,U+23DE,U+23DF,U+27E8,U+27E9"
)
NAMES = (1, 3, 4, 6)  # of the family and of the font
CUTS = {
    "source-serif-4-latin-400-normal": ("serif", LATIN, "kern,liga,mark"),
    "source-serif-4-latin-400-italic": ("serif-italic", LATIN, "kern,liga,mark"),
    "source-serif-4-latin-600-normal": ("serif-bold", LATIN, "kern,liga,mark"),
    "stix-two-math-latin-400-normal": (
        "math",
        ",".join((LETTERS, GREEK, ITALIC, SCRIPT, SIGNS)),
        "ss04,dtls",
    ),
}


def cut(source: Path, target: Path, characters: str, features: str) -> None:
    write_cut(TTFont(source), target, characters, features)


def write_cut(font: TTFont, target: Path, characters: str, features: str) -> None:
    """Writes the font under a name of its own, as its licence asks of a font that was changed."""
    options = subset.Options()
    options.layout_features = features.split(",")
    options.flavor, options.hinting = "woff2", False
    options.name_IDs = [0, 1, 2, 3, 4, 6, 13, 14]
    cutter = subset.Subsetter(options)
    cutter.populate(unicodes=subset.parse_unicodes(characters))
    cutter.subset(font)
    for record in font["name"].names:
        if record.nameID in NAMES:
            record.string = f"Book {target.stem}"
    subset.save_font(font, target, options)


def cut_root(source: Path, target: Path) -> None:
    """The root of one line alone. A browser gives a root the room of the widest that the font has,
    so with its larger ones each small root would have a gap behind it.
    """
    font = TTFont(source)
    variants = font["MATH"].table.MathVariants
    place = variants.VertGlyphCoverage.glyphs.index(font.getBestCmap()[0x221A])
    del variants.VertGlyphCoverage.glyphs[place], variants.VertGlyphConstruction[place]
    variants.VertGlyphCount -= 1
    write_cut(font, target, "U+221A", "")


def cut_fonts(folder: str) -> int:
    FONTS.mkdir(exist_ok=True)
    for name, (target, characters, features) in CUTS.items():
        found = sorted(Path(folder).rglob(f"{name}.woff2"))
        if not found:
            sys.exit(f"{folder} has no {name}.woff2")
        cut(found[0], FONTS / f"{target}.woff2", characters, features)
        print(f"{target}.woff2: {(FONTS / f'{target}.woff2').stat().st_size / 1024:.1f} KB")
    cut_root(FONTS / "math.woff2", FONTS / "root.woff2")
    return 0
