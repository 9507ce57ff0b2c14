"""The checks of what the reader writes, in a module for each chapter."""
