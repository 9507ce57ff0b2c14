"""The Transformer, executed: one readable module for each chapter of the book."""
