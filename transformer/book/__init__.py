"""What only chapters use: executed claims, source on show, gradient descent, one figure style."""

from transformer.book import figures
from transformer.book.claims import claim, close
from transformer.book.descent import minimise
from transformer.book.source import show

__all__ = ["claim", "close", "figures", "minimise", "show"]
