"""What only chapters use: executed claims, source on show, one figure style."""

from transformer.book import figures
from transformer.book.claims import claim
from transformer.book.source import show

__all__ = ["claim", "figures", "show"]
