"""One style for plots: the drawings' letters, width and colours, by day and by night."""

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
from IPython.core.interactiveshell import InteractiveShell
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib_inline.backend_inline import set_matplotlib_formats
from torch import Tensor

from transformer_book.drawings.colours import (
    BLACK,
    BLUE,
    FAINT,
    GREEN,
    GREY,
    INK,
    INKS,
    ORANGE,
    PURPLE,
    RED,
    SKY,
)
from transformer_book.drawings.plot import FONTS, svg_of

__all__ = [
    "BLACK", "BLUE", "GREEN", "GREY", "INKS", "ORANGE", "PURPLE", "RED", "SIGNED", "SKY", "WIDTH",
    "heatmap", "ink", "use_style",
]  # fmt: skip

WIDTH = 5.6  # inches: the site shows them as wide as a drawing
# The fuller, the larger; one sees the paper through them, white by day and black by night.
SHARES = LinearSegmentedColormap.from_list("shares", [BLUE + "0c", BLUE + "b0"])
SIGNED = LinearSegmentedColormap.from_list(
    "signed", [(0, BLUE), (0.5, BLUE + "00"), (0.5, RED + "00"), (1, RED)]
)


def use_style() -> None:
    """Set matplotlib's defaults for a chapter, whose plots are SVG from here on."""
    plt.rcParams.update(plt.rcParamsDefault | {"backend": plt.rcParams["backend"]})
    plt.rcParams.update(FONTS)
    plt.rcParams.update(
        {
            "axes.axisbelow": True,
            "axes.edgecolor": INK,
            "axes.grid": True,
            "axes.labelcolor": INK,
            "axes.prop_cycle": plt.cycler(color=[BLUE, ORANGE, GREEN, RED, PURPLE, SKY, GREY]),
            "axes.spines.right": False,
            "axes.spines.top": False,
            "axes.titlesize": "medium",
            "figure.constrained_layout.use": True,
            "figure.dpi": 100,
            "figure.facecolor": "white",
            "figure.figsize": (WIDTH, 3.4),
            "figure.labelsize": "medium",
            "font.size": 12,
            "grid.alpha": 0.4,
            "grid.color": FAINT,
            "legend.frameon": False,
            "lines.linewidth": 2,
            "text.color": INK,
            "xtick.color": INK,
            "ytick.color": INK,
        }
    )
    set_matplotlib_formats()  # none of its own; last, for what loads the backend sets them anew
    shown = InteractiveShell.instance().display_formatter
    if shown is not None:
        shown.formatters["image/svg+xml"].for_type(Figure, svg_of)


def ink(color: str) -> str:
    """What words about a line or an area of this ``color`` of the palette are written in."""
    return INKS.get(color, color)


def heatmap(
    axes: Axes,
    matrix: Float[Tensor, "T S"],
    rows: Sequence[str | int] = (),
    columns: Sequence[str | int] = (),
    *,
    digits: int | None = 2,
    **options,
) -> None:
    """Draw ``matrix`` with a row for each query and a column for each key.

    ``rows`` and ``columns`` are the tick labels; ``axes.set_xticks(places, labels)`` replaces them,
    both at once. Each cell carries its value with so many ``digits`` after the point; None leaves
    the numbers out. ``options`` go to ``imshow``.
    """
    pixels = matrix.detach().float().cpu().numpy()
    look: dict[str, Any] = {"aspect": "auto", "cmap": SHARES, "interpolation": "none"}
    axes.imshow(pixels, **(look | options))
    axes.grid(False)
    axes.set_xticks(range(len(columns)), [str(label) for label in columns])
    axes.set_yticks(range(len(rows)), [str(label) for label in rows])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    if digits is None:
        return
    for t, row in enumerate(matrix.tolist()):
        for s, value in enumerate(row):
            text = f"{round(value, digits) + 0.0:.{digits}f}"  # + 0.0 turns -0.0 into 0.0
            axes.text(s, t, text, ha="center", va="center")
