"""The palette as a drawing, for the notation."""

from transformer_book.drawings.canvas import Drawing
from transformer_book.drawings.colours import NAMED


def palette_sheet() -> Drawing:
    """What has which colour: as cells, as cells that are followed, as a box and as an arrow."""
    d = Drawing(44 + 42 * len(NAMED), "The colours: " + "; ".join(NAMED))
    d.text(154, 12, "followed", quiet=True)
    for i, (name, role) in enumerate(NAMED.items()):
        y = 48 + 42 * i
        mask = [[False] * 3] if role == "mask" else None
        d.text(4, y - 10, name, anchor="start")
        d.cells(34, y, [[1, 2, 3]], role, mask=mask)
        d.cells(124, y, [[1, 2, 3]], role, mask=mask, follow=0)
        d.box(214, y, 50, 18, "box", role)
        d.arrow((284, y + 9), (332, y + 9), role=role)
    return d
