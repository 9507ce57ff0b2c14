"""Drawings of how the machine works, in one visual language (CONTRIBUTING, "A drawing")."""

from transformer.book.drawings.canvas import Drawing, Place
from transformer.book.drawings.colours import ROLES
from transformer.book.drawings.model_map import model_map
from transformer.book.drawings.palette import palette_sheet

__all__ = ["ROLES", "Drawing", "Place", "model_map", "palette_sheet"]
