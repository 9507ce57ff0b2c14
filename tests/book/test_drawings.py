"""The drawings: the same bytes every time, legible on white paper and in the dark."""

import random
import re
from xml.etree import ElementTree

import matplotlib.pyplot as plt
import pytest
import torch

from transformer_book import figures
from transformer_book.drawings import ROLES, Drawing, Place, model_map, palette_sheet
from transformer_book.drawings.colours import FAINT, INK, NAMED, PAPER, QUIET, at_night
from transformer_book.drawings.matrix import rounded, shown
from transformer_book.drawings.model_map import PARTS
from transformer_book.drawings.plot import svg_of
from transformer_book.drawings.svg import number

ALT = "A drawing for the tests, with an alternative text that is long enough."
SVG = "{http://www.w3.org/2000/svg}"
# What nbconvert's sanitiser, and so GitHub, lets through.
KEPT = "class viewBox width height style role aria-label font-family font-size font-weight"
KEPT += " font-style text-anchor fill fill-opacity stroke stroke-width stroke-linecap"
KEPT += " stroke-linejoin stroke-dasharray d x y rx cx cy r dy"


def parsed(drawing):
    return ElementTree.fromstring(drawing._repr_svg_())


def texts(drawing):
    return ["".join(each.itertext()) for each in parsed(drawing).iter(f"{SVG}text")]


def everything(noise=lambda value: value):
    """One drawing with all of the vocabulary."""
    d = Drawing(300, ALT)
    weights = torch.rand(3, 4, generator=torch.Generator().manual_seed(4)).softmax(dim=-1)
    numbers = [[noise(value) for value in row] for row in (100 * weights).tolist()]
    place = d.cells(60, 40, numbers, "query", "$A$", rows="abc", columns="wxyz", follow=1)
    d.cells(200, 40, [[1.27, None, -3]], "value", digits=1, mask=[[True, True, False]], lit=False)
    d.cells(200, 80, [[1, 2], [3, 4]], "plain", follow_column=0)
    d.box(10, 150, 60, 20, "box", "memory")
    d.circle(100, 160, "+")
    d.arrow((10, 200), (60, 200), (60, 240), role="loss", dashed=True)
    d.arrow(place.side("bottom"), (200, 240), curve="|")
    d.shape((300, 200), (340, 200), (320, 240))
    d.brace(place, "words with $x_t^2$")
    d.dial(300, 160, 20, (noise(0.3), "query"), (noise(1.2), "key"))
    d.ring(Place(5, 5, 10, 10))
    return d


def test_the_same_bytes_every_time_and_under_another_machines_rounding():
    once = everything()._repr_svg_()
    assert everything()._repr_svg_() == once
    toss = random.Random(0)
    for _ in range(20):
        assert everything(lambda v: v * (1 + toss.choice((-1e-6, 1e-6))))._repr_svg_() == once


def test_every_drawing_is_svg_that_github_keeps():
    for drawing in (everything(), palette_sheet(), model_map("memory", "loop")):
        root = parsed(drawing)
        assert root.get("aria-label") == drawing.alt == repr(drawing)
        assert root.get("role") == "img"
        assert {name for each in root.iter() for name in each.attrib} <= {*KEPT.split()}
        tags = {each.tag.removeprefix(SVG) for each in root.iter()}
        assert tags <= {"svg", "style", "rect", "text", "tspan", "path", "circle"}


@pytest.mark.parametrize(
    ("value", "digits"),
    [(0.5, 0), (2.5, 0), (0.25, 1), (-1.05, 1), (0.049999999, 1), (12.50001, 0)],
)
def test_numbers_that_might_be_rounded_either_way_are_refused(value, digits):
    with pytest.raises(ValueError, match=f"numbers must round one way at {digits} digits"):
        rounded(value, digits)
    d = Drawing(100, ALT)
    with pytest.raises(ValueError, match="numbers must round one way"):
        d.cells(0, 0, [[value]], "query", digits=digits)


def test_numbers_are_written_with_a_true_minus_and_no_minus_zero():
    assert [shown(v, 1) for v in (-0.01, -1.26, 3)] == ["0.0", "−1.3", "3.0"]
    assert number(-0.001, 12.04, 0.256) == "0 12 0.26"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: Drawing(0, ALT), "height must be positive, got 0"),
        (lambda: Drawing(10, "short"), "alt must say what is to be seen, got 'short'"),
        (lambda: Drawing(10, ALT).text(0, 0, "x", size=11), "size must be at least 12, got 11"),
        (lambda: Drawing(10, ALT).box(0, 0, 1, 1, role="gold"), "role must be one of word, query"),
        (lambda: Place(0, 0, 1, 1).side("middle"), "name must be one of left, right, top, bottom"),
        (lambda: model_map("attention"), r"lit must name parts of the map, got \['attention'\]"),
        (lambda: model_map(chapters={"mask": "4"}), r"chapters must name parts of the map"),
    ],
)
def test_bad_input_is_named(wrong, message):
    with pytest.raises(ValueError, match=message):
        wrong()


def luminance(colour):
    parts = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = [v / 12.92 if v <= 0.03928 else ((v + 0.055) / 1.055) ** 2.4 for v in parts]
    return sum(w * v for w, v in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def mixed(colour, paper, share):
    pairs = zip(*([int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in (colour, paper)), strict=True)
    return "#" + "".join(f"{round(a * share + b * (1 - share)):02x}" for a, b in pairs)


def contrast(a, b):
    light, dark = sorted((luminance(a), luminance(b)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_text_is_legible_on_every_cell_and_lines_on_the_paper_by_day_and_by_night():
    night = at_night()
    ink, quiet, paper = "#f2f2f2", night[QUIET], night[PAPER]
    for name, role in ROLES.items():
        for words, share in ((INK, 0.72), (INK, 0.5), (QUIET, 0.28)):
            assert contrast(words, mixed(role.surface, PAPER, share)) >= 4.5, (name, share)
        for words, share in ((ink, 0.72), (ink, 0.5), (quiet, 0.28)):
            assert contrast(words, mixed(role.dark_surface, paper, share)) >= 4.5, (name, share)
        assert contrast(role.line, PAPER) >= 3, name
        assert contrast(role.dark_line, paper) >= 3, name


@pytest.fixture
def plot():
    plt.switch_backend("agg")
    figures.use_style()
    figure, axes = plt.subplots()
    axes.loglog([1, 10], [1, 1000], "o", mfc="white", color=figures.RED)
    axes.text(2, 9, "a word, 0.0031", color=figures.ink(figures.RED))
    axes.set(xlabel="parameters $d_k$ and more")
    yield svg_of(figure)
    plt.close(figure)


def test_a_plot_has_its_words_as_text_in_the_drawings_letters(plot):
    root = ElementTree.fromstring(plot)
    said = ["".join(each.itertext()).replace("\xa0", " ") for each in root.iter(f"{SVG}text")]
    assert {"a word, 0.0031", "parameters dk and more", "103"} <= set(said)
    drawing = parsed(everything())
    assert [root.get(name) for name in ("width", "font-family")] == [
        drawing.get(name) for name in ("width", "font-family")
    ]
    others = [each for each in root.iter() if each is not root and each.get("font-family")]
    assert {each.get("font-style") for each in others} == {"italic"}  # a formula's letters


def test_a_plot_is_the_same_every_time_and_lets_other_pictures_be(plot):
    assert svg_of(plt.gcf()) == plot
    assert "*{" not in plot
    body = [*ElementTree.fromstring(plot).iter()][1:]
    assert [each.tag for each in body if each.get("style")] == []  # GitHub drops it
    assert {each.tag.removeprefix(SVG) for each in body} <= {
        *("circle", "clipPath", "defs", "g", "path", "rect", "style", "text", "tspan")
    }


def test_each_colour_of_a_plot_has_one_for_the_night(plot):
    used = set(re.findall(r'\b(fill|stroke)="(#\w+)"', plot.partition("</style>")[2]))
    assert used > {("fill", "#a84a00"), ("fill", "#ffffff"), ("stroke", "#bdbdbd")}
    style = next(ElementTree.fromstring(plot).iter(f"{SVG}style")).text
    kept = {(name, colour) for name, colour in used if f'{name}="{colour}"' not in style}
    assert kept == {("stroke", figures.RED.lower())}  # a line is seen on black and on white


def test_words_in_a_plots_colours_can_be_read_on_white():
    colours = figures.BLUE, figures.BLACK, *figures.INKS
    assert len(set(colours)) == 8  # the whole palette
    for color in colours:
        assert contrast(figures.ink(color), "#FFFFFF") >= 4.5, color
    assert figures.ink(figures.BLUE) == figures.BLUE


def test_each_light_colour_has_one_dark_one_and_the_drawing_knows_it():
    pairs = [(QUIET, at_night()[QUIET])]
    for role in ROLES.values():
        pairs += [(role.surface, role.dark_surface), (role.line, role.dark_line)]
    assert len({light for light, _ in set(pairs)}) == len(set(pairs))
    used = set(re.findall(r"(?:fill|stroke)='(#\w+)'", everything()._repr_svg_()))
    style = next(parsed(everything()).iter(f"{SVG}style")).text
    kept = {INK, FAINT, *(light for light, dark in pairs if light == dark)}
    assert {colour for colour in used if f'"{colour}"' not in style} <= kept


def test_the_palette_shows_every_role_and_the_map_every_part():
    assert set(NAMED.values()) == set(ROLES)
    assert set(NAMED) <= set(texts(palette_sheet()))
    shown_parts = texts(model_map(chapters={"memory": "2"}))
    assert "memory  · 2" in shown_parts
    assert {*PARTS} - {"loop", "memory"} <= set(shown_parts)
