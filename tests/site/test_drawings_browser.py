"""The chapters' drawings and plots as a phone shows them: in their frame, apart, legible."""

import matplotlib.pyplot as plt
import nbformat
import pytest

from tools.chapters import CHAPTERS, code_cells, drawings
from transformer_book import figures
from transformer_book.drawings import Drawing, model_map, palette_sheet
from transformer_book.drawings.plot import svg_of

COLUMN = 358  # px, of a page on a phone 390 px wide
MEASURE = """() => [...document.querySelectorAll('svg')].map(svg => {
    const frame = svg.getBoundingClientRect(), wrong = [];
    const isPlot = svg.classList.contains('plot');
    const unit = frame.width / svg.viewBox.baseVal.width;
    const texts = [...svg.querySelectorAll('text')].map(text => {
        const lines = [...text.children];
        if ([...text.childNodes].some(node => node.nodeType === 3)) lines.push(text);
        const sizes = lines.map(line => parseFloat(getComputedStyle(line).fontSize) * unit);
        return {
            words: text.textContent, box: text.getBoundingClientRect(), size: Math.max(...sizes)
        };
    });
    for (const {words, box, size} of texts) {
        if (size < (isPlot ? 10.5 : 12)) wrong.push(`${words}: ${size} px`);
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
    for (const path of isPlot ? svg.querySelectorAll('path') : []) {
        const names = ['fill', 'fill-opacity', 'stroke', 'stroke-opacity'];
        const [fill, thin, stroke, faint] = names.map(name => path.getAttribute(name));
        const isSeen = stroke ? faint !== '0.4' : fill !== 'none' && !thin;
        const isPaper = fill === '#ffffff' && !stroke;
        if (path.closest('defs') || !isSeen || isPaper) continue;
        const place = path.getScreenCTM();
        const clip = path.getAttribute('clip-path')?.slice(4, -1);
        const axes = clip && svg.querySelector(`${clip} rect`);
        const bottom = axes ? axes.y.baseVal.value + axes.height.baseVal.value : Infinity;
        for (let at = 0; at <= path.getTotalLength(); at += 1) {
            const point = path.getPointAtLength(at);
            if (point.y > bottom) continue;
            const {x, y} = point.matrixTransform(place);
            for (const {words, box} of texts)
                if (x > box.left + 1 && x < box.right - 1
                    && Math.abs(y - (box.top + box.bottom) / 2) < box.height / 4)
                    wrong.push(`${words}: a line runs through it`);
        }
    }
    return [...new Set(wrong)];
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


def test_a_line_through_words_is_found_in_a_plot(measured):
    plt.switch_backend("agg")
    figures.use_style()
    figure, axes = plt.subplots()
    axes.plot([0, 1], [0, 1])
    axes.text(0.5, 0.5, "across", ha="center", va="center")
    axes.bar([0.9], [0.2], width=0.1)
    axes.text(0.83, 0.1, "beside it", ha="right")
    axes.text(0.9, 0.1, "half of it")
    axes.text(0.1, 0.8, "by itself")
    axes.text(0.3, 0.8, "small", size=11)
    wrong = set(measured(svg_of(figure))[0])
    plt.close(figure)
    assert {each.partition(": ")[0] for each in wrong} == {"across", "half of it", "small"}
