"""The chapters' drawings as a phone shows them: in their frame, apart from each other, legible."""

import nbformat
import pytest

from tools.chapters import CHAPTERS, code_cells, drawings
from transformer_book.drawings import Drawing, model_map, palette_sheet

COLUMN = 358  # px, of a page on a phone 390 px wide
MEASURE = """() => [...document.querySelectorAll('svg')].map(svg => {
    const frame = svg.getBoundingClientRect(), wrong = [];
    const texts = [...svg.querySelectorAll('text')].map(text => {
        const size = parseFloat(getComputedStyle(text).fontSize) * frame.width / 350;
        return {words: text.textContent, box: text.getBoundingClientRect(), size};
    });
    for (const {words, box, size} of texts) {
        if (size < 9 * 4 / 3) wrong.push(`${words}: ${size} px`);
        if (box.left < frame.left - 1 || box.right > frame.right + 1
            || box.top < frame.top - 1 || box.bottom > frame.bottom + 1)
            wrong.push(`${words}: leaves the drawing`);
    }
    texts.forEach((one, i) => texts.slice(i + 1).forEach(other => {
        const across = Math.min(one.box.right, other.box.right)
            - Math.max(one.box.left, other.box.left);
        const down = Math.min(one.box.bottom, other.box.bottom)
            - Math.max(one.box.top, other.box.top);
        if (across > 1.5 && down > 4) wrong.push(`${one.words}: meets ${other.words}`);
    }));
    return wrong;
})"""


@pytest.fixture(scope="module")
def measured(browser):
    """What is wrong with each of some drawings."""
    page = browser.new_page(viewport={"width": 390, "height": 844})

    def measured(*pictures):
        frames = "".join(f"<div style='width: {COLUMN}px'>{svg}</div>" for svg in pictures)
        page.set_content(f"<body style='margin: 0'>{frames}</body>")
        return page.evaluate(MEASURE)

    return measured


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_the_drawings_of_a_chapter(path, measured):
    cells = code_cells(nbformat.read(path, as_version=4))
    found = [(cell.id, svg) for cell in cells for svg in drawings(cell)]
    wrong = measured(*(svg for _, svg in found))
    assert {name: each for (name, _), each in zip(found, wrong, strict=True) if each} == {}


def test_the_drawings_of_the_appendix(measured):
    assert measured(palette_sheet()._repr_svg_(), model_map()._repr_svg_()) == [[], []]


def test_what_is_wrong_is_found(measured):
    drawing = Drawing(100, "A drawing in which three things are wrong, for the test of the test.")
    drawing.text(10, 50, "beyond the left edge")
    drawing.text(200, 50, "one over")
    drawing.text(210, 55, "the other")
    drawing.text(200, 98, "below")
    small = drawing._repr_svg_().replace("font-size='12'", "font-size='11'")
    found = measured(drawing._repr_svg_(), small)
    assert found[0] == [
        "beyond the left edge: leaves the drawing",
        "below: leaves the drawing",
        "one over: meets the other",
    ]
    assert any("px" in each for each in found[1])
