"""Lines with each character that one program takes for text and another does not."""

import sys
import unicodedata


def odd_lines() -> list[str]:
    """All controls, formats and white space of Unicode, and each sixteenth mark.

    One a line, between two words and at both ends; \\n, \\r and NUL, which are no part of a line,
    are left out.
    """
    kinds: dict[str, list[str]] = {}
    for c in map(chr, range(1, sys.maxunicode + 1)):
        kinds.setdefault(unicodedata.category(c), []).append(c)
    odd = [c for kind in ("Cc", "Cf", "Zs", "Zl", "Zp") for c in kinds[kind] if c not in "\n\r"]
    return [f"{c}the{c}dog {c}" for c in [*odd, *kinds["Mn"][::16]]]
