"""The notation shows the colours that the drawings have."""

import re

import pytest

from tools.chapters import ROOT
from tools.palette import PALETTE, palette
from transformer_book.drawings.colours import FAINT, INK, PAPER, QUIET, ROLES, style_sheet


def test_the_stored_palette_is_the_drawings():
    assert PALETTE.read_text(encoding="utf-8") == palette(), "run make chapters"


def properties(rule):
    return dict(re.findall(r"--([\w-]+): (#\w+);", rule))


def test_a_style_sheet_of_it_has_each_colour_by_day_and_by_night_and_paper_is_day():
    sheet = style_sheet(".a", "html .b")
    day, night = re.fullmatch(
        r"\.a \{ (.*?) \}\n@media not print \{ html \.b \{ (.*?) \} \}\n", sheet
    ).groups()
    light, dark = properties(day), properties(night)
    assert light.keys() == dark.keys()
    for name, role in ROLES.items():
        stored = [light[name], light[f"{name}-line"], dark[name], dark[f"{name}-line"]]
        assert stored == [colour.lower() for colour in role]
    assert [light[n] for n in ("ink", "quiet", "faint", "paper")] == [INK, QUIET, FAINT, PAPER]
    assert (dark["ink"], dark["quiet"]) == ("#f2f2f2", "#b8b8b8")
    assert (dark["faint"], dark["paper"]) == (dark["mask"], dark["plain"])


PARTS = ("website/parts/living", "website/parts/translator", "transformer_book/explorer")


@pytest.mark.parametrize("part", PARTS)
def test_a_part_uses_colours_that_the_palette_or_its_own_style_sheet_has(part):
    (path,) = [p for p in (ROOT / part).glob("*.css") if p.stem != "room"]
    own = path.read_text(encoding="utf-8")
    scripts = "".join(p.read_text(encoding="utf-8") for p in (ROOT / part).glob("*.js"))
    named = properties(style_sheet("a", "b")).keys()
    said = set(re.findall(r"--([\w-]+):", own))
    defined = named | said | set(re.findall(r'"--([\w-]+)"', scripts))
    used = set(re.findall(r"var\(--([\w-]+)", own))
    assert {name for name in used - defined if not name.startswith("book-")} == set()
    assert not named & said - {"paper"}  # which is a box's at night
