"""What chapters and experiments use: executed claims, source on show, gradient descent, figures."""

from transformer_book import figures
from transformer_book.claims import claim, close
from transformer_book.descent import minimise
from transformer_book.source import show

__all__ = ["claim", "close", "figures", "minimise", "show"]
