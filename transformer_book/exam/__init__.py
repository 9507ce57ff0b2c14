"""The exam: the reader writes the Transformer again from an empty file, and is told what is right.

``python -m transformer_book.exam mine.py`` on a command line, ``exam("mine.py")`` in a notebook.
The names and shapes that it asks for are in the table of ``chapters/the_exam.ipynb``.
"""

from transformer_book.exam.runner import exam

__all__ = ["exam"]
