"""The attention explorer: every head of a model on a few sentences, in one piece of HTML.

For chapter 12. What it does in a browser stands in explorer.js, explorer.css and elements.js, which
the site's other parts use, too. Where scripts do not run, as on GitHub, one head's table is left.
"""

import json
import re
from collections.abc import Sequence
from hashlib import sha256
from html import escape
from importlib.resources import files

from IPython.display import HTML
from torch import Tensor

from transformer_book.drawings.colours import style_sheet
from transformer_book.explorer.explored import TITLES, Explored, Kind

SCALE = 10_000  # weights are stored as integers; fine enough to keep the order of a row


def explore(sentences: Sequence[Explored], *, start: tuple[Kind, int, int] | None = None) -> HTML:
    """Choose a sentence, a layer, a head and a word, and see where it looks; chapter 12.

    ``start`` is the kind of attention, layer and head, both from 0, that are seen first; without
    it, the first head of the last layer of the last kind. The same input gives the same bytes;
    nothing is loaded from elsewhere.

    Raises ValueError if there is no sentence, if they differ in kinds, layers or heads, or if
    ``start`` is not among these.
    """
    if not sentences:
        raise ValueError("sentences must hold at least one sentence, got none")
    all_sizes = [{k: tuple(s.maps[k].shape[:2]) for k in TITLES if k in s.maps} for s in sentences]
    sizes = all_sizes[0]
    for i, size in enumerate(all_sizes):
        if size != sizes:
            raise ValueError(
                f"sentences[{i}] must have the (layers, heads) of the first, {sizes}, got {size}"
            )
    last = list(sizes)[-1]
    kind, layer, head = start or (last, sizes[last][0] - 1, 0)
    if kind not in sizes or not (0 <= layer < sizes[kind][0] and 0 <= head < sizes[kind][1]):
        raise ValueError(f"start must name one of (layers, heads) = {sizes}, got {start}")
    data = {
        "scale": SCALE,
        "start": {"kind": kind, "layer": layer, "head": head},
        "titles": {kind: TITLES[kind] for kind in sizes},
        "languages": ("en", "fr"),  # of source and target, for screen readers
        "sentences": [_stored(sentence) for sentence in sentences],
    }
    return _page(data, _table(sentences[0], kind, layer, head))


def _stored(sentence: Explored) -> dict:
    maps = {kind: _integers(weights).tolist() for kind, weights in sentence.maps.items()}
    gold = None if sentence.gold is None else sorted(map(list, sentence.gold))
    words = {"source": [*sentence.source], "target": [*sentence.target]}
    return words | {"maps": maps, "gold": gold}


def _page(data: dict, table: str) -> HTML:
    """The table, and the script that puts the explorer in its place."""
    # No "<" may stand in a script: a word could end it.
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    style = style_sheet("section", "section.dark") + _file("explorer.css")
    script = f'"use strict";\n{_inlined("elements.js", "explorer.js")}'
    key = sha256((text + style + script).encode()).hexdigest()[:12]
    call = f'exploreAttention("{key}", {json.dumps(style)}, {text});'
    return HTML(
        f'<div class="mathjax_ignore tex2jax_ignore" data-explorer="{key}">\n{table}</div>\n'
        f"<script>\n(() => {{\n{script}{call}\n}})();\n</script>"
    )


def _table(sentence: Explored, kind: Kind, layer: int, head: int) -> str:
    """One head, in HTML that is left when scripts, styles and attributes are taken away."""
    gold = sentence.gold if kind == "cross" else None
    marks = {(j, i): "&nbsp;◆" for i, j in gold or ()}
    columns = "".join(f'<th scope="col">{escape(word)}</th>' for word in sentence.columns(kind))
    lines = [f"<tr><td></td>{columns}</tr>"]
    weights = _integers(sentence.maps[kind][layer, head]).tolist()
    for t, (word, row) in enumerate(zip(sentence.rows(kind), weights, strict=True)):
        label = word if kind == "encoder" else f"{word} → {sentence.target[t + 1]}"
        cells = (
            f"<td>{(w * 100 + SCALE // 2) // SCALE}{marks.get((t, s), '')}</td>"
            for s, w in enumerate(row)
        )
        lines.append(f'<tr><th scope="row">{escape(label)}</th>{"".join(cells)}</tr>')
    reads = "" if kind == "encoder" else ", as “word it reads → word it should write”"
    legend = "; ◆ is the gold alignment" if gold is not None else ""
    text = (
        f"{TITLES[kind].capitalize()}, layer {layer}, head {head}: weights in percent. Each row is "
        f"a word that looks{reads}, each column a word that is looked at{legend}. Where scripts "
        "run, as on the book's site and in Colab, every sentence, layer and head is here to choose."
    )
    body = "\n".join(lines[1:])
    # A "dataframe", as pandas calls it: the site's theme paints other HTML light in dark mode.
    return (
        f'<p>{text}</p>\n<div style="overflow-x: auto">\n<table class="dataframe">\n'
        f"<thead>{lines[0]}</thead>\n<tbody>\n{body}\n</tbody>\n</table>\n</div>\n"
    )


def _integers(weights: Tensor) -> Tensor:
    return (weights.detach().cpu().double() * SCALE).round().int()


def _inlined(*names: str) -> str:
    """Modules as one script, which no file has to be fetched for: without import and export."""
    modules = "\n".join(map(_file, names))
    return re.sub(r"^import [^;]*;\n|^export ", "", modules, flags=re.MULTILINE)


def _file(name: str) -> str:
    return (files("transformer_book.explorer") / name).read_text(encoding="utf-8")
