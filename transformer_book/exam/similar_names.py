"""Whether a name in the reader's file is near the one that the exam looks for."""

from difflib import SequenceMatcher

ALIKE = 0.8  # of SequenceMatcher's ratio; train_step and translate have 0.78


def similar(name: str, wanted: str) -> bool:
    """Another spelling, the beginning (``Multihead``), or the capitals (``MHA``)."""
    capitals = "".join(letter for letter in wanted if letter.isupper())
    a, b = (text.replace("_", "").lower() for text in (name, wanted))
    if name == wanted or not a or a[0] != b[0]:  # EncoderLayer and DecoderLayer
        return False
    begins = min(len(a), len(b)) > 3 and (a.startswith(b) or b.startswith(a))
    alike = SequenceMatcher(None, a, b).ratio() >= ALIKE
    return begins or alike or (len(capitals) > 1 and name.upper() == capitals)
