"""A trained model for the tools of others: what Hugging Face and CTranslate2 read (chapter 11)."""

from transformer.export.marian import save_marian

__all__ = ["save_marian"]
