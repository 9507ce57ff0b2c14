"""What chapters and experiments use: executed claims, source on show, tables, figures."""

from transformer_book import figures
from transformer_book.claims import claim, close
from transformer_book.descent import minimise
from transformer_book.source import show
from transformer_book.tables import table

__all__ = ["claim", "close", "figures", "minimise", "show", "table"]
