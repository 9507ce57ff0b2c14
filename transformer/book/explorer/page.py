"""The attention explorer: every head of a model on a few sentences, in one piece of HTML.

For chapter 12. What it does in a browser stands in explorer.js and explorer.css. Where scripts do
not run, as on GitHub, the table of one head is left.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Literal

import torch
from IPython.display import HTML
from jaxtyping import Float
from torch import Tensor

from transformer.book import figures
from transformer.data.grammar import AlignedPair
from transformer.data.text import Vocabulary
from transformer.data.tokens import BOS_ID, EOS_ID
from transformer.metrics import Alignment
from transformer.model import Transformer
from transformer.multihead import record_attention
from transformer.runtime import evaluating

Kind = Literal["encoder", "decoder", "cross"]
TITLES = {
    "encoder": "encoder self-attention",
    "decoder": "decoder self-attention",
    "cross": "cross-attention",
}
SCALE = 10_000  # weights are stored as integers; fine enough to keep the order of a row


@dataclass(frozen=True, eq=False)
class Explored:
    """A sentence, its translation, and the weights of all heads on them; chapter 12.

    ``source`` is what the encoder reads, ``target`` is <bos> … <eos>: row t of the maps "decoder"
    and "cross" reads target[t] and predicts target[t + 1], as in :mod:`transformer.metrics`, whose
    indices ``gold`` has too. A map is that of all layers, (layers, heads, T, S).

    Raises ValueError if lengths do not fit, or weights do not lie between 0 and 1.
    """

    source: Sequence[str]
    target: Sequence[str]
    maps: Mapping[Kind, Float[Tensor, "layers heads T S"]]
    gold: Alignment | None = None

    def __post_init__(self):
        for name, words in (("source", self.source), ("target", self.target)):
            if isinstance(words, str):
                raise ValueError(f"{name} must be a list of words, got the str {words!r:.60}")
        if not self.maps or not self.maps.keys() <= TITLES.keys():
            raise ValueError(f"maps must be of the kinds {[*TITLES]}, got {[*self.maps]}")
        for kind, weights in self.maps.items():
            _check_weights(kind, weights, len(self.rows(kind)), len(self.columns(kind)))
        S, T = len(self.source), len(self.target) - 1
        for i, j in self.gold or ():
            if not (0 <= i < S and 0 <= j < T):
                raise ValueError(f"gold must link {S} words to {T} words, got {(i, j)}")

    def rows(self, kind: Kind) -> Sequence[str]:
        """The words that look, as they are read."""
        return self.source if kind == "encoder" else self.target[:-1]

    def columns(self, kind: Kind) -> Sequence[str]:
        """The words that are looked at."""
        return self.target[:-1] if kind == "decoder" else self.source


def from_model(
    model: Transformer, pairs: Sequence[AlignedPair], vocabularies: tuple[Vocabulary, Vocabulary]
) -> list[Explored]:
    """What ``model`` attends to on each pair, with the reference as the decoder's input."""
    src_vocabulary, tgt_vocabulary = vocabularies
    device, found = next(model.parameters()).device, []
    with evaluating(model), record_attention(model) as recorded:
        for pair in pairs:  # one at a time: no padding
            src = [*src_vocabulary.encode(pair.source), EOS_ID]
            tgt = [BOS_ID, *tgt_vocabulary.encode(pair.target), EOS_ID]
            model(torch.tensor([src], device=device), torch.tensor([tgt[:-1]], device=device))
            layers: dict[Kind, list[Tensor]] = {kind: [] for kind in TITLES}
            for name, weights in recorded.items():  # decoder.layers.1.cross_attention
                kind = "cross" if name.endswith("cross_attention") else name.split(".")[0]
                layers[kind].append(weights[0])
            maps = {kind: torch.stack(of_layers) for kind, of_layers in layers.items()}
            words = src_vocabulary.words(src), tgt_vocabulary.words(tgt)
            found.append(Explored(*words, maps, pair.alignment))
    return found


def explore(
    sentences: Sequence[Explored],
    *,
    start: tuple[Kind, int, int] | None = None,
    languages: tuple[str, str] = ("en", "fr"),
) -> HTML:
    """Choose a sentence, a layer, a head and a word, and see where it looks; chapter 12.

    ``start`` is the kind of attention, layer and head, both from 0, that are seen first; without
    it, the first head of the last layer of the last kind. ``languages``, of source and target, are
    for screen readers. The same input gives the same bytes; nothing is loaded from elsewhere.

    Raises ValueError if there is no sentence, if they differ in kinds, layers or heads, or if
    ``start`` is not among these.
    """
    sentences = list(sentences)
    sizes = _check_alike(sentences)
    kind, layer, head = start or ((last := [*sizes][-1]), sizes[last][0] - 1, 0)
    if kind not in sizes or not (0 <= layer < sizes[kind][0] and 0 <= head < sizes[kind][1]):
        raise ValueError(f"start must name one of (layers, heads) = {sizes}, got {start}")
    data = {
        "scale": SCALE,
        "start": {"kind": kind, "layer": layer, "head": head},
        "titles": {kind: TITLES[kind] for kind in sizes},
        "languages": languages,
        "sentences": [_stored(sentence) for sentence in sentences],
    }
    # No "<" may stand in a script: a word could end it.
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    colours = ("BLUE", "ORANGE", "SKY")
    named = "".join(f"--{name.lower()}: {getattr(figures, name)}; " for name in colours)
    style = f":host {{ {named}}}\n{_file('explorer.css')}"
    script = f'"use strict";\n{_file("explorer.js")}'
    key = sha256((text + style + script).encode()).hexdigest()[:12]
    call = f'exploreAttention("{key}", {json.dumps(style)}, {text});'
    table = _table(sentences[0], kind, layer, head)
    return HTML(
        f'<div class="mathjax_ignore tex2jax_ignore" data-explorer="{key}">\n{table}</div>\n'
        f"<script>\n(() => {{\n{script}{call}\n}})();\n</script>"
    )


def _stored(sentence: Explored) -> dict:
    maps = {kind: _integers(weights).tolist() for kind, weights in sentence.maps.items()}
    gold = None if sentence.gold is None else sorted(map(list, sentence.gold))
    words = {"source": [*sentence.source], "target": [*sentence.target]}
    return words | {"maps": maps, "gold": gold}


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


def _file(name: str) -> str:
    return (files("transformer.book.explorer") / name).read_text(encoding="utf-8")


def _check_weights(kind: Kind, weights: Tensor, T: int, S: int) -> None:
    n_layers, n_heads, *axes = weights.shape if weights.dim() == 4 else (0, 0)
    if axes != [T, S] or n_layers * n_heads * T * S <= 0:
        wanted, got = f"(layers, heads, {T}, {S})", tuple(weights.shape)
        raise ValueError(f"maps[{kind!r}] must have shape {wanted} to fit the words, got {got}")
    low, high = weights.min().item(), weights.max().item()
    if not (low >= 0 and high <= 1.01):  # bfloat16 rounds; a comparison with NaN is false
        raise ValueError(f"maps[{kind!r}] must lie between 0 and 1, got {low:.3g} to {high:.3g}")


def _check_alike(sentences: Sequence[Explored]) -> dict[Kind, tuple[int, int]]:
    """The layers and heads of each kind, in the order of TITLES."""
    if not sentences:
        raise ValueError("sentences must hold at least one sentence, got none")
    sizes = [{k: tuple(s.maps[k].shape[:2]) for k in TITLES if k in s.maps} for s in sentences]
    for i, size in enumerate(sizes):
        if size != sizes[0]:
            raise ValueError(
                f"sentences[{i}] must have the (layers, heads) of the first, {sizes[0]}, got {size}"
            )
    return sizes[0]
