"""The attention explorer: every head of a model on a few sentences, in one piece of HTML."""

from transformer_book.explorer.explored import Explored, from_model
from transformer_book.explorer.page import explore

__all__ = ["Explored", "explore", "from_model"]
