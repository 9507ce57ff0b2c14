"""The palette as a picture, for the notation's page: written by ``make chapters``."""

from pathlib import Path

from transformer.files import replace_file
from transformer_book.drawings import palette_sheet

PALETTE = Path(__file__).resolve().parents[1] / "appendix" / "palette.svg"


def palette() -> str:
    """The colours of the drawings, as SVG."""
    return palette_sheet()._repr_svg_() + "\n"


def save_palette(path: Path = PALETTE) -> None:
    replace_file(path, palette())
