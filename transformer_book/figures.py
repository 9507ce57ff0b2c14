"""One figure style: safe for colour-blind readers, legible on a phone, sharp on any screen."""

from collections.abc import Sequence
from functools import partial

import matplotlib.pyplot as plt
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib_inline.backend_inline import set_matplotlib_formats
from torch import Tensor

# Okabe and Ito's palette without its yellow, which is too faint on white.
BLUE, ORANGE, GREEN, RED, PURPLE, SKY, GREY, BLACK = (
    "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#7F7F7F", "#000000",
)  # fmt: skip
# Of the same hue, for words: on white they have a contrast of 4.5 or more, as small letters need.
INKS = {
    ORANGE: "#8A6100", GREEN: "#007A58", RED: "#A84A00", PURPLE: "#A0537F", SKY: "#1B6F9F",
    GREY: "#595959",
}  # fmt: skip
WIDTH = 5.6  # inches; a phone shows it at a good half of its size, so 12 pt stays readable


def use_style() -> None:
    """Set matplotlib's defaults for a chapter; opaque white, so that dark mode does no harm."""
    set_matplotlib_formats("retina")
    plt.rcParams.update(plt.rcParamsDefault | {"backend": plt.rcParams["backend"]})
    plt.rcParams.update(
        {
            "axes.axisbelow": True,
            "axes.grid": True,
            "axes.prop_cycle": plt.cycler(color=[BLUE, ORANGE, GREEN, RED, PURPLE, SKY, GREY]),
            "axes.spines.right": False,
            "axes.spines.top": False,
            "figure.constrained_layout.use": True,
            "figure.dpi": 100,
            "figure.facecolor": "white",
            "figure.figsize": (WIDTH, 3.4),
            "font.size": 12,
            "grid.color": "#E5E5E5",
            "image.cmap": "Blues",
            "legend.frameon": False,
            "lines.linewidth": 2,
            "savefig.facecolor": "white",
        }
    )


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
    image = axes.imshow(pixels, **({"aspect": "auto"} | options))
    axes.grid(False)
    axes.set_xticks(range(len(columns)), [str(label) for label in columns])
    axes.set_yticks(range(len(rows)), [str(label) for label in rows])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    if digits is None:
        return
    for t, row in enumerate(matrix.tolist()):
        for s, value in enumerate(row):
            red, green, blue, _ = image.cmap(image.norm(value))
            color = "white" if 0.3 * red + 0.6 * green + 0.1 * blue < 0.55 else "black"
            text = f"{round(value, digits) + 0.0:.{digits}f}"  # + 0.0 turns -0.0 into 0.0
            axes.text(s, t, text, ha="center", va="center", color=color, fontsize=11)


def matrices(axes: Axes, *parts: str | tuple[str, tuple[str, int], tuple[str, int]]) -> None:
    """Draw a matrix formula as rectangles, from left to right.

    A part is an operator, or a matrix as (name, (row axis, size), (column axis, size)); the
    sizes are drawn to scale, so a shared axis is seen to fit.
    """
    x, gap = 0.0, 1.3
    for part in parts:
        if isinstance(part, str):
            slot = 3.6 if len(part) > 1 else 2.2
            axes.text(x + slot / 2 - 0.85, 0, part, ha="center", va="center", fontsize=11)
            x += slot
            continue
        name, (row_axis, height), (column_axis, width) = part
        axes.add_patch(
            plt.Rectangle((x, -height / 2), width, height, fc="#DCEBF5", ec=BLUE, lw=1.5)
        )
        axes.text(x + width / 2, 0, name, ha="center", va="center")
        name_axis = partial(axes.text, color=ink(RED), fontsize=11)
        name_axis(x - 0.2, 0, row_axis, ha="right", va="center")
        name_axis(x + width / 2, height / 2 + 0.2, column_axis, ha="center", va="bottom")
        x += width + gap
    tallest = max(part[1][1] for part in parts if not isinstance(part, str))
    axes.set(xlim=(-gap, x - gap / 2), ylim=(-tallest / 2 - 0.3, tallest / 2 + 1), aspect="equal")
    axes.axis("off")
