"""What stands in the reader's file under a name that is near the one that the exam looks for."""

from difflib import SequenceMatcher
from types import ModuleType

ALIKE = 0.8  # of SequenceMatcher's ratio; train_step and translate have 0.78


def near(module: ModuleType, name: str) -> list[str]:
    """The functions and classes of the module's own whose names are near ``name``, in order.

    Near are another spelling, the beginning (``Multihead``), and the capitals (``MHA``).
    """
    own = [
        each
        for each, found in vars(module).items()
        if callable(found) and getattr(found, "__module__", None) == module.__name__
    ]
    return [each for each in own if each != name and _is_near(each, name)]


def _is_near(one: str, other: str) -> bool:
    capitals = "".join(letter for letter in other if letter.isupper())
    a, b = (name.replace("_", "").lower() for name in (one, other))
    if not a or a[0] != b[0]:  # EncoderLayer and DecoderLayer
        return False
    begins = min(len(a), len(b)) > 3 and (a.startswith(b) or b.startswith(a))
    alike = SequenceMatcher(None, a, b).ratio() >= ALIKE
    return begins or alike or (len(capitals) > 1 and one.upper() == capitals)
