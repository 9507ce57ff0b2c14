"""The notation shows the colours that the drawings have."""

import re
from xml.etree import ElementTree

from tools.palette import PALETTE, palette, save_palette
from transformer_book.drawings.colours import NAMED


def test_the_stored_palette_is_the_drawings():
    assert PALETTE.read_text(encoding="utf-8") == palette(), "run make chapters"


def test_it_is_written_where_it_is_asked_for(tmp_path):
    save_palette(tmp_path / "palette.svg")
    assert (tmp_path / "palette.svg").read_text(encoding="utf-8") == palette()


def test_the_notation_shows_it_and_names_each_colour_to_those_who_do_not_see_it():
    page = PALETTE.with_name("notation.md").read_text(encoding="utf-8")
    shown = re.findall(rf"^!\[(.+)\]\({PALETTE.name}\)$", page, flags=re.M)
    assert shown == [ElementTree.fromstring(palette()).get("aria-label")]
    assert all(name in shown[0] for name in NAMED)
