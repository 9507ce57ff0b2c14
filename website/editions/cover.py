"""The cover of the PDF and the ePub: where the French words look in the book's own translator."""

from functools import cache
from html import escape

import torch

from website.extensions.translator_files import opening

WIDTH, HEIGHT = 1600, 2262  # the shape of A4
CELL, GAP, LEFT, TOP = 250, 24, 404, 420
PAPER, WORD, QUERY, TURNED = "#0b2a45", "#d5e3ee", "#56B4E9", "#E69F00"  # the logo's colours
WORDS = f"fill='{WORD}' font-size='58' font-style='italic'"


@cache
def looks() -> tuple[list[str], list[str], list[list[float]]]:
    """English words, the French ones that the translator writes, and how much each looks at each.

    As in the figure of chapter 0 they are the weights of the last layer's cross-attention, the mean
    over its heads, of the model that chapter 9 trains.
    """
    told = opening()
    weights = torch.tensor([step["cross"][-1] for step in told["steps"]]).mean(dim=1)
    return told["source"][:-1], told["target"][:-1], weights[:-1, :-1].tolist()  # without <eos>


def cover(config: dict, subtitle: str) -> str:
    """An SVG. Two words that change places on their way into French have the other colour."""
    asked, written, weights = looks()
    drawn = [f"<rect width='{WIDTH}' height='{HEIGHT}' fill='{PAPER}'/>"]
    step = CELL + GAP
    for j, word in enumerate(asked):
        x = LEFT + step * j + CELL / 2
        drawn.append(f"<text x='{x}' y='{TOP - 40}' text-anchor='middle' {WORDS}>{word}</text>")
    for i, (word, row) in enumerate(zip(written, weights, strict=True)):
        y = TOP + step * i
        middle = f"x='{LEFT - 44}' y='{y + CELL / 2 + 18}'"
        drawn.append(f"<text {middle} text-anchor='end' {WORDS}>{word}</text>")
        for j, weight in enumerate(row):
            colour = QUERY if i == j or weight < max(row) else TURNED
            drawn.append(
                f"<rect x='{LEFT + step * j}' y='{y}' width='{CELL}' height='{CELL}' rx='30'"
                f" fill='{colour}' fill-opacity='{0.1 + 0.9 * weight:.2f}'/>"
            )
    title, release = config["title"], config["sphinx"]["config"]["release"]
    lines = (1800, min(110, 2600 // len(title)), title), (1920, 56, subtitle)
    for y, size, words in (*lines, (2060, 44, config["author"]), (2130, 44, release)):
        drawn.append(
            f"<text x='{WIDTH / 2}' y='{y}' text-anchor='middle' fill='#fff' font-size='{size}'>"
            f"{escape(words)}</text>"
        )
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {HEIGHT}' role='img'"
        f" aria-label='{escape(title, quote=True)}' font-family='Book, Signs, serif'>"
        f"{''.join(drawn)}</svg>"
    )
