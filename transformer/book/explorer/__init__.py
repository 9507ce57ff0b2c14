"""The attention explorer: every head of a model on a few sentences, in one piece of HTML."""

from transformer.book.explorer.page import Explored, explore, from_model

__all__ = ["Explored", "explore", "from_model"]
