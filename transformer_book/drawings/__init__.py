"""Drawings of how the machine works, in one visual language (docs/drawings.md)."""

from transformer_book.drawings.canvas import Drawing, Place
from transformer_book.drawings.colours import ROLES
from transformer_book.drawings.model_map import model_map
from transformer_book.drawings.palette import palette_sheet

__all__ = ["ROLES", "Drawing", "Place", "model_map", "palette_sheet"]
