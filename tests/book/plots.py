"""Two plots compared: their words, and where these and the curves stand in their panel.

Places are told in parts of the panel, for another machine has other letters, which leave it another
size. Where numbers were measured, they may differ, and with them what follows them, but roughly.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain, count, pairwise
from statistics import correlation
from xml.etree.ElementTree import Element, fromstring

Place = tuple[float, float]
SVG = "{http://www.w3.org/2000/svg}"
PAIR = re.compile(r"(-?[\d.]+) (-?[\d.]+)")
MOVED = re.compile(r"translate\((-?[\d.]+) (-?[\d.]+)\)")
NUMBER = re.compile(r"-?[\d.]+")
LETTER = re.compile(r"[^\W\d]")
NEAR, NEAR_WORDS, ROUGHLY = 0.05, 0.1, 0.3  # parts of a panel
ALIKE = 0.5  # how measured numbers have to go with the stored ones, at least
QUARTERS = range(4)  # the course of a curve is the mean place of each


def is_plot(text: str) -> bool:
    """Whether it is a picture of numbers, as ``transformer_book.drawings.plot`` makes them."""
    return text.startswith("<svg") and "class='plot'" in text


def changes(stored: str, now: str, *, measured: bool = False) -> list[str]:
    """What differs from the stored plot, a line for each; none if the two agree."""
    was, found = (things(fromstring(plot), measured) for plot in (stored, now))
    told = []
    for what in sorted(was.keys() | found.keys()):
        near = ROUGHLY if measured else NEAR_WORDS if "“" in what else NEAR
        if len(found[what]) != len(was[what]):
            told.append(f"{what}: {len(found[what])} now, {len(was[what])} stored")
        if what.endswith(", numbers"):
            then, here = ([x for ((x, _),) in each[what]] for each in (was, found))
            if len(then) == len(here) > 2 and max(then) > min(then) and max(here) > min(here):
                told += [f"{what}: others now"] * (correlation(then, here) < ALIKE)
            continue
        for old, new in zip(was[what], found[what], strict=False):
            if any(abs(a - b) > near for a, b in zip(chain(*old), chain(*new), strict=True)):
                told.append(f"{what}: now at {shown(new)}, stored at {shown(old)}")
    return told


def things(plot: Element, measured: bool) -> dict[str, list[list[Place]]]:
    """The courses of what is in each panel, such as a word in a colour, in the order of drawing.

    Where they were measured, without the numbers and lines of the axes, and of the panel's own
    numbers the values: they may differ, but have to rise and fall together.
    """
    found = defaultdict(list)
    paper, *panels = plot[1]
    for n, panel in enumerate(panels, 1):
        frame = panel.find(f"{SVG}g[1]/{SVG}path")  # none around words of the whole figure
        xs, ys = zip(*points(paper[0] if frame is None else frame, (0, 0)), strict=True)
        left, top = min(xs), min(ys)
        wide, high = max(xs) - left or 1, max(ys) - top or 1
        for part in panel:
            is_axis, order = part.find(f"{SVG}g/{SVG}g") is not None, count(1)
            for words, leaf, offset in leaves(part, (0, 0)):
                if measured and not (LETTER.search(words) if words else not is_axis):
                    if not is_axis and NUMBER.fullmatch(words):  # such as a heatmap's
                        found[f"panel {n}, numbers"].append([(float(words), 0.0)])
                    continue
                kind = f"“{words}”" if words else leaf.tag.removeprefix(SVG)
                if is_axis and LETTER.search(words):  # its neighbours may be too near to tell
                    kind += f" (word {next(order)} of its axis)"
                inks = {leaf.get(name, "none") for name in ("fill", "stroke")} - {"none"}
                course = [
                    ((x - left) / wide, (y - top) / high)
                    for x, y in course_of(points(leaf, offset))
                ]
                if not words:  # what leaves the panel isn't seen, and how far it goes is chance
                    course = [(seen(x), seen(y)) for x, y in course]
                found[f"panel {n}, {' '.join([kind, *sorted(inks)])}"].append(course)
    return found


def leaves(part: Element, offset: Place) -> Iterator[tuple[str, Element, Place]]:
    """What is seen of a part, words of several lines as one, and by how much it is moved."""
    offset = moved(part, offset)
    if lines := part.findall(f"{SVG}text"):
        words = " ".join("".join(line.itertext()).strip() for line in lines)
        yield words, lines[0], moved(lines[0], offset)
    elif part.tag == f"{SVG}g":
        for each in part:
            yield from leaves(each, offset)
    elif part.tag != f"{SVG}image":
        yield "", part, offset


def moved(part: Element, offset: Place) -> Place:
    by = MOVED.search(part.get("transform", ""))
    return (offset[0] + float(by[1]), offset[1] + float(by[2])) if by else offset


def points(leaf: Element, offset: Place) -> list[Place]:
    across, down = offset
    found = PAIR.findall(leaf.get("d", ""))
    found = found or [[leaf.get(name, leaf.get(f"c{name}", 0)) for name in "xy"]]
    return [(float(x) + across, float(y) + down) for x, y in found]


def course_of(line: Sequence[Place]) -> list[Place]:
    ends = [i * len(line) // len(QUARTERS) for i in QUARTERS] + [len(line)]
    return [mean(line[a : max(b, a + 1)]) for a, b in pairwise(ends)]


def mean(places: Sequence[Place]) -> Place:
    x, y = (sum(each) / len(places) for each in zip(*places, strict=True))
    return x, y


def seen(share: float) -> float:
    return min(max(share, 0.0), 1.0)


def shown(course: Sequence[Place]) -> str:
    return " ".join(f"({x:.2f}, {y:.2f})" for x, y in dict.fromkeys(course))
