"""The map that opens every chapter: the whole model in grey, the chapter's part in colour."""

from transformer_book.drawings.canvas import Drawing

ENCODER = (
    *("source words", "embedding", "+ positions"),
    *("self-attention", "Add & Norm"),
    *("feed-forward", "Add & Norm"),
)
DECODER = (
    *("target, shifted", "embedding", "+ positions"),
    *("masked self-attention", "Add & Norm"),
    *("cross-attention", "Add & Norm"),
    *("feed-forward", "Add & Norm"),
    *("linear, softmax", "next word"),
)
LINES = ("memory", "loop", "encoder", "decoder")  # an arrow, another, and the two frames
PARTS = tuple(dict.fromkeys((*ENCODER, *DECODER, *LINES)))
IN_ENCODER = {f"encoder: {part}" for part in ENCODER}  # a part of this frame alone
ROLE_OF = {"+ positions": "position", "next word": "loss", "linear, softmax": "loss"}
ROLE_OF |= dict.fromkeys(("self-attention", "masked self-attention", "cross-attention"), "query")
WORDS = ("source words", "target, shifted", "next word")  # these have no box


def model_map(*lit: str, chapters: dict[str, str] | None = None) -> Drawing:
    """Figure 1 of Vaswani et al. (2017), from bottom to top, with the parts in ``lit`` coloured.

    ``"Add & Norm"`` is lit in both frames, ``"encoder: Add & Norm"`` in the encoder's alone.
    ``chapters`` puts a label, such as a chapter's number, beside a part. Raises ValueError for a
    part that the map does not have.
    """
    labels = chapters or {}
    for name, given, known in (("lit", lit, {*PARTS, *IN_ENCODER}), ("chapters", labels, PARTS)):
        if unknown := set(given) - set(known):
            raise ValueError(f"{name} must name parts of the map, got {sorted(unknown)}")
    told = f"in colour: {', '.join(lit)}" if lit else "all in grey"
    d = Drawing(340, f"A map of the Transformer, encoder left, decoder right; {told}.")
    _stack(d, 14, "encoder", ENCODER, lit, labels)
    _stack(d, 196, "decoder", DECODER, lit, labels)
    on = "memory" in lit
    way = (80, 134), (80, 112), (170, 112), (170, 174), (193, 174)
    d.arrow(*way, role="memory", lit=on, width=2.5 if on else 1.5)
    d.text(80, 102, f"memory{_label(labels, 'memory')}", bold=on, quiet=not on)
    if "loop" in lit:
        d.arrow((298, 18), (344, 18), (344, 322), (312, 322), dashed=True)
    return d


def _stack(d: Drawing, x: int, frame: str, parts: tuple, lit: tuple, labels: dict) -> None:
    """One column of parts; what stands above its frame is a little apart."""
    n_framed = len(parts) - (2 if frame == "decoder" else 0)
    heights = [
        312 - 28 * i - (8 if i > 2 else 0) - (16 if i >= n_framed else 0) for i in range(len(parts))
    ]
    top = heights[n_framed - 1] - 7
    on = frame in lit
    d.box(x - 7, top, 150, heights[3] + 27 - top, "", dashed=True, lit=on, strength=0)
    d.text(x - 6, top - 9, frame, quiet=not on, bold=on, anchor="start")
    d.text(x + 142, top - 9, "× N", quiet=True, anchor="end")
    for i, (part, y) in enumerate(zip(parts, heights, strict=True)):
        on, words = part in lit or f"{frame}: {part}" in lit, part + _label(labels, part)
        if part in WORDS:
            d.text(x + 66, y + 10, words, bold=on, quiet=not on)
        else:
            grey = part not in ROLE_OF  # a box that is lit in grey among grey ones
            role, strength = ROLE_OF.get(part, "mask"), 0.75 if grey else 0.35
            d.box(x, y, 132, 20, words, role, lit=on, strength=strength, bold=on and grey)
        if part == "Add & Norm":  # its residual connection leads past the part below
            below = heights[i - 1] + 24
            way = (x + 66, below), (x + 137, below), (x + 137, y + 10), (x + 132, y + 10)
            d.arrow(*way, lit=on, head=False)
        if i:
            start, end = heights[i - 1] - 2, y + 22
            d.arrow((x + 66, start), (x + 66, end), lit=on, head=start - end > 10 or i == 1)


def _label(labels: dict[str, str], part: str) -> str:
    return f"  · {labels[part]}" if part in labels else ""
