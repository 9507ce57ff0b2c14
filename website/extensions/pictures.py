"""Pictures keep their place, and wait until they are needed."""

from functools import cache
from pathlib import Path
from urllib.parse import quote

import imagesize
from docutils import nodes
from sphinx.writers.html5 import HTML5Translator

FIRST_SCREEN = 1000  # letters of text that fill a phone's


@cache
def size_of(path: Path) -> tuple[int, int]:
    """Width and height in pixels; an SVG's are those that it names itself."""
    width, height = imagesize.get(path)
    if width <= 0 or height <= 0:
        raise ValueError(f"{path} does not say how large it is")
    return round(width), round(height)


def shown_size(node: nodes.image, path: Path) -> tuple[int, int]:
    """The size that MyST-NB has read from a plot's resolution, in pixels; else the file's own."""
    width, height = node.get("width", ""), node.get("height", "")
    if width.endswith("px") and height.endswith("px"):
        return int(width.removesuffix("px")), int(height.removesuffix("px"))
    return size_of(path)


def opens(node: nodes.image) -> bool:
    """Whether a picture is the first of its page, and a phone's first screen has some of it."""
    before = 0
    for other in node.document.findall():
        if isinstance(other, nodes.image):
            return other is node and before < FIRST_SCREEN
        before += len(other.astext()) if isinstance(other, nodes.paragraph) else 0
    return False


def visit_image(translator: HTML5Translator, node: nodes.image) -> None:
    """A picture keeps its place while it loads; all but one that opens a page wait."""
    builder = translator.builder
    width, height = shown_size(node, Path(builder.srcdir) / node["uri"])
    attributes = {
        "src": f"{builder.imgpath}/{quote(builder.images[node['uri']])}",
        "alt": node.get("alt", ""),
        "width": width,
        "height": height,
    } | ({"fetchpriority": "high"} if opens(node) else {"loading": "lazy"})
    translator.body.append(translator.emptytag(node, "img", "\n", **attributes))
